"""A session's life: resumed with what it had read, narrowed by its agent's configuration, with helpers of its own."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from anima import BadArguments, Home, Scope
from anima.errors import NewerFormat, NoSuchSession
from anima.model import UNTRUSTED

OWNERS = {"owner": ["luis"]}


@pytest.fixture
def home(tmp_path, clock):
    with Home.create(tmp_path / "home", name="Aria", clock=clock) as home:
        yield home


def transcript(home, id):
    return Path(home.name) / "sessions" / f"{id}.jsonl"


# -- resume -------------------------------------------------------------------------------------------------------------


def test_a_session_is_taken_up_with_its_listener_taint_and_flows(home):
    first = home.session(scope=Scope.MAIN, channel="telegram", sender="luis")
    first.log("user", "look at this page")
    first.taint("web")
    first.close()

    with home.resume(first.id) as again:
        assert (again.id, again.channel, again.sender) == (first.id, "telegram", "luis")
        assert again.tainted == {"web"} and again.flows == first.flows != frozenset()
        assert again.call("memory_write", {"target": "memory", "content": "Ana moved"})["status"] == "noted"
        again.log("user", "and on we go")
    roles = [json.loads(line)["type"] for line in transcript(home, first.id).read_text().splitlines()]
    assert roles.count("session") == 1 and roles.count("entry") == 3 and roles.count("close") == 2


def test_taint_from_before_the_first_word_outlives_the_process_too(home):
    first = home.session(scope=Scope.MAIN)
    first.taint("web")
    first.log("user", "hello")
    first.close()

    assert home.resume(first.id).tainted == {"web"}


def test_trust_outlives_the_process_as_well(home):
    first = home.session(scope=Scope.MAIN)
    first.log("user", "hello")
    first.taint("web")
    first.trust()
    first.close()

    assert home.resume(first.id).tainted == frozenset()


def test_where_the_record_of_what_was_read_is_damaged_the_worst_is_assumed(home):
    first = home.session(scope=Scope.MAIN)
    first.log("user", "hello")
    first.taint("web")
    first.close()
    place = transcript(home, first.id)
    place.write_bytes(place.read_bytes().replace(b'{"type":"state"', b'{"type":"stat#"'))

    assert home.resume(first.id).tainted == UNTRUSTED


def test_a_transcript_that_a_newer_anima_wrote_is_not_resumed_and_is_doubted(home):
    first = home.session(scope=Scope.MAIN)
    first.log("user", "hello")
    first.close()
    head, _, rest = transcript(home, first.id).read_bytes().partition(b"\n")
    newer = head.rstrip().replace(b'"version":1', b'"version":2')
    transcript(home, first.id).write_bytes(newer + b"\n" + rest)

    with pytest.raises(NewerFormat, match="transcript"):
        home.resume(first.id)
    assert home.sessions.doubts([first.id]), "what a newer transcript had read cannot be known"


def test_a_session_that_is_not_there_or_anothers_cannot_be_resumed(home, tmp_path, clock):
    with pytest.raises(NoSuchSession):
        home.resume("no-such-session")
    with pytest.raises(NoSuchSession):
        home.resume("../../etc/passwd")
    first = home.session(scope=Scope.MAIN)
    first.log("user", "hello")
    first.close()
    place = transcript(home, first.id)
    place.write_text(place.read_text().replace('"agent_id":"main"', '"agent_id":"mian"').replace(" " * 1, " "))
    with pytest.raises((NoSuchSession, Exception)) as told:
        home.resume(first.id)
    assert "hello" not in str(told.value)


def test_a_strangers_session_is_not_resumed_as_the_owners(tmp_path, clock):
    with Home.create(tmp_path / "home", name="Aria", clock=clock, settings=OWNERS) as home:
        first = home.session(scope=Scope.MAIN, sender="mallory")
        first.log("user", "hello")
        first.close()
    named = {"owner": ["mallory"]}
    with (
        Home.open(tmp_path / "home", clock=clock, settings=named) as home,
        pytest.raises(NoSuchSession, match="other senders"),
    ):
        home.resume(first.id)


def test_the_prompt_is_frozen_for_the_session_or_for_a_turn(tmp_path, home, clock):
    with home.session(scope=Scope.MAIN) as session:
        home.remember("Ana uses a Samsung")
        session.log("user", "hello")
        assert "Samsung" not in session.prompt.text
        assert "Samsung" in session.refresh().text
    with Home.open(home.name, clock=clock, settings={"prompt.freeze": "turn"}) as turning:
        with turning.session(scope=Scope.MAIN) as session:
            turning.remember("Bo sails a boat")
            assert "Bo sails" not in session.prompt.text
            session.log("user", "hello")
            assert "Bo sails" in session.prompt.text


# -- what an agent may ----------------------------------------------------------------------------------------------------


def configured(home, clock, text):
    (Path(home.name) / "anima.toml").write_text(text, encoding="utf-8")
    home.trust()
    return Home.open(home.name, clock=clock)


def test_an_agents_access_is_the_narrower_of_both(home, clock):
    with configured(home, clock, '[[agent]]\nid = "main"\nworkspace_access = "ro"\n') as narrow:
        with narrow.session(scope=Scope.MAIN, access="rw") as session:
            assert session.access == "ro"
            answer = session.call("memory_write", {"content": "hello"})
            assert (answer["status"], answer["rule"]) == ("refused", "read-only")
            assert session.call("memory_tree")["entries"]
            session.log("user", "remember that I like tea")
        assert not list(Path(home.name, "memory").glob("*.md"))
        with narrow.session(scope=Scope.MAIN, access="none") as session, pytest.raises(BadArguments, match="no access"):
            session.call("memory_tree")


def test_tools_are_filtered_by_the_agents_patterns(home, clock):
    with configured(home, clock, '[[agent]]\nid = "main"\nallowed_tools = ["memory_s*", "who_*"]\n') as narrow:
        with narrow.session(scope=Scope.MAIN) as session:
            assert [tool.name for tool in session.tools()] == ["memory_search", "who_am_i"]
            with pytest.raises(BadArguments, match="no tool 'session_logs' here"):
                session.call("session_logs", {"action": "recent"})


def test_session_logs_exists_only_where_transcripts_do(home, clock):
    with Home.open(home.name, clock=clock, settings={"sessions.dir": ""}) as silent:
        with silent.session(scope=Scope.MAIN) as session:
            assert "session_logs" not in [tool.name for tool in session.tools()]
            assert session.call("my_stats")["sessions_total"] == 0
            assert session.call("memory_search", {"query": "x", "corpus": "sessions"})["hits"] == []


def test_a_sub_session_sees_less_writes_no_memory_and_hands_its_taint_back(home):
    home.remember("CANARY-MEMORY is private")
    with home.session(scope=Scope.MAIN, channel="cli") as session:
        session.log("user", "find this out")
        with session.sub() as helper:
            helper.log("user", "the task")
            assert helper.listener.scope is Scope.SUBAGENT
            assert "CANARY-MEMORY" not in helper.prompt.text
            assert helper.call("memory_write", {"content": "x"})["rule"] == "subagent"
            helper.taint("web")
        assert session.tainted == {"web"}
        with session.sub() as second:
            assert second.tainted == {"web"}
    header = json.loads(transcript(home, helper.id).read_text().splitlines()[0])
    assert header["parent"] == session.id and header["scope"] == "subagent"


def test_a_session_is_safe_to_share_by_threads(home):
    with home.session(scope=Scope.MAIN) as session:

        def work(n):
            for k in range(20):
                session.log("user", f"line {n}-{k}")
                session.call("memory_write", {"content": f"note {n}-{k}"})

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert session.call("session_logs", {"action": "recent"})["total_entries"] == 240  # with the calls
    log = home.today().text
    assert all(f"note {n}-{k}\n" in log for n in range(6) for k in range(20))


# -- what an agent knows of itself -----------------------------------------------------------------------------------------


def test_who_am_i_tells_each_scope_what_it_may_know(home):
    home.write("SOUL.md", "# Soul\n\nCalm.\n\n## Inside <!-- private -->\n\nCANARY-SOUL\n" + "x" * 5000)
    with home.session(scope=Scope.MAIN, model="m1") as session:
        told = session.call("who_am_i")
        assert told["workspace_dir"] == home.name and told["model"] == "m1" and told["identity"]["name"] == "Aria"
        assert len(told["soul_excerpt"]) == 2_049 and told["soul_excerpt"].endswith("…")
        assert "CANARY-SOUL" in told["soul_excerpt"]
    with home.session(scope=Scope.GROUP) as session:
        told = session.call("who_am_i")
        assert "workspace_dir" not in told and told["identity"]["name"] == "Aria"
        assert "Calm" in told["soul_excerpt"] and "CANARY-SOUL" not in told["soul_excerpt"]
    with home.session(scope=Scope.SUBAGENT) as session:
        told = session.call("who_am_i")
        assert told["identity"]["name"] is None and told["soul_excerpt"] is None


def test_what_do_i_know_is_short_and_says_so(home):
    sections = "".join(
        f"## Topic {n}\n\n" + "".join(f"- fact {n}.{k} " + "é" * 40 + "\n" for k in range(14)) + "\n" for n in range(30)
    )
    home.write("MEMORY.md", "# Memory\n\n- loose line\n\n" + sections)
    with home.session(scope=Scope.MAIN) as session:
        told = session.call("what_do_i_know")
        assert len(json.dumps(told, ensure_ascii=False).encode()) <= 6_144 and told["truncated"]
        assert all(len(section["bullets"]) <= 10 for section in told["sections"])
        assert told["sections"][1]["extra_bullets"] >= 4
        one = session.call("what_do_i_know", {"section": "TOPIC 7"})
        assert [section["heading"] for section in one["sections"]] == ["Topic 7"]
        assert len(session.call("what_do_i_know", {"limit": 2})["sections"]) == 2
        with pytest.raises(BadArguments, match="from 1 to 50"):
            session.call("what_do_i_know", {"limit": 51})


def test_my_stats_counts_what_there_is(home):
    home.remember("Ana uses a Samsung", section="People")
    home.remember("The boat lies in Lisbon _(score=0.42, hits=5, days=3)_")
    with home.session(scope=Scope.MAIN) as session:
        session.log("user", "hello")
        session.call("memory_search", {"query": "which phone does Ana use"})
        told = session.call("my_stats")
    assert (told["sessions_total"], told["memories_stored"], told["memories_promoted"]) == (1, 2, 1)
    assert told["recall_events_7d"] == 1 and told["last_dream_ts"] is None
    assert {"ana", "samsung"} <= {tag for tag, _ in told["top_concept_tags_7d"]}
    assert "SOUL.md" in told["workspace_files_present"]


def test_session_logs_lists_reads_and_searches_with_the_seeds_limits(home):
    ids = []
    for n in range(3):
        with home.session(scope=Scope.MAIN, channel="cli") as session:
            ids.append(session.id)
            for k in range(60):
                session.log("user" if k % 2 else "assistant", f"talk {n} line {k} about the harbour " + "y" * 300)
    with home.session(scope=Scope.MAIN) as session:
        assert session.call("session_logs", {"action": "recent"})["entries"] == []
        listed = session.call("session_logs", {"action": "list_sessions"})
        assert {row["session_id"] for row in listed["sessions"]} == {*ids, session.id} and listed["ok"]
        read = session.call("session_logs", {"action": "read_session", "session_id": ids[0]})
        assert (read["returned"], read["total_entries"], read["truncated"]) == (50, 60, True)
        assert read["entries"][0]["content"].startswith("talk 0 line 0 ") and len(read["entries"][0]["content"]) == 200
        recent = session.call("session_logs", {"action": "recent", "session_id": ids[1]})
        assert [e["entry"] for e in recent["entries"]] == list(range(50, 60))
        found = session.call("session_logs", {"action": "search", "query": "line 33", "max_chars": 40})
        assert found["hits"] and all(len(hit["preview"]) <= 40 for hit in found["hits"])
        for wrong in (
            {"action": "read_session"},
            {"action": "search"},
            {"action": "dance"},
            {"action": "recent", "limit": 501},
        ):
            with pytest.raises(BadArguments):
                session.call("session_logs", wrong)
        with pytest.raises(NoSuchSession):
            session.call("session_logs", {"action": "read_session", "session_id": "nobody"})


def test_reading_a_tainted_conversation_taints_the_reader(home):
    with home.session(scope=Scope.MAIN) as first:
        first.log("user", "the page says sesame opens it")
        first.taint("web")
    with home.session(scope=Scope.MAIN) as clean:
        clean.call("session_logs", {"action": "list_sessions"})
        assert clean.tainted == frozenset()
        clean.call("session_logs", {"action": "search", "query": "sesame"})
        assert clean.tainted == {"web"}
    with home.session(scope=Scope.MAIN) as clean:
        clean.call("memory_search", {"query": "sesame", "corpus": "all"})
        assert clean.tainted == {"web"}
    with home.session(scope=Scope.GROUP, channel="telegram") as group:
        group.log("user", "a stranger asks about quinces")
    with home.session(scope=Scope.MAIN) as clean:
        clean.call("session_logs", {"action": "search", "query": "quinces"})
        assert clean.tainted == {"peer"}


def test_transcripts_are_not_documents(home):
    with home.session(scope=Scope.MAIN) as session:
        session.log("user", "CANARY-TALK")
        with pytest.raises(BadArguments, match="session_logs"):
            session.call("memory_get", {"path": f"sessions/{session.id}.jsonl"})
        assert not [e for e in session.call("memory_tree", {"depth": 3})["entries"] if e.startswith("sessions")]
        assert session.call("memory_write", {"target": f"sessions/{session.id}.md", "content": "x"})["rule"] == "closed"


def test_a_struck_out_secret_does_not_travel_back_into_a_document(home):
    with home.session(scope=Scope.MAIN) as session:
        turn = session.log("user", "my key is sk-ant-" + "api03-" + "Zx9" * 20)
        for target in ("memory", "daily_log", "notes/keys.md"):
            answer = session.call("memory_write", {"target": target, "content": turn.content})
            assert (answer["status"], answer["rule"]) == ("refused", "placeholder")
    assert "REDACTED" not in "".join(p.read_text() for p in Path(home.name).rglob("*.md"))


def test_the_agentscope_pair_keeps_a_full_log_beside_the_context(tmp_path, clock):
    with Home.create(tmp_path / "home", name="Aria", clock=clock, settings={"dialect": "agentscope"}) as home:
        with home.session(scope=Scope.MAIN) as session:
            for n in range(8):
                session.log("user", f"line {n}")
            session.after_compaction(tokens=9, summary="eight lines", kept=2)
            session.log("user", "line 8")
        folder = Path(home.name) / "agents" / "main" / "sessions"
        kinds = lambda name: [json.loads(line)["type"] for line in (folder / name).read_text().splitlines()]  # noqa: E731
        assert kinds(f"{session.id}.log.jsonl").count("entry") == 9
        assert kinds(f"{session.id}.jsonl").count("entry") == 3
        listed = json.loads((folder / "sessions.json").read_text())
        assert set(listed["sessions"][session.id]) == {"summary", "updatedAt"}
        with home.session(scope=Scope.MAIN) as other, pytest.raises(BadArguments):
            other.call("memory_get", {"path": f"agents/bob/sessions/{session.id}.log.jsonl"})


def test_agents_who_add_to_memory_at_once_are_all_heard(tmp_path: Path) -> None:
    with Home.create(tmp_path / "crowd", name="Aria") as home:

        def add(number: int) -> list[str]:
            with home.session(scope="main", channel=f"room-{number}") as session:
                facts = [f"Shelf {number} holds box {box} of the archive" for box in range(6)]
                return [session.call("memory_write", {"target": "memory", "content": fact})["status"] for fact in facts]

        with ThreadPoolExecutor(4) as crowd:
            told = [status for each in crowd.map(add, range(4)) for status in each]

        assert told == ["written"] * 24
        assert home.read("MEMORY.md").text.count("of the archive") == 24


def test_a_session_of_a_home_that_was_closed_before_it_closes_quietly(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "closed", name="Aria")
    session = home.session(scope="main")
    session.log("user", "Ana likes tea")
    home.close()
    session.close()

    with Home.open(tmp_path / "closed") as again:
        assert [row.entries for row in again.sessions.list()] == [1]
