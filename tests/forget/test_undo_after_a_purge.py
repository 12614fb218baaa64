"""After a purge everything else can still be taken back, and nothing that was purged comes back by any road."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_forgetting import holding

from anima import Home, HomeError, NoSuchRevision, Origin, Scope, StaleWrite
from anima.testing import Clock

NUMBER = "555-0199"


@pytest.fixture(params=["folder", "one file"])
def home(request, tmp_path):
    place = tmp_path / ("home" if request.param == "folder" else "home.sqlite")
    with Home.create(place, name="Aria", clock=Clock()) as made:
        yield made


def lines(home: Home, path: str = "MEMORY.md") -> list[str]:
    return [line for line in home.read(path).text.split("\n") if line.startswith("- ")] if home.exists(path) else []


def remembered(home: Home, *facts: str) -> list[str]:
    return [home.remember(fact, section="People").change or "" for fact in facts]


def test_every_change_of_other_lines_can_still_be_taken_back(home):
    tea, walnuts, _, chess = remembered(
        home, "Ana drinks tea", "Ben eats walnuts", f"Call {NUMBER}", "Cora plays chess"
    )
    home.forget(text=NUMBER, purge=True)

    assert [line for line in home.past.show_undo(change=chess).diff.split("\n") if line[:2] in ("+-", "--")] == [
        "--- a/MEMORY.md",
        "-- Cora plays chess",
    ]
    for change, left in ((chess, 2), (tea, 1), (walnuts, 0)):
        home.undo(change)
        assert len(lines(home)) == left
    again = home.past.changes(limit=3)  # and each of those undos, too
    for each in again:
        home.undo(each.id)
    assert lines(home) == ["- Ana drinks tea", "- Ben eats walnuts", "- Cora plays chess"]


def test_of_what_was_purged_an_undo_says_that_it_cannot_come_back_and_writes_nothing(home):
    _, wrote = remembered(home, "Ana drinks tea", f"Call {NUMBER}")
    changed = home.edit("MEMORY.md", f"Call {NUMBER}", "Call nobody").change
    again = remembered(home, f"It was {NUMBER}")[0]
    purge = home.forget(text=NUMBER, purge=True).change
    text = home.read("MEMORY.md").text

    for change in (wrote, changed, again, purge, None):
        for attempt in (home.past.show_undo, home.past.undo):
            with pytest.raises(NoSuchRevision, match="was purged, and what was purged cannot come back"):
                attempt(change=change)
    assert home.read("MEMORY.md").text == text and "- Call nobody" in text


def test_of_a_change_that_wrote_other_lines_too_those_are_taken_back(home):
    home.write("notes/a.md", "- before\n")
    change = home.write("notes/a.md", f"- before\n- one\n- call {NUMBER}\n  at nine\n- two\n").change
    home.append("notes/a.md", "- after\n")
    home.forget(text=NUMBER, purge=True)

    assert lines(home, "notes/a.md") == ["- before", "- one", "- two", "- after"]
    home.undo(change)
    assert lines(home, "notes/a.md") == ["- before", "- after"]


def test_a_document_that_a_change_made_or_took_away_is_taken_back_without_the_words(home):
    made = home.write("notes/a.md", f"- one\n- call {NUMBER}\n").change
    home.write("notes/b.md", f"- one\n- call {NUMBER}\n")
    gone = home.delete("notes/b.md").change
    home.write("notes/c.md", "- nothing of it\n")
    other = home.delete("notes/c.md").change
    home.forget(text=NUMBER, purge=True)

    home.undo(made)
    assert not home.exists("notes/a.md")
    home.undo(other)
    assert lines(home, "notes/c.md") == ["- nothing of it"]
    with pytest.raises(NoSuchRevision, match="cannot come back"):
        home.undo(gone)
    assert [each.subject for each in home.past.log("notes/b.md")] == ["delete notes/b.md", "write notes/b.md: one"]
    home.past.restore("notes/b.md", at=home.past.log("notes/b.md")[1].id)
    assert lines(home, "notes/b.md") == ["- one"]


def test_lines_of_a_log_are_taken_back_round_a_purged_one(home):
    first, secret, last = (home.note(text).change for text in ("Fed the cat", f"Called {NUMBER}", "Paid the mast"))
    home.forget(text=NUMBER, purge=True)

    with pytest.raises(NoSuchRevision, match="cannot come back"):
        home.undo(secret)
    path = home.layout.daily_path(home.site.today()).text
    home.undo(last)
    home.undo(first)
    assert not home.exists(path) or ("cat" not in home.read(path).text and "mast" not in home.read(path).text)


def test_a_session_is_taken_back_without_what_was_purged_of_it(home):
    with home.session(scope=Scope.MAIN, channel="cli") as session:
        for fact in ("Ana drinks tea", f"Call {NUMBER}", "Cora plays chess"):
            session.call("memory_write", {"target": "memory", "content": fact, "section": "People"})
    remembered(home, "Dan sails")
    home.forget(text=NUMBER, purge=True)

    home.undo(session=session.id)
    assert lines(home) == ["- Dan sails"]


def test_a_night_is_taken_back_though_the_words_stood_all_around_it(home):
    remembered(home, *(f"{name} knows {NUMBER}" for name in ("Ana", "Ben")), "Cora plays chess")
    text = home.read("MEMORY.md").text
    middle = text.replace("- Ben", "- Abe sings\n- Ben")
    change = home.write("MEMORY.md", middle).change
    home.write("MEMORY.md", middle.replace("## Preferences\n", f"## Preferences\n\n- dial {NUMBER}\n"))
    home.forget(text=NUMBER, purge=True)

    assert lines(home) == ["- Abe sings", "- Cora plays chess"]
    home.undo(change)
    assert lines(home) == ["- Cora plays chess"]


def test_what_somebody_took_out_by_hand_was_not_purged(home):
    _, change, _ = remembered(home, "Ben eats walnuts", "Ana drinks tea", f"Call {NUMBER}")
    home.forget(text=NUMBER, purge=True)
    home.edit("MEMORY.md", "- Ana drinks tea\n", "")

    assert home.past.show_undo(change=change).files == 0
    changed = home.edit("MEMORY.md", "## Preferences", "## What she likes").change
    home.edit("MEMORY.md", "## What she likes", "## Likes")
    with pytest.raises(StaleWrite):
        home.undo(changed)


def test_no_road_of_the_past_brings_back_what_was_purged(home, tmp_path):
    with home.session(scope=Scope.MAIN, channel="cli") as session:
        session.call("memory_write", {"target": "memory", "content": f"Call {NUMBER}", "section": "People"})
        session.taint(Origin.WEB)
        session.call("memory_write", {"target": "memory", "content": f"Or {NUMBER} at night"})
    remembered(home, f"Call {NUMBER}", "Ana drinks tea", f"Really {NUMBER}")
    home.note(f"Called {NUMBER}")
    home.edit("MEMORY.md", f"Really {NUMBER}", "Really not")
    home.write("notes/a.md", f"# {NUMBER}\n\nbelow\n")
    home.move("notes/a.md", "notes/b.md")
    home.delete("notes/b.md")
    home.write("notes/c.md", f"- {NUMBER}\n")
    home.undo()
    home.remember("Cora plays chess", reason=f"as {NUMBER} said")
    home.forget(text=NUMBER, purge=True)
    place = Path(home.name) if Path(home.name).is_dir() else tmp_path
    assert holding(place, [NUMBER]) == []

    for revision in home.past.log(limit=1000):
        for path in {path for each in home.past.log(limit=1000) for path in each.paths}:
            attempted(lambda at=revision.id, path=path: home.past.restore(path, at=at))
        assert NUMBER not in home.past.diff(revision.id)
    for _ in range(2):  # and the undos of undos
        for done in home.past.changes():
            attempted(lambda change=done.id: home.undo(change))
    attempted(lambda: home.undo(session=session.id))
    for entry in home.list_all():
        for number, _ in enumerate(home.read(entry.path).text.split("\n")[:-1], 1):
            assert NUMBER not in home.past.why(entry.path, number).text
    assert holding(place, [NUMBER]) == []


def attempted(act) -> None:
    """Does what it can; what cannot be done says why, without the words."""
    try:
        act()
    except HomeError as error:
        assert NUMBER not in f"{error} {error.hint}"
