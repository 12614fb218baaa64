"""What an attacker once got past us with the tools of a session: each item a promise, carried out on a real home.

A test marked `xfail` is an attack that still succeeds; it is strict, so the repair that ends it must take the mark off.
Everything goes through the doors that stay: `Home`, `Session.call`, prompts. The home has its default settings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anima import Home, HomeError, Scope, Session
from anima.testing import Clock


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home.create(tmp_path / "aria", name="Aria", clock=Clock()) as made:
        yield made


def told(session: Session, tool: str, **given: Any) -> str:
    """Everything a tool's answer tells, an error's kind and sentence included."""
    try:
        return json.dumps(session.call(tool, given), ensure_ascii=False, sort_keys=True)
    except HomeError as error:
        return f"{type(error).__name__}: {error} {error.hint}"


# -- C2: an edit is matched in the listener's view alone -------------------------------------------------------------------

PIN = "7319"
PARTLY_SHARED = f"""# Memory

- the PIN of the door is {PIN}

## House <!-- share: subagent, group -->

- the roof is red

## Safe

- the PIN of the safe is {PIN}
"""
PARTLY_PRIVATE = (
    f"# Rules\n\n- be kind\n\n## Inside <!-- private -->\n\n- the PIN is {PIN}\n\n## Outside\n\n- be brief\n"
)
HIDDEN = [
    ("MEMORY.md", PARTLY_SHARED, Scope.SUBAGENT, "the roof"),
    ("MEMORY.md", PARTLY_SHARED, Scope.GROUP, "the roof"),
    ("AGENTS.md", PARTLY_PRIVATE, Scope.GROUP, "be kind"),
    ("AGENTS.md", PARTLY_PRIVATE, Scope.CRON, "be kind"),
]


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize(("path", "text", "scope", "seen"), HIDDEN)
def test_c2_an_edit_does_not_tell_what_stands_in_a_hidden_part(
    home: Home, path: str, text: str, scope: Scope, seen: str, every: bool
) -> None:
    home.write(path, text)
    with home.session(scope=scope) as session:
        for right, wrong in ((PIN, "7318"), (f"is {PIN}", "is 7318"), ("the PIN", "the PAN")):
            answers = [
                told(session, "memory_write", target=path, old_string=guess, new_string="x", replace_all=every)
                for guess in (right, wrong)
            ]
            assert answers[0] == answers[1]


@pytest.mark.parametrize(("path", "text", "scope", "seen"), HIDDEN)
def test_c2_all_failures_of_an_edit_have_one_answer(home: Home, path: str, text: str, scope: Scope, seen: str) -> None:
    home.write(path, text)
    with home.session(scope=scope) as session:
        wrong = (PIN, "nothing like it", "- ", "\n")  # hidden, nowhere, and twice or more in what is seen
        assert (
            len({told(session, "memory_write", target=path, old_string=guess, new_string="x") for guess in wrong}) == 1
        )


@pytest.mark.parametrize(("path", "text", "scope", "seen"), [case for case in HIDDEN if case[2] is not Scope.SUBAGENT])
@pytest.mark.parametrize("new", ["they say", "", "two\nlines\n"])
def test_c2_an_edit_of_what_is_seen_leaves_the_hidden_part_hidden_and_as_it_was(
    home: Home, path: str, text: str, scope: Scope, seen: str, new: str
) -> None:
    home.write(path, text)
    with home.session(scope=scope) as session:
        before = session.read(path)
        last = before.rstrip("\n").rpartition("\n")[2] + "\n"  # with the line end that keeps what follows apart
        for old in (seen, last) if seen in before else (last,):
            home.write(path, text)
            answer = session.call("memory_write", {"target": path, "old_string": old, "new_string": new})
            [receipt] = home.approve(answer["proposal"], approver="terminal")
            assert receipt.status == "written"
            assert PIN in home.read(path).text
            after = session.read(path)
            assert PIN not in after
            assert after.rstrip("\n") == before.replace(old, new, 1).rstrip("\n")


def test_c2_text_that_is_seen_on_both_sides_of_a_hidden_part_is_edited_around_it(home: Home) -> None:
    home.write("AGENTS.md", PARTLY_PRIVATE)
    with home.session(scope=Scope.GROUP) as session:
        answer = session.call(
            "memory_write",
            {"target": "AGENTS.md", "old_string": "be kind\n\n## Outside", "new_string": "be good\n\n## Out"},
        )
    home.approve(answer["proposal"], approver="terminal")

    assert home.read("AGENTS.md").text == (
        f"# Rules\n\n- be good\n\n## Out\n## Inside <!-- private -->\n\n- the PIN is {PIN}\n\n\n\n- be brief\n"
    )


# -- a line that was given no place comes under no marked heading --------------------------------------------------------------

MARKED = [
    "## Team <!-- share: group -->",
    "## Team <!-- share: subagent, group -->",
    "## Mine <!-- private -->",
    "# Team <!-- share: group -->",
    "## Dreamed 2026-05-01 03:00 UTC",
    "### Team <!-- share: cron, group -->",
]


def under(text: str, line: str) -> list[str]:
    """The headings a line stands under, outermost first."""
    above: list[str] = []
    for each in text.splitlines():
        if line in each:
            return above
        if each.startswith("#"):
            level = len(each) - len(each.lstrip("#"))
            above = [*(h for h in above if len(h) - len(h.lstrip("#")) < level), each]
    raise AssertionError(f"{line!r} is not there:\n{text}")


def seen_by_others(home: Home, path: str) -> str:
    """What groups, sub-agents and timers see of a document, by tool and by prompt."""
    found = ""
    for scope in (Scope.GROUP, Scope.SUBAGENT, Scope.CRON):
        with home.session(scope=scope) as session:
            found += session.prompt.text + told(session, "memory_get", path=path)
    return found


@pytest.mark.parametrize("heading", MARKED)
@pytest.mark.parametrize("ways", ["remember", "memory", "MEMORY.md"])
def test_a_line_without_a_place_comes_under_no_heading_that_is_shared_private_or_dreamed(
    home: Home, heading: str, ways: str
) -> None:
    home.write("MEMORY.md", f"# Memory\n\n- a first line\n\n{heading}\n\n- what all know\n")
    for fact in ("Ana is expecting", "Luis owes the bank"):
        if ways == "remember":
            home.remember(fact)
        else:
            with home.session(scope=Scope.MAIN) as session:
                session.call("memory_write", {"target": ways, "content": f"- {fact}\n"})
    text = home.read("MEMORY.md").text

    for fact in ("Ana is expecting", "Luis owes the bank"):
        assert heading not in under(text, fact) and under(text, fact)[-1].endswith("# Notes")
        assert fact not in seen_by_others(home, "MEMORY.md")
    assert under(text, "what all know")[-1] == heading
    assert text.count("# Notes") == 1


def test_the_notes_that_are_there_are_used_again_after_a_dream(home: Home) -> None:
    home.write("MEMORY.md", "# Memory\n\n## Notes\n\n- one\n\n## Dreamed 2026-05-01 03:00 UTC\n\n- two\n")
    home.remember("three")

    assert home.read("MEMORY.md").text == (
        "# Memory\n\n## Notes\n\n- one\n- three\n\n## Dreamed 2026-05-01 03:00 UTC\n\n- two\n"
    )


@pytest.mark.parametrize("notes", ["## Notes <!-- share: group -->", "## Team <!-- share: group -->\n\n### Notes"])
def test_notes_that_are_shared_are_no_place_for_such_a_line(home: Home, notes: str) -> None:
    home.write("MEMORY.md", f"# Memory\n\n{notes}\n\n- what all know\n")
    home.remember("Ana is expecting")

    assert "expecting" not in seen_by_others(home, "MEMORY.md")


@pytest.mark.parametrize("way", ["note", "daily_log"])
def test_a_note_in_a_day_whose_last_section_is_shared_is_not(home: Home, way: str) -> None:
    path = "memory/2026-05-08.md"
    home.write(path, "# 2026-05-08\n\n## Team <!-- share: group -->\n\n- the boat sails at five\n")
    if way == "note":
        home.note("Ana is expecting")
    else:
        with home.session(scope=Scope.MAIN) as session:
            session.call("memory_write", {"target": "daily_log", "content": "Ana is expecting"})

    assert "expecting" in home.read(path).text and "expecting" not in seen_by_others(home, path)
    with home.session(scope=Scope.GROUP) as session:
        assert "sails at five" in session.read(path)
