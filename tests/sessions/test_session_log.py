"""What a session leaves behind: a true record, with secrets struck out and the prompt it was held under."""

import json
from pathlib import Path

import pytest

from anima import Home, Scope
from anima.errors import BadArguments, BadConfig
from anima.sessions.record import transcripts_in
from anima.sessions.replay import read


@pytest.fixture
def home(tmp_path, clock):
    with Home.create(tmp_path / "home", name="Aria", clock=clock) as home:
        yield home


def records(home, session):
    raw = (Path(home.name) / "sessions" / f"{session.id}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in raw.splitlines()]


def test_a_session_writes_a_header_and_its_turns_with_the_seeds_keys(home):
    with home.session(scope=Scope.MAIN, channel="telegram", sender="luis") as session:
        session.log("user", "hello", message_id="m1")
        session.log("assistant", "hello Luis")
    found = records(home, session)

    assert list(found[0])[:6] == ["type", "version", "id", "timestamp", "agent_id", "source_plugin"]
    assert found[0]["id"] == session.id and found[0]["source_plugin"] == "telegram" and found[0]["persona"] == "SOUL.md"
    assert any(row["path"].endswith("MEMORY.md") for row in found[0]["manifest"])
    assert [(r["role"], r["content"]) for r in found if r["type"] == "entry"] == [
        ("user", "hello"),
        ("assistant", "hello Luis"),
    ]
    assert found[1]["sender_id"] == "luis" and found[1]["message_id"] == "m1"
    assert found[-1]["type"] == "close"


def test_secrets_never_reach_the_transcript(home):
    secret = "sk-ant-" + "api03-" + "Zx9" * 20
    with home.session(scope=Scope.MAIN) as session:
        turn = session.log("user", f"my key is {secret}, keep it")

    raw = (Path(home.name) / "sessions" / f"{session.id}.jsonl").read_text(encoding="utf-8")
    assert secret not in raw
    assert "[REDACTED:" in turn.content


def test_a_session_in_which_nothing_is_said_leaves_no_transcript(home):
    home.session(scope=Scope.MAIN).close()

    assert not (Path(home.name) / "sessions").exists()


def test_taint_is_in_the_record(home):
    with home.session(scope=Scope.MAIN) as session:
        session.log("user", "look at this page")
        session.taint("web")

    assert {"web"} == {origin for r in records(home, session) if r["type"] == "state" for origin in r["taint"]}


def test_no_transcript_is_written_where_they_are_switched_off(tmp_path, clock):
    with Home.create(tmp_path / "home", name="Aria", clock=clock, settings={"sessions.dir": ""}) as home:
        with home.session(scope=Scope.MAIN) as session:
            assert session.log("user", "hello") is None

        assert not (Path(home.name) / "sessions").exists()


def test_a_closed_session_takes_no_more_lines_and_a_bad_pattern_stops_the_first(tmp_path, home, clock):
    session = home.session(scope=Scope.MAIN)
    session.close()
    with pytest.raises(BadArguments):
        session.log("user", "too late")
    with pytest.raises(BadConfig):
        Home.open(home.name, settings={"sessions.patterns": ["("]})


def test_transcripts_are_neither_prompt_nor_document_for_an_agent(home):
    with home.session(scope=Scope.MAIN) as session:
        session.log("user", "the word is zebrafinch")
        answer = session.call("memory_write", {"target": f"sessions/{session.id}.md", "content": "x"})

    assert answer["status"] == "refused"
    assert "zebrafinch" not in home.prompt(scope=Scope.MAIN).text
    assert len([h for h in home.search("zebrafinch", scope=Scope.MAIN) if "zebrafinch" in h.text]) == 0
    page = read(transcripts_in(home.site.store, "sessions").open(session.id))
    assert page.entries[0].content == "the word is zebrafinch"
