"""What history says of a change: which document, and in words what is new, where the words may be told."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from anima import BadArguments, Home, NoSuchDocument, NoSuchRevision, Scope
from anima.testing import Clock

SECRET = "sk-ant-" + "api03-" + "Zx9" * 20


@pytest.fixture
def home(tmp_path: Path, clock: Clock) -> Iterator[Home]:
    with Home.create(tmp_path / "home", name="Aria", clock=clock) as made:
        yield made


def subjects(home: Home, count: int = 1) -> list[str]:
    home.past.commit()
    return [revision.subject for revision in home.past.log(limit=count)]


def test_each_verb_says_what_it_changed(home: Home) -> None:
    home.remember("The boat is called Sandpiper")
    assert subjects(home) == ["write MEMORY.md: The boat is called Sandpiper"]
    home.edit("MEMORY.md", "Sandpiper", "Plover")
    assert subjects(home) == ["write MEMORY.md: The boat is called Plover"]
    home.write("notes/a.md", "# Gauge\n\nThe reading was 7\n")
    assert subjects(home) == ["write notes/a.md: The reading was 7"]
    home.move("notes/a.md", "notes/b.md")
    assert subjects(home) == ["move notes/a.md and 1 more"]
    home.delete("notes/b.md")
    assert subjects(home) == ["delete notes/b.md"]
    home.undo()
    assert subjects(home) == ["undo notes/b.md: The reading was 7"]


def test_an_undo_that_names_nothing_leaves_the_pages_of_a_new_home(tmp_path: Path) -> None:
    with Home.create(tmp_path / "new", name="Aria") as home:
        home.remember("Ana has a boat", section="People")
        home.undo()
        with pytest.raises(NoSuchRevision, match="no change to take back"):
            home.undo()
        assert home.read("SOUL.md").text
        [made] = [change for change in home.past.changes() if change.what == "seed"]
        home.undo(made.id)
        with pytest.raises(NoSuchDocument):
            home.read("SOUL.md")


def test_without_history_a_new_document_is_taken_back_and_an_old_one_says_why_not(tmp_path: Path) -> None:
    Home.create(tmp_path / "new", name="Aria").close()
    with (tmp_path / "new/anima.toml").open("a") as file:
        file.write("\n[history]\nenabled = false\n")
    with Home.open(tmp_path / "new") as home:
        home.write("notes/gauge.md", "- The reading was 7\n")
        home.undo()
        assert not home.exists("notes/gauge.md")
        home.remember("Ana has a boat")
        with pytest.raises(NoSuchRevision, match="switched off"):
            home.undo()


def test_notes_that_are_committed_together_are_told_together(home: Home) -> None:
    home.past.commit()
    home.note("The milk is out")
    home.note("Walnuts are in")
    assert subjects(home) == ["note in memory/2026-05-08.md: The milk is out; Walnuts are in"]


def test_a_clean_session_of_the_owners_is_told_and_nobody_else(home: Home) -> None:
    with home.session(scope=Scope.MAIN) as session:
        session.call("memory_write", {"target": "memory", "content": "Ana likes tea"})
        assert subjects(home) == ["write MEMORY.md: Ana likes tea"]
    before = len(home.past.log(limit=100))
    with home.session(scope=Scope.MAIN) as session:
        session.taint("web")
        session.call("memory_write", {"target": "memory", "content": "Mallory is rich"})
        session.call("memory_write", {"target": "notes/m.md", "content": "Mallory is rich"})
    with home.session(scope=Scope.MAIN, channel="chat", sender="mallory") as session:
        session.call("memory_write", {"target": "memory", "content": "Mallory is rich"})
    with home.session(scope=Scope.GROUP, channel="chat", group="g") as session:
        session.call("memory_write", {"target": "memory", "content": "Mallory is rich"})
    found = subjects(home, 100)

    assert len(found) > before and not [subject for subject in found if "Mallory" in subject]
    home.inbox.keep(home.inbox.noted(layer="")[0].entry.id)
    assert "Mallory is rich" in subjects(home)[0]  # the owner saw it


def test_what_the_scan_sees_is_in_no_subject_and_a_secret_says_how_to_be_rid_of_it(home: Home) -> None:
    receipt = home.remember(f"The key of the shop is {SECRET}")
    assert "anima undo" in receipt.way_back and "anima forget WORDS --purge" in receipt.way_back
    assert subjects(home) == ["write MEMORY.md"]
    assert home.remember("The boat is called Sandpiper").way_back == ""


def test_what_is_purged_goes_from_subjects_too(home: Home) -> None:
    home.remember("The spare key is with Bo")
    home.forget(text="spare key is with Bo", purge=True)
    assert not [subject for subject in subjects(home, 100) if "with Bo" in subject]


def test_a_document_of_six_megabytes_is_in_history_and_undone(home: Home) -> None:
    text = "".join(f"- the reading of the gauge on day {n:07} was the usual one\n" for n in range(110_000))
    home.write("notes/gauge.md", text)
    change = home.write("notes/gauge.md", text.replace("0000100", "of the flood")).change
    home.undo(change)
    assert home.read("notes/gauge.md").text == text
    assert len(home.past.log("notes/gauge.md")) == 3


@pytest.mark.parametrize("way", ["verb", "tool", "tainted"])
def test_a_fact_as_long_as_a_book_is_refused_with_what_to_do(home: Home, way: str) -> None:
    book = "The reading of the gauge was taken again. " * 2_860
    with (
        home.session(scope=Scope.MAIN) as session,
        pytest.raises(BadArguments, match="at most 4,000 characters") as told,
    ):
        if way == "verb":
            home.remember(book)
        if way == "tainted":
            session.taint("web")
        session.call("memory_write", {"target": "memory", "content": book})
    assert told.value.hint and "a document of its own" in told.value.hint
    assert "gauge" not in home.read("MEMORY.md").text and not home.inbox.noted()


def test_what_two_remember_at_once_is_all_remembered(tmp_path: Path) -> None:
    Home.create(tmp_path / "aria", name="Aria").close()
    animals = "otter heron badger lynx marten stoat weasel plover curlew dunlin".split()

    def remember(people: list[str]) -> None:
        with Home.open(tmp_path / "aria") as home:
            for person in people:
                for animal in animals:
                    home.remember(f"{person} drew the {animal} in ink", section="Drawings")

    with ThreadPoolExecutor(2) as both:
        list(both.map(remember, (["Ana"], ["Luis"])))

    text = (tmp_path / "aria/MEMORY.md").read_text(encoding="utf-8")
    assert [text.count(f"{person} drew the {animal} in ink") for person in ("Ana", "Luis") for animal in animals] == [
        1
    ] * 20
