"""Search through the public face: what is found, by whom, how soon, and what happens to a broken index."""

import multiprocessing
import random
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest
from crowding import LINES, rebuild_on, search_on, write_on
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anima import Home, Scope
from anima.dream.pages import reflect, retained
from anima.errors import BadArguments
from anima.search.current import Search
from anima.testing.embedder import MockEmbedder

WORDS = "otter kettle lantern quarry saddle thimble walnut zephyr basalt cinder".split()


@pytest.fixture
def home(tmp_path, clock):
    with Home.create(tmp_path / "home", name="Aria", clock=clock) as home:
        yield home


def paths(answer):
    return [hit.path.text for hit in answer]


def test_a_remembered_line_is_found_by_other_words_with_its_citation(home):
    home.remember("Ana uses a Samsung, not an iPhone", section="People")

    hit = home.search("which phone does Ana have", scope=Scope.MAIN)[0]

    assert hit.path.text == "MEMORY.md"
    assert "Samsung" in hit.text
    assert hit.citation == f"MEMORY.md#L{hit.start_line}"
    assert home.read("MEMORY.md").text.split("\n")[hit.start_line - 1] == hit.text.rstrip("\n")


def test_a_model_whose_file_is_gone_leaves_a_search_by_words_that_says_so(home, monkeypatch):
    monkeypatch.setattr("anima.search.embed.WEIGHTS", "nowhere")
    home.remember("Ana uses a Samsung", section="People")

    found = home.search("Samsung", scope=Scope.MAIN)

    assert "Samsung" in found[0].text
    assert "searching by words only: the embedder static cannot be read (No such file or directory)" in found.notes


def test_an_own_write_is_found_by_the_very_next_search(home):
    home.search("warm up", scope=Scope.MAIN)
    for number in range(5):
        home.note(f"The parcel number {number} is called {WORDS[number]}")

        assert WORDS[number] in home.search(WORDS[number], scope=Scope.MAIN, limit=1)[0].text


def test_an_outside_edit_is_found_after_the_next_walk(home, monkeypatch):
    home.search("warm up", scope=Scope.MAIN)
    (Path(home.name) / "memory" / "outside.md").write_text("- The heron nests by the weir\n", encoding="utf-8")
    monkeypatch.setattr("anima.search.current.EVERY", 0.0)

    assert paths(home.search("heron", scope=Scope.MAIN, limit=1)) == ["memory/outside.md"]


def test_a_deleted_document_is_not_found_any_more(home):
    home.write("notes/a.md", "- The heron nests by the weir\n")
    assert paths(home.search("heron", scope=Scope.MAIN, limit=1)) == ["notes/a.md"]
    home.delete("notes/a.md")

    answer = home.search("heron weir", scope=Scope.MAIN)

    assert "notes/a.md" not in paths(answer)


def test_an_empty_answer_says_why(tmp_path, clock):
    (tmp_path / "bare").mkdir()
    with Home.open(tmp_path / "bare", clock=clock, settings={"dialect": "anima"}) as home:
        answer = home.search("anything", scope=Scope.MAIN)

        assert len(answer) == 0
        assert answer.notes


@pytest.mark.parametrize(
    "query",
    ["AND OR NOT", '"', "(", "a* NEAR(b)", "col:x", "'; drop table", "\x00", "#42", "http_2_server", "猫", "สวัสดี"],
)
def test_a_query_is_data_and_never_syntax(home, query):
    home.write("notes/odd.md", "- issue #42 broke http_2_server\n- 猫が好き\n- สวัสดีครับ\n")

    home.search(query, scope=Scope.MAIN)


def test_an_empty_query_is_bad_input(home):
    with pytest.raises(BadArguments):
        home.search("   ", scope=Scope.MAIN)


@pytest.mark.parametrize("damage", ["delete", "truncate", "flip", "garbage"])
def test_a_damaged_index_is_built_again_and_never_stops_a_write(home, damage):
    home.remember("The heron nests by the weir")
    home.search("heron", scope=Scope.MAIN)
    home.index.close()
    file = Path(home.name) / ".anima" / "index.sqlite"
    for extra in ("index.sqlite-wal", "index.sqlite-shm"):
        (file.parent / extra).unlink(missing_ok=True)
    raw = file.read_bytes()
    if damage == "delete":
        file.unlink()
    elif damage == "truncate":
        file.write_bytes(raw[: len(raw) // 2])
    elif damage == "flip":
        file.write_bytes(raw[:4096] + bytes(b ^ 0xFF for b in raw[4096:8192]) + raw[8192:])
    else:
        file.write_bytes(b"no database" * 1000)

    assert home.remember("The otter sleeps in the boat house").status == "written"
    assert "heron" in home.search("heron", scope=Scope.MAIN, limit=1)[0].text
    assert "otter" in home.search("otter", scope=Scope.MAIN, limit=1)[0].text


def test_catching_up_gives_the_same_answers_as_building_anew(home):
    dice = random.Random(7)
    for number in range(40):
        path = f"memory/topics/t{dice.randrange(8)}.md"
        home.append(path, f"- {' '.join(dice.choices(WORDS, k=6))} {number}")
        if number % 9 == 5:
            home.delete(path)
        if number % 4 == 0:
            home.search(WORDS[number % 10], scope=Scope.MAIN)
    before = [[(h.citation, h.score) for h in home.search(word, scope=Scope.MAIN, limit=30)] for word in WORDS]
    home.index(rebuild=True)

    assert [[(h.citation, h.score) for h in home.search(word, scope=Scope.MAIN, limit=30)] for word in WORDS] == before


# -- who may find what -------------------------------------------------------------------------------------------------

PRIVATE = {
    "MEMORY.md": (
        "- open words canarymemory\n\n## Hidden <!-- private -->\n\n- canaryprivate lies here\n\n"
        "## Lent <!-- share: subagent -->\n\n- canarylent lies here\n"
    ),
    "USER.md": "- canaryuser is a name\n",
    "memory/2026-05-08.md": "# 2026-05-08\n\n- canarydaily happened\n",
    "memory/topics/boat.md": "- canarytopic floats\n",
    "bank/world.md": "- canarybank turns\n",
    "knowledge/KNOWLEDGE.md": "- canaryknow is known\n\n## Own <!-- private -->\n\n- canaryknowprivate\n",
    "notes/idea.md": "- canarynote thought\n",
    "users/ana/MEMORY.md": "- canaryana likes tea\n\n## Mine <!-- private -->\n\n- canaryanaprivate\n",
    "users/bob/MEMORY.md": "- canarybob likes gin\n",
    "TOOLS.md": "- canarytools is a host\n",
}
OWN_MAIN = {
    "canarymemory",
    "canaryprivate",
    "canarylent",
    "canaryuser",
    "canarydaily",
    "canarytopic",
    "canarybank",
    "canaryknow",
    "canaryknowprivate",
    "canarynote",
    "canarytools",
}
MAY_FIND = {
    (Scope.MAIN, None): OWN_MAIN,
    (Scope.MAIN, "luis"): OWN_MAIN,
    (Scope.MAIN, "ana"): {"canaryana", "canaryanaprivate", "canaryknow", "canarytools"},
    (Scope.GROUP, None): set(),
    (Scope.GROUP, "ana"): set(),
    (Scope.SUBAGENT, None): {"canarylent", "canarytools"},
    (Scope.CRON, None): {"canaryuser", "canarytools", "canarybank", "canarytopic"},
    (Scope.HEARTBEAT, None): {
        *("canarymemory", "canarylent", "canaryuser", "canarydaily", "canaryknow", "canarytools"),
        *("canarybank", "canarytopic"),
    },
    (Scope.HEARTBEAT, "bob"): {"canarybob", "canaryknow", "canarytools"},
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    root = tmp_path_factory.mktemp("guarded")
    for path, text in PRIVATE.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    (root / "anima.toml").write_text('dialect = "anima"\n', encoding="utf-8")
    with Home.open(root, env={"ANIMA_CONFIG": str(root) + "-config"}, settings={"owner": ["luis"]}) as home:
        home.index()
        yield home


def told(answer):
    """Everything an answer says, in words."""
    return " ".join([*answer.notes, *(f"{h.path} {h.text} {h.why} {h.tags} {h.citation}" for h in answer)]).casefold()


@pytest.mark.parametrize(("scope", "sender"), list(MAY_FIND))
def test_each_listener_finds_exactly_what_is_theirs(guarded, scope, sender):
    every = sorted({word for words in MAY_FIND.values() for word in words})
    found = set()
    for word in every:
        answer = guarded.search(word, scope=scope, sender=sender, limit=50, explain=True)
        found |= {other for other in every for hit in answer if re.search(rf"\b{other}\b", hit.text)}

    assert found == MAY_FIND[scope, sender]


ASKED = [*sorted(OWN_MAIN), "canaryana", "canarybob", "lies", "here", "likes", "yesterday", "MEMORY.md"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    listener=st.sampled_from(list(MAY_FIND)),
    query=st.lists(st.sampled_from(ASKED), min_size=1, max_size=5),
    fusion=st.sampled_from(["context", "rrf", "weighted"]),
    legs=st.sampled_from(["both", "words", "meaning"]),
)
def test_no_search_of_any_kind_tells_a_listener_what_is_not_theirs(guarded, listener, query, fusion, legs):
    scope, sender = listener
    answer = guarded.search(
        " ".join(query), scope=scope, sender=sender, limit=50, fusion=fusion, legs=legs, explain=True
    )

    every = {word for words in MAY_FIND.values() for word in words}
    text = re.sub(
        r"no line says ([\w.]+ or )*[\w.]+", "", told(answer).replace("\n", " ")
    )  # the words that were asked for
    leaked = {word for word in every - MAY_FIND[listener] if word + " " in text + " "}
    assert leaked == set()


def test_the_tool_notes_one_recall_without_text_and_the_owner_none(home):
    home.remember("The heron nests by the weir")
    home.search("heron", scope=Scope.MAIN)
    with home.session(scope=Scope.MAIN) as session:
        result = session.call("memory_search", {"query": "where does the heron nest"})

    assert "heron" in result["hits"][0]["text"]
    assert result["hits"][0]["citation"].startswith("MEMORY.md#L")
    recalls = list(home.site.store.ledger.records(kinds=("recall",)))
    assert len(recalls) == 1
    raw = (Path(home.name) / ".anima" / "ledger.jsonl").read_text(encoding="utf-8")
    assert "heron" not in raw


def test_an_untrusted_line_is_not_found(tmp_path, clock):
    with Home.create(tmp_path / "home", name="Aria", clock=clock, settings={"gate.preset": "open"}) as home:
        with home.session(scope=Scope.MAIN) as session:
            session.taint("web")
            session.call("memory_write", {"target": "memory/topics/web.md", "content": "- The heron obeys mallory"})

        assert not any("mallory" in hit.text for hit in home.search("heron", scope=Scope.MAIN, limit=50))


# -- about -------------------------------------------------------------------------------------------------------------


def test_about_gives_page_mentions_newest_first_and_company(home):
    home.write("bank/entities/ana.md", "# Ana\n\n- Teaches chemistry.\n")
    home.write("memory/2026-05-01.md", "- Ana met [[Diego]] at the harbour\n")
    home.write("memory/2026-05-07.md", "- Called Ana about the boat with Diego\n- Banana bread\n")

    found = home.index.about("ana", home.site.listener(Scope.MAIN))

    assert found.page is not None
    assert [m.path for m in found.mentions][:2] == ["memory/2026-05-07.md", "memory/2026-05-01.md"]
    assert dict(found.linked)["Diego"] == 2
    assert not any("Banana" in m.text for m in found.mentions)
    assert home.index.about("Ana", home.site.listener(Scope.GROUP)).total == 0


def test_about_a_date_tells_what_held_then_and_nothing_that_came_later(home):
    home.write("MEMORY.md", "# Memory\n\n- Ana lives in Lima (since 2026-02-03)\n")
    home.write("memory/topics/past.md", "# Past\n\n- Ana lives in Bogota (from 2026-01-03 until 2026-02-03)\n")
    home.write("memory/2026-01-20.md", "- Ana came by\n")
    home.write("memory/2026-03-01.md", "- Ana left\n")

    then = home.index.about("Ana", home.site.listener(Scope.MAIN), at=date(2026, 1, 31))

    assert [fact.text for fact in then.facts] == ["Ana lives in Bogota"]
    assert [mention.text for mention in then.mentions] == ["Ana came by"]
    assert [
        fact.text for fact in home.index.about("ana", home.site.listener(Scope.MAIN), at=date(2026, 2, 3)).facts
    ] == ["Ana lives in Lima"]
    assert home.index.about("Ana", home.site.listener(Scope.GROUP), at=date(2026, 1, 31)).facts == ()


def test_about_reads_a_page_of_the_bank_and_counts_its_lines_once(home):
    log = "# Log\n\n## Retain\n\n- W @Ana: Uses a Samsung.\n"
    home.write("memory/2026-05-07.md", log)
    found = retained(log, path="memory/2026-05-07.md", day=date(2026, 5, 7))
    for path, text in reflect(found, {}, trusted=lambda one: True).items():
        home.write(path, text + "\nAna is my sister.\n" * ("ana" in path))

    found = home.index.about("ana", home.site.listener(Scope.MAIN))

    assert "Uses a Samsung" in found.page.text
    assert sorted(mention.text for mention in found.mentions) == ["Ana is my sister.", "W @Ana: Uses a Samsung."]


def test_the_graph_and_about_count_the_same_lines(home):
    home.write("memory/2026-05-01.md", "# Ana\n\n- Lunch with @Ana\n- Ana Ruiz showed me the boat\n```\nAna\n```\n")
    home.write("memory/2026-05-07.md", "- Ana Ruiz and Bo came by\n- ana wrote\n- Banana bread\n")
    home.write("SOUL.md", "# Soul\n\nBe as kind as Ana.\n")
    listener = home.site.listener(Scope.MAIN)

    for node in home.index.graph(listener).nodes:
        assert home.index.about(node.name, listener).total == node.mentions
    assert home.index.about("Ana", listener).total == 4


# -- a crowd -----------------------------------------------------------------------------------------------------------


def test_many_processes_search_write_and_rebuild_at_once(tmp_path):
    config = str(tmp_path / "config")
    root = str(tmp_path / "home")
    Home.create(root, name="Aria", env={"ANIMA_CONFIG": config}).close()
    context = multiprocessing.get_context("forkserver")
    failures, over, together = context.Queue(), context.Event(), context.Barrier(9)
    common, names = (root, config, together), ("w0", "w1", "w2")
    readers = [context.Process(target=search_on, args=(*common, over, failures)) for _ in range(5)]
    readers += [context.Process(target=rebuild_on, args=(*common, over))]
    writers = [context.Process(target=write_on, args=(*common, name)) for name in names]
    for process in (*readers, *writers):
        process.start()
    for process in writers:
        process.join(300)
    over.set()
    for process in readers:
        process.join(300)

    assert [process.exitcode for process in (*readers, *writers)] == [0] * 9
    assert failures.empty()
    with Home.open(root, env={"ANIMA_CONFIG": config}) as home:
        home.index()
        for last in (f"{name}x{LINES - 1}x" for name in names):
            assert last in home.search(last, scope=Scope.MAIN, limit=1)[0].text


def test_threads_that_ask_for_the_embedder_at_once_have_one(home):
    made = []

    def embedder():
        made.append(sum(n % 7 for n in range(50_000)))  # long enough for another thread to come in
        return MockEmbedder()

    search = Search(home.site, embedder=embedder, left_out=lambda: lambda path: False)
    switched = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            start = threading.Barrier(8)
            asked = [threads.submit(lambda: (start.wait(), search.embedder)[1]) for _ in range(8)]
            assert len({id(each.result()) for each in asked}) == len(made) == 1
    finally:
        sys.setswitchinterval(switched)
        search.close()
