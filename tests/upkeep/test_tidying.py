"""Tidying a home: what is suggested, what is done as one change, and what is left alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from anima import BadArguments, DocPath, Home, Origin, Scope, StaleWrite
from anima.dream.material import Tallies
from anima.layout.dialects import DIALECTS
from anima.memory.write import Judged
from anima.model import Actor, Change, Kind
from anima.testing import Clock
from anima.upkeep import folder_config
from anima.upkeep.hygiene import statements
from killing import dying

OLD = "# 2026-01-03\n\n- [09:10] The ferry to the island costs 14 euros\n"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home.create(tmp_path / "home", name="Aria", clock=Clock()) as made:
        yield made


def documents(home: Home) -> dict[str, str]:
    return {entry.path: home.read(entry.path).text for entry in home.list_all() if entry.path.endswith(".md")}


def merges(home: Home) -> list[tuple[str, list[str]]]:
    """(what stays, what goes) of each suggested merge, as PATH:LINE."""
    found = [one for one in home.upkeep.look().suggestions if one.kind == "merge"]
    return [
        (f"{one.keep.path}:{one.keep.number}", [f"{line.path}:{line.number}" for line in one.remove])
        for one in found
        if one.keep
    ]


def agreed(home: Home) -> list:
    return [one for one in home.upkeep.look().suggestions if one.kind != "choose"]


# -- looking ---------------------------------------------------------------------------------------------------------------


def test_an_empty_home_has_nothing_to_tidy(home: Home) -> None:
    found = home.upkeep.look()
    assert (found.stale, found.duplicates, found.contradictions, found.suggestions) == ((), (), (), ())
    assert home.upkeep.tidy([]) == ()


def test_looking_changes_nothing(home: Home) -> None:
    home.write("memory/2026-01-03.md", OLD)
    home.write("notes/a.md", "- Ana uses a Samsung phone\n- ana uses a samsung phone!\n")
    before, changes = documents(home), len(home.past.changes())

    assert len(home.upkeep.look().suggestions) == 2
    assert (documents(home), len(home.past.changes())) == (before, changes)


def test_a_line_goes_where_memory_says_it_already_and_the_evidence_is_shown(home: Home) -> None:
    home.remember("The lease of the flat ends on 3 May 2027")
    home.write("notes/flat.md", "# Flat\n\n- The lease of the flat ends on 2027-05-03\n- Rooms: 3\n")
    [one] = home.upkeep.look().suggestions

    assert one.keep is not None and one.keep.path == "MEMORY.md"
    assert one.evidence == ("dates: the same words that carry meaning: lease, flat, ends",)
    assert one.diff == (
        "--- a/notes/flat.md\n+++ b/notes/flat.md\n@@ -1,4 +1,3 @@\n # Flat\n \n"
        "-- The lease of the flat ends on 2027-05-03\n - Rooms: 3\n"
    )
    [receipt] = home.upkeep.tidy(one)
    assert receipt.status == "written"
    assert home.read("notes/flat.md").text == "# Flat\n\n- Rooms: 3\n"
    assert home.past.why("MEMORY.md", one.keep.number).text == "- The lease of the flat ends on 3 May 2027"
    assert home.upkeep.look().suggestions == ()


def test_all_of_it_is_one_change_and_one_undo_brings_every_byte_back(home: Home) -> None:
    home.write("memory/2026-01-03.md", OLD)
    home.write("memory/2026-01-04.md", "no newline at the end, and nothing to compare")
    home.write("notes/a.md", "\ufeff# A\r\n\r\n- Luis repaired the old boat\r\n- Otter is the name of the dog\r\n")
    home.write("notes/b.md", "- The old boat was repaired by Luis\n- The dog's name is Otter")
    before, count = documents(home), len(home.past.changes())

    receipts = home.upkeep.tidy(agreed(home))

    assert {receipt.status for receipt in receipts} == {"written"}
    assert len({receipt.change for receipt in receipts}) == 1 and len(home.past.changes()) == count + 1
    assert {path for path in documents(home) if "archive" in path} == {
        "memory/archive/2026/2026-01-03.md",
        "memory/archive/2026/2026-01-04.md",
    }
    assert home.past.audit().ok
    home.undo()
    assert documents(home) == before


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: Ana uses a Samsung phone\n---\n",
        "```\nAna uses a Samsung phone\n```\n",
        "<!--\nAna uses a Samsung phone\n-->\n",
        "- [ ] Ana uses a Samsung phone\n",
        "> Ana uses a Samsung phone\n",
        "| Ana uses a Samsung phone |\n",
        "# Ana uses a Samsung phone\n",
        "Ana uses a Samsung phone\n===\n",
        "- Ana uses a Samsung phone\n  - and has two of them\n",
        "- On the road\n  - Ana uses a Samsung phone\n",
        "Ana uses a Samsung phone\nand never an iPhone, as she says.\n",
        "<!-- anima:kept -->\n- Ana uses a Samsung phone\n<!-- /anima:kept -->\n",
        "- Ok\n- Yes!\n",
    ],
)
def test_what_says_nothing_by_itself_is_not_compared(text: str) -> None:
    assert list(statements(text)) == []


def test_a_line_comes_with_its_headings_and_its_number() -> None:
    [one] = statements("---\na: b\n---\n# People\n\n## Ana\n\nProse that is long enough to say something.\n\n## Luis\n")

    assert (one.number, one.under, one.marked) == (8, ("People", "Ana"), False)


def test_the_same_words_below_two_people_are_two_facts(home: Home) -> None:
    home.write("notes/people.md", "## Ana\n\n- Prefers the window seat\n\n## Luis\n\n- Prefers the window seat\n")
    home.write(
        "notes/more.md",
        "## Preferences\n\n- Wants the short answers first\n\n# Notes\n\n- Wants the short answers first\n",
    )

    assert merges(home) == [("notes/more.md:3", ["notes/more.md:7"])]


def test_what_is_private_or_shared_stays_where_it_is(home: Home) -> None:
    text = "- The door code is 4711 again\n\n## Notes <!-- private -->\n\n- The door code is 4711 again\n"
    home.write("notes/a.md", text)
    assert len(home.upkeep.look().duplicates) == 1
    assert merges(home) == []


@pytest.mark.parametrize(
    "path", ["SOUL.md", "AGENTS.md", "skills/mail/SKILL.md", "knowledge/KNOWLEDGE.md", "DREAMS.md"]
)
def test_rules_souls_skills_and_reference_books_are_left_alone(home: Home, path: str) -> None:
    home.write(path, "# Title\n\n- Always show the diff before writing\n- Always show the diff, before writing.\n")

    assert home.upkeep.look().duplicates == ()


def test_a_log_is_stale_after_ninety_days_and_not_before(home: Home) -> None:
    today = home.site.today()
    for age in (90, 91, -300):
        home.write(f"memory/{today - timedelta(days=age)}.md", f"- Ana bought {abs(age)} nails\n")

    assert [log.age for log in home.upkeep.look().stale] == [91]
    assert [log.age for log in home.upkeep.look(days=10).stale] == [91, 90]


def test_every_persons_layer_is_looked_at_by_itself(home: Home) -> None:
    home.remember("Ana uses a Samsung phone")
    home.write("users/luis/MEMORY.md", "- Ana uses a Samsung phone\n- Luis sails every summer\n")
    home.write("users/luis/memory/2026-05-07.md", "- Luis sails every summer.\n")
    home.write("users/luis/memory/2026-01-02.md", "- Luis bought a new sail in Porto\n")

    assert merges(home) == [("users/luis/MEMORY.md:2", ["users/luis/memory/2026-05-07.md:1"])]
    assert [log.path for log in home.upkeep.look().stale] == ["users/luis/memory/2026-01-02.md"]
    home.upkeep.tidy(agreed(home))
    assert home.exists("users/luis/memory/archive/2026/2026-01-02.md")


def test_a_document_that_is_moved_where_another_was_keeps_the_sources_of_its_own_lines(home: Home) -> None:
    line = "- Invoices go to the red mailbox"
    home.write("memory/archive/2026/2026-01-03.md", f"{line}\n")
    home.write("memory/archive/2026/2026-01-03.md", "")
    (Path(home.name) / "memory/archive/2026/2026-01-03.md").unlink()
    home._writer.carry_out(_webs("memory/2026-01-03.md", f"{line}\n"), Judged(_allowed(), ()), what="write")
    [moved] = home.upkeep.tidy(agreed(home))

    archived = DocPath.parse("memory/archive/2026/2026-01-03.md")
    assert moved.status == "written" and home.read(archived).text == f"{line}\n"
    assert not home.site.store.provenance.source(archived, line).trusted


def _webs(path: str, text: str) -> tuple[Change, ...]:
    return (
        Change(
            path=DocPath.parse(path),
            kind=Kind.APPEND,
            text=text,
            actor=Actor.AGENT,
            origin=Origin.WEB,
            scope=Scope.MAIN,
            taint=frozenset({Origin.WEB}),
        ),
    )


def _allowed():
    from anima.model import Answer, Verdict

    return Verdict(answer=Answer.ALLOW, rule="test", reason="")


def test_what_a_night_made_memory_of_stays_in_its_log(home: Home) -> None:
    home.write("MEMORY.md", "# Memory\n\n- Ana is allergic to walnuts _(score=0.81, hits=4, days=3)_\n")
    home.write("memory/2026-05-06.md", "- Ana is allergic to walnuts\n")

    assert len(home.upkeep.look().duplicates) == 1
    assert home.upkeep.look().suggestions == ()


def test_what_happened_on_two_days_happened_twice(home: Home) -> None:
    for day in ("2026-05-06", "2026-05-07"):
        home.write(f"memory/{day}.md", f"# {day}\n\n- [07:00] Went swimming in the lake\n- Ana lives in Lima now\n")

    assert merges(home) == [("memory/2026-05-07.md:4", ["memory/2026-05-06.md:4"])]


def test_a_file_that_is_no_text_is_said_and_keeps_nothing_else_from_being_tidied(home: Home) -> None:
    home.write("notes/a.md", "- Ana uses a Samsung phone\n- Ana uses a Samsung phone.\n")
    Path(home.name, "notes", "b.md").write_bytes(b"- \xff\xfe\n")
    Path(home.name, "memory", "2025-01-01.md").write_bytes(b"\xff")
    found = home.upkeep.look()

    assert len(found.suggestions) == 1
    assert [note.partition(":")[2].strip().split(":")[0] for note in found.notes] == [
        "memory/2025-01-01.md",
        "notes/b.md",
    ]


# -- between the look and the deed -----------------------------------------------------------------------------------------


@pytest.fixture
def said_twice(home: Home) -> Home:
    home.write("notes/a.md", "- Ana uses a Samsung phone\n- Otter is the dog\n")
    home.write("notes/b.md", "- First of all\n- Ana uses a Samsung phone!\n")
    return home


def test_a_suggestion_is_looked_at_again_when_other_lines_changed(said_twice: Home) -> None:
    [one] = said_twice.upkeep.look().suggestions
    Path(said_twice.name, "notes", "b.md").write_text("- Zero\n- First of all\n- Ana uses a Samsung phone!\n- Last\n")
    said_twice.append("notes/a.md", "- One more line here")

    said_twice.upkeep.tidy(one)

    assert said_twice.read("notes/b.md").text == "- Zero\n- First of all\n- Last\n"


@pytest.mark.parametrize("path", ["notes/a.md", "notes/b.md"])
def test_nothing_is_done_when_a_line_of_it_is_no_longer_there(said_twice: Home, path: str) -> None:
    [one] = said_twice.upkeep.look().suggestions
    Path(said_twice.name, path).write_text("- Something else is here now\n")
    before = documents(said_twice)

    with pytest.raises(StaleWrite):
        said_twice.upkeep.tidy(one)

    assert documents(said_twice) == before


def test_a_log_somebody_wrote_to_is_not_moved(home: Home) -> None:
    home.write("memory/2026-01-03.md", OLD)
    [one] = home.upkeep.look().suggestions
    home.append("memory/2026-01-03.md", "- And one more thing")

    with pytest.raises(StaleWrite):
        home.upkeep.tidy(one)
    assert home.exists("memory/2026-01-03.md")


def test_a_batch_killed_at_any_point_is_done_or_not_begun(said_twice: Home, tmp_path: Path) -> None:
    said_twice.write("memory/2026-01-03.md", OLD)
    before = documents(said_twice)
    said_twice.close()
    ends, calls, ended = set(), 1, -signal.SIGKILL
    shutil.copytree(tmp_path / "home", tmp_path / "spare")
    work = {"before": "found = home.upkeep.look().suggestions", "at_risk": "home.upkeep.tidy(found)"}
    with dying(tmp_path / "spare", **work) as killed:
        while ended == -signal.SIGKILL:
            copy = shutil.copytree(tmp_path / "home", tmp_path / f"copy{calls}")
            ended = killed(copy, calls)
            with Home.open(copy, clock=Clock()) as again:
                now = documents(again)
                ends.add("before" if now == before else "after")
                if now != before:
                    assert "memory/archive/2026/2026-01-03.md" in now and "memory/2026-01-03.md" not in now
                    assert now["notes/b.md"] == "- First of all\n"
                assert again.past.audit().ok
            calls += 13

    assert ended == 0 and ends == {"before", "after"}


# -- choices ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def contradicted(home: Home) -> Home:
    home.write("memory/2026-05-01.md", "- Ana lives in Lima\n")
    home.write("memory/2026-05-06.md", "- Ana lives in Bogota\n")
    return home


def test_between_two_lines_that_contradict_each_other_only_the_owner_chooses(contradicted: Home) -> None:
    [found] = contradicted.upkeep.look().contradictions
    [one] = contradicted.upkeep.look().suggestions

    assert found.newer is not None and (found.newer.day, found.why) == (
        date(2026, 5, 6),
        "one says bogota, the other lima",
    )
    assert (one.kind, one.remove, one.changes, one.diff) == ("choose", (), (), "")
    with pytest.raises(BadArguments):
        contradicted.upkeep.tidy(one)
    with pytest.raises(BadArguments):
        one.keeping(one.between[0].__class__(path="MEMORY.md", number=1, text="x"))
    contradicted.upkeep.tidy(one.keeping(found.newer))
    assert contradicted.upkeep.look().contradictions == ()
    assert contradicted.read("memory/2026-05-01.md").text == ""


def test_both_can_be_kept_for_good(contradicted: Home) -> None:
    [one] = contradicted.upkeep.look().suggestions
    contradicted.upkeep.keep_all(one)

    assert contradicted.upkeep.look().suggestions == ()
    assert contradicted.past.audit().ok
    contradicted.write("memory/2026-05-07.md", "- Ana lives in Quito\n")
    assert len(contradicted.upkeep.look().contradictions) == 2


# -- old logs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_in_every_dialect_an_old_log_goes_beneath_its_own_folder_keeps_its_day_and_is_found(
    dialect: str, example: Callable[[str], Path]
) -> None:
    with Home.open(example(dialect), clock=Clock()) as home:
        path = home.layout.daily_path(date(2025, 12, 30)).text
        home.write(path, "# 2025-12-30\n\n- The ferry to Chiloe costs 14 euros\n")
        [log] = [log for log in home.upkeep.look().stale if log.path == path]
        assert (log.day, log.age) == (date(2025, 12, 30), 129)
        home.upkeep.tidy([one for one in home.upkeep.look().suggestions if one.path == path])

        there = DocPath.parse(f"{home.layout.daily}/archive/2025/2025-12-30.md")
        assert not home.exists(path) and home.exists(there)
        assert home.layout.date_of(there) == date(2025, 12, 30)
        assert home.layout.row_of(there).kind == "daily"
        assert path not in [log.path for days in (None, 1) for log in home.upkeep.look(days=days).stale]
        [hit] = home.search("ferry to Chiloe", scope=Scope.MAIN, limit=1)
        assert (hit.path.text, hit.date) == (there.text, date(2025, 12, 30))
        [mention] = home.index.about("Chiloe", home.site.listener(Scope.MAIN)).mentions
        assert mention.day == date(2025, 12, 30)
        assert there.text not in {note.path for note in home.dreams._notes(Tallies())}


def test_a_name_that_is_taken_in_the_archive_is_not_written_over(home: Home) -> None:
    home.write("memory/archive/2026/2026-01-03.md", "- An older copy of this day\n")
    home.write("memory/2026-01-03.md", OLD)
    home.upkeep.tidy(home.upkeep.look().suggestions)

    assert home.read("memory/archive/2026/2026-01-03-2.md").text == OLD
    assert home.layout.date_of(DocPath.parse("memory/archive/2026/2026-01-03-2.md")) == date(2026, 1, 3)


@pytest.mark.parametrize("days", [0, -1, 40_000])
def test_a_number_of_days_that_makes_no_sense_is_bad_input(home: Home, days: int) -> None:
    with pytest.raises(BadArguments):
        home.upkeep.look(days=days)


def test_a_folder_may_keep_its_documents_for_a_time_of_its_own(tmp_path: Path) -> None:
    made = Home.create(tmp_path / "home", name="Aria", clock=Clock())
    made.write("memory/2026-01-03.md", OLD)
    made.write("memory/2026-04-20.md", "- The ferry did not sail on that day\n")
    made.write("notes/job/2025-01-01 plan.md", "- The plan for the whole year\n")
    made.close()
    config = tmp_path / "home" / "anima.toml"
    config.write_text(config.read_text() + '\n[tidy]\ndays = 10\nfolders = {"notes/" = 365, "notes/job/kept" = 0}\n')

    with Home.open(tmp_path / "home", clock=Clock()) as home:
        assert [one.to for one in home.upkeep.look().suggestions] == [
            "notes/job/archive/2025/2025-01-01 plan.md",
            "memory/archive/2026/2026-01-03.md",
            "memory/archive/2026/2026-04-20.md",
        ]
        home.upkeep.tidy(home.upkeep.look().suggestions)
        assert home.upkeep.look().stale == ()


# -- IronClaw's folders ----------------------------------------------------------------------------------------------------


@pytest.fixture
def ironclaw(example: Callable[[str], Path]) -> Path:
    return example("ironclaw")


def test_in_ironclaw_the_nearest_config_of_a_folder_decides_and_nothing_is_deleted(ironclaw: Path) -> None:
    os.makedirs(ironclaw / "projects/boat/log", exist_ok=True)
    (ironclaw / "daily/2026-04-20.md").write_text("- The tiller was varnished twice\n")
    (ironclaw / "daily/.config").write_text(
        json.dumps({"hygiene": {"enabled": True, "retention_days": 14}, "extra": 1})
    )
    (ironclaw / "projects/boat/log/2026-01-01.md").write_text("- Sanded the hull for hours\n")
    (ironclaw / "projects/boat/.config").write_text('{"hygiene": {"enabled": true}}')

    with Home.open(ironclaw, clock=Clock()) as home:
        found = {one.path: one.to for one in home.upkeep.look().suggestions if one.to}
        assert found["daily/2026-04-20.md"] == "daily/archive/2026/2026-04-20.md"
        assert found["projects/boat/log/2026-01-01.md"] == "projects/boat/log/archive/2026/2026-01-01.md"
        home.upkeep.tidy([one for one in home.upkeep.look().suggestions if one.to])
        assert home.upkeep.look().stale == ()
    (ironclaw / "daily/.config").write_text('{"hygiene": {"enabled": false}}')
    (ironclaw / "daily/2025-01-01.md").write_text("- An old log that nobody wants to move\n")
    with Home.open(ironclaw, clock=Clock()) as home:
        assert home.upkeep.look().stale == ()


def test_a_folder_that_asks_not_to_be_indexed_is_not(ironclaw: Path) -> None:
    (ironclaw / "projects").mkdir(exist_ok=True)
    (ironclaw / "projects/secret.md").write_text("- The zeppelin lands on the barn roof\n")
    with Home.open(ironclaw, clock=Clock()) as home:
        assert any("zeppelin" in hit.text for hit in home.search("zeppelin", scope=Scope.MAIN))
        (ironclaw / "projects/.config").write_text('{"skip_indexing": true}')
        home.index()
        assert not any("zeppelin" in hit.text for hit in home.search("zeppelin", scope=Scope.MAIN))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"{", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[" * 60_000, "is not JSON"),
        (b"[]", "holds no object"),
        (b'{"hygiene": 3}', "hygiene must be an object"),
        (b'{"hygiene": {"enabled": "yes"}}', "hygiene.enabled must be true or false"),
        (b'{"hygiene": {"retention_days": 0}}', "retention_days must be a whole number from 1"),
        (b'{"hygiene": {"retention_days": 1e9}}', "retention_days must be a whole number from 1"),
        (b'{"hygiene": {"retention_days": true}}', "retention_days must be a whole number from 1"),
        (b'{"skip_indexing": "no"}', "skip_indexing must be true or false"),
    ],
)
def test_a_config_that_makes_no_sense_is_a_sentence_and_changes_nothing(raw: bytes, said: str, ironclaw: Path) -> None:
    found = folder_config(raw, "daily/.config")
    assert (found.days, found.skip_indexing) == (None, False)
    assert [said in note for note in found.notes] == [True]

    (ironclaw / "daily/.config").write_bytes(raw)
    with Home.open(ironclaw, clock=Clock()) as home:
        assert any(said in note for note in home.upkeep.look().notes)


def test_a_config_of_another_dialect_is_not_read(home: Home) -> None:
    home.write("memory/2026-01-03.md", OLD)
    Path(home.name, "memory", ".config").write_text('{"hygiene": {"enabled": false}}')

    assert len(home.upkeep.look().stale) == 1
