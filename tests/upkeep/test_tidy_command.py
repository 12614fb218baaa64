"""`anima tidy`: what it shows, what it asks, and what it does."""

from __future__ import annotations

import json
import os
import pty
import select
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from anima import Home
from anima.cli import run
from owning import as_owner

TODAY = datetime.now(UTC).date()
OLD, NEW = TODAY - timedelta(days=200), TODAY - timedelta(days=2)


@pytest.fixture
def aria(tmp_path: Path) -> Path:
    with Home.create(tmp_path / "aria", name="Aria") as home:
        home.remember("Ana uses a Samsung phone")
        home.remember("Ana lives in Lima")
        home.write(f"memory/{OLD}.md", f"# {OLD}\n\n- [09:10] The ferry to the island costs 14 euros\n")
        home.write(
            f"memory/{NEW}.md", "- Ana uses a Samsung phone!\n- Ana lives in Bogota\n- Luis sails every summer\n"
        )
    return tmp_path / "aria"


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    return run(as_owner("tidy", *arguments)), *capsys.readouterr()


def answered(home: Path, *answers: str, options: tuple[str, ...] = ()) -> str:
    """Carries out --fix on a terminal and answers its questions in turn."""
    command = [sys.executable, "-m", "anima", "tidy", "--fix", "--home", str(home), *options]
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(sys.executable, command, {**os.environ, "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "200"})
    shown, waiting, seen = b"", list(answers), 0
    while select.select([fd], [], [], 60)[0]:
        try:
            piece = os.read(fd, 65_536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
        if waiting and shown.count(b"(q)uit: ") > seen:
            seen += 1
            os.write(fd, waiting.pop(0).encode() + b"\n")
    os.close(fd)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, shown.decode()
    return shown.decode().replace("\r\n", "\n")


def files(home: Path) -> dict[str, str]:
    return {path.relative_to(home).as_posix(): path.read_text() for path in sorted(home.rglob("*.md"))}


def test_it_shows_each_kind_with_its_places_evidence_and_what_fix_would_do(aria: Path, capsys) -> None:
    code, out, _ = said(capsys, "--home", aria)

    assert code == 0
    assert "Old logs  1" in out and f"memory/{OLD}.md" in out and f"→ memory/archive/{OLD.year}/{OLD}.md" in out
    assert "Said twice  1" in out and f"= memory/{NEW}.md:1  - Ana uses a Samsung phone!\n      punctuation, " in out
    assert "Contradictions  1" in out and "one says lima, the other bogota" in out and f"({NEW}" in out
    would = "would move 1 log to the archive, take out 1 line and ask you about 1 contradiction.\n"
    assert out.endswith(f"anima tidy --fix --home {aria} {would}")


def test_a_home_with_nothing_to_do_says_so(tmp_path: Path, capsys) -> None:
    Home.create(tmp_path / "new", name="Aria").close()

    assert said(capsys, "--home", tmp_path / "new")[1].endswith("There is nothing to do.\n")


def test_only_some_kinds_are_looked_for(aria: Path, capsys) -> None:
    out = said(capsys, "--home", aria, "--only", "stale,contradictions")[1]

    assert "Old logs" in out and "Contradictions" in out and "Said twice" not in out
    code, _, err = said(capsys, "--home", aria, "--only", "dupes")
    assert (code, "'dupes' is none of stale, duplicates, contradictions" in err) == (2, True)
    assert said(capsys, "--home", aria, "--days", "0")[0] == 2
    assert "Old logs  0" in said(capsys, "--home", aria, "--days", "365")[1]


def test_a_long_list_is_cut_and_says_how_to_see_the_rest(tmp_path: Path, capsys) -> None:
    with Home.create(tmp_path / "many", name="Aria") as home:
        for number in range(1, 14):
            home.write(f"memory/2024-01-{number:02}.md", "- One line about the ferry\n")

    short, whole = said(capsys, "--home", tmp_path / "many")[1], said(capsys, "--home", tmp_path / "many", "--all")[1]
    assert "… and 3 more (--all)" in short and short.count(" days  → ") == 10
    assert whole.count(" days  → ") == 13
    assert said(capsys, "--home", tmp_path / "many", "--limit", 2)[1].count(" days  → ") == 2


def test_the_answer_as_json_holds_every_suggestion_with_its_diff(aria: Path, capsys) -> None:
    found = json.loads(said(capsys, "--home", aria, "--json")[1])

    assert [one["kind"] for one in found["suggestions"]] == ["choose", "merge", "archive"]
    assert found["suggestions"][1]["diff"].startswith(f"--- a/memory/{NEW}.md\n")
    assert found["contradictions"][0]["why"] == "one says lima, the other bogota"
    assert found["receipts"] == []


def test_without_a_terminal_fix_asks_nobody_and_changes_nothing(aria: Path, capsys) -> None:
    before = files(aria)
    code, _, err = said(capsys, "--home", aria, "--fix")

    assert (code, "--yes carries out all suggestions" in err) == (5, True)
    assert files(aria) == before


def test_yes_does_all_but_choose_and_undo_takes_it_back(aria: Path, capsys) -> None:
    before = files(aria)
    code, _, err = said(capsys, "--home", aria, "--yes")

    assert (code, "1 line taken out and 1 log archived: change " in err) == (0, True)
    after = files(aria)
    assert f"memory/archive/{OLD.year}/{OLD}.md" in after and "Samsung" not in after[f"memory/{NEW}.md"]
    assert "Ana lives in Lima" in after["MEMORY.md"] and "Ana lives in Bogota" in after[f"memory/{NEW}.md"]
    assert run(as_owner("undo", "--home", aria)) == 0
    assert files(aria) == before
    assert said(capsys, "--home", aria, "--yes", "--only", "contradictions")[2].endswith("Nothing was changed.\n")


def test_at_a_terminal_each_is_shown_and_asked(aria: Path) -> None:
    shown = answered(aria, "2", "x", "y", "n")

    assert "Which one stays?" in shown and "Answer with one of" in shown and "--- a/memory/" in shown
    after = files(aria)
    assert "Ana lives in Lima" not in after["MEMORY.md"] and "Bogota" in after[f"memory/{NEW}.md"]
    assert f"memory/{OLD}.md" in after and "Samsung" not in after[f"memory/{NEW}.md"]
    assert "2 lines taken out: change" in shown


def test_all_that_follow_are_done_with_one_answer_and_quitting_leaves_the_rest(aria: Path) -> None:
    answered(aria, "s", "a")
    after = files(aria)
    assert f"memory/{OLD}.md" not in after and "Samsung" not in after[f"memory/{NEW}.md"]

    assert "Nothing was changed." in answered(aria, "q")


def test_what_is_to_be_kept_is_not_asked_about_again(aria: Path, capsys) -> None:
    answered(aria, "k", "k", "n")

    out = said(capsys, "--home", aria)[1]
    assert "Contradictions  0" in out and "Said twice  0" in out


def test_one_is_counted_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Home.create(tmp_path / "aria", name="Aria") as home:
        home.remember("Ana lives in Lima")

    assert "1 line of 1 document was compared." in said(capsys, "--home", tmp_path / "aria")[1]
