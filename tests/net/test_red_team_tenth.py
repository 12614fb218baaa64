"""What a tenth attack got past us: entries and lines that shut the inbox, names that are options, a heading that was taken away,
forgotten words in names, folders. Each a promise, on a real home."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attacking import UNREVIEWED, need, plain, told

from anima import Home, Scope
from anima.cli import run
from anima.model import Kind
from anima.testing import Clock
from owning import as_owner


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home.create(tmp_path / "aria", name="Aria", clock=Clock()) as made:
        made.delete("BOOTSTRAP.md")
        yield made


def noted(home: Home, content: str, scope: Scope = Scope.MAIN, **more: Any) -> str:
    with home.session(scope=scope) as session:
        session.taint("web")
        answer = session.call("memory_write", {"target": "memory", "content": content, **more})
    need(answer["status"] == "noted", f"it is noted: {answer}")
    return str(answer["noted"][0])


def planted(home: Home, name: str) -> Path:
    file = Path(home.name) / ".anima/pending" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("{}", encoding="utf-8")
    return file


# -- what shuts the inbox --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "about",
    [
        {"section": ["People"]},
        {"section": {"a": 1}},
        {"section": 5},
        {"section": []},
        {"section": "\ud800"},
        {"session": 7},
        {"session": ["a"]},
        {"guest": {"a": 1}},
        {"time": ["now"]},
    ],
    ids=str,
)
def test_an_entry_that_we_would_not_have_written_keeps_nobody_from_the_others(
    home: Home, about: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    name = noted(home, "Ana has a boat")
    file = Path(home.name) / UNREVIEWED
    odd = json.dumps({"to": "MEMORY.md", **about})
    file.write_text(f"{file.read_text()}## u{'0' * 12} for MEMORY.md\n<!-- {odd} -->\n\n> - Bo owes ten\n\n")
    assert run(["review", "--list", "--home", home.name]) == 0
    assert "Ana has a boat" in capsys.readouterr().out
    assert [each.entry.id for each in home.inbox.noted()] == [name]
    home.inbox.keep(*[each.entry.id for each in home.inbox.noted()])
    assert "Ana has a boat" in home.read("MEMORY.md").text
    assert "Bo owes ten" in home.read(UNREVIEWED).text  # what is no entry of ours is left where it is


@pytest.mark.parametrize("scope", [Scope.MAIN, Scope.GROUP])
@pytest.mark.parametrize("content", ["X" * 4_000, "boat\n" * 571])
def test_whatever_is_noted_can_be_kept(home: Home, scope: Scope, content: str) -> None:
    long, short = noted(home, content, scope=scope), noted(home, "Ana has a boat", scope=scope)
    home.inbox.keep(long, short)
    assert content.split("\n")[0] in home.read("MEMORY.md").text and "Ana has a boat" in home.read("MEMORY.md").text
    assert not home.inbox.noted()


@pytest.mark.parametrize("content", ["X" * 4_001, "boat\n" * 1_000])
def test_what_is_too_long_to_be_kept_is_not_noted_either(home: Home, content: str) -> None:
    with home.session(scope=Scope.MAIN) as session:
        session.taint("web")
        said = told(session, "memory_write", target="memory", content=content)
    assert said.startswith("BadArguments: a fact has at most 4,000 characters") and not home.inbox.noted()


# -- files among what waits --------------------------------------------------------------------------------------------------


def test_the_name_of_a_file_is_no_option_of_the_command_that_drops_it(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    noted(home, "Ana has a boat")
    file = planted(home, "--all.json")
    run(["review", "--list", "--home", home.name])
    hinted = capsys.readouterr().err.partition("; anima ")[2].removesuffix(" removes it\n")
    need("--drop" in hinted, f"it is suggested: {hinted}")
    run(as_owner(*shlex.split(hinted)))
    assert not file.exists() and len(home.inbox.noted()) == 1


def test_the_name_of_a_file_that_is_dropped_moves_no_cursor(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    file = planted(home, "x\x1b[2J.json")
    run(as_owner("review", "--drop", "x\x1b[2J", "--home", home.name))
    shown = capsys.readouterr().out
    need("dropped: x" in shown and not file.exists(), "it is dropped")
    assert "\x1b" not in shown


def test_a_file_called_like_what_waits_has_the_owner_drop_nothing_else(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    with home.session(scope=Scope.MAIN) as session:
        answer = session.call("memory_write", {"target": "soul", "content": "Be kind."})
    id = answer["proposal"]
    file = planted(home, id)
    run(["review", "--list", "--home", home.name])
    assert "cannot be read" not in capsys.readouterr().err
    assert [waiting.id for waiting in home.inbox.all()] == [id] and home.inbox.broken() == []
    home.inbox.deny(id)
    *_, last = home.site.store.ledger.records(kinds=("deny",))
    assert last.fields["proposal"] == id and not home.inbox.all()
    assert home.inbox.broken() == [id]  # now it is alone, and can be dropped
    home.inbox.deny(id)
    assert not file.exists() and home.inbox.broken() == []


# -- the heading of a line that is kept ---------------------------------------------------------------------------------------


def test_a_heading_that_the_owner_took_away_is_not_where_the_line_goes(home: Home) -> None:
    text = "# Memory\n\n## Boats\n\n- the boat leaks at the stern\n\n## Family <!-- share: group -->\n\n- Ana\n"
    home.write("MEMORY.md", text)
    [receipt, *_] = home.inbox.keep(noted(home, "the boat has a new sail", section="Family"), section="")
    assert receipt.section == "Boats"
    with home.session(scope=Scope.GROUP) as session:
        assert "sail" not in session.read("MEMORY.md")
    assert home.inbox.keep(noted(home, "Bo is their cousin", section="Family"))[0].section == "Family"


# -- what was forgotten ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", [Scope.MAIN, Scope.GROUP, Scope.CRON])
@pytest.mark.parametrize("way", ["a name", "the name of a new document", "a name that is moved to", "a section"])
def test_what_was_forgotten_comes_back_by_nothing_that_stands_beside_a_text(home: Home, scope: Scope, way: str) -> None:
    home.remember("Karin Holm owes ten")
    home.write("notes/boat.md", "# Boat\n\n- it leaks\n")
    home.forget(text="Karin Holm", purge=True)
    ways: dict[str, dict[str, Any]] = {
        "a name": {"target": "knowledge/Karin Holm.md", "content": "there is a boat"},
        "the name of a new document": {"target": "notes/karin_holm.md", "content": "a boat", "append": False},
        "a section": {"target": "memory", "content": "there is a boat", "section": "Karin Holm"},
    }
    with home.session(scope=scope) as session:
        if way in ways:
            said = told(session, "memory_write", **ways[way])
        else:
            moved = session.change(Kind.MOVE, "notes/boat.md", to="notes/Karin Holm.md") if scope is Scope.MAIN else {}
            said = json.dumps(moved)
    assert scope is not Scope.MAIN or '"forgotten"' in said
    there = [each.path for each in home.list_all() if not each.path.startswith("sessions/")]
    assert not any("karin" in f"{path}{home.read(path).text}".casefold() for path in there if path.endswith(".md"))
    assert not any("karin" in (each.subject or "").casefold() for each in home.past.log())


def test_what_the_owner_names_again_is_theirs_to_name(home: Home) -> None:
    home.remember("Karin Holm owes ten")
    home.forget(text="Karin Holm", purge=True)
    home.write("notes/Karin Holm.md", "# Boat\n\n- it leaks\n")
    with home.session(scope=Scope.MAIN) as session:
        answer = session.call("memory_write", {"target": "notes/Karin Holm.md", "content": "- it is red\n"})
    assert answer["status"] == "written"


# -- folders ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", [Scope.GROUP, Scope.SUBAGENT, Scope.CRON, Scope.HEARTBEAT])
@pytest.mark.parametrize("folder", ["skills/_drafts", "Skills/_Drafts", "memory/archive"])
def test_a_folder_of_which_nothing_is_shown_is_not_told_from_none(tmp_path: Path, scope: Scope, folder: str) -> None:
    answers = set()
    for name in ("one", "two"):
        with Home.create(tmp_path / name, name="Aria", clock=Clock()) as home:
            home.write("skills/ferry/SKILL.md", "---\nname: ferry\ndescription: crosses the river\n---\n\nGo.\n")
            if name == "one":
                home.write("skills/_drafts/tram/SKILL.md", "---\nname: tram\ndescription: goes uphill\n---\n\nGo.\n")
                home.write("memory/archive/2020-01-01.md", "# 2020-01-01\n\n- fine\n")
            with home.session(scope=scope) as session:
                asked = [
                    told(session, "memory_get", path=folder),
                    told(session, "memory_tree", path=folder, depth=3),
                    told(session, "memory_tree", path=f"{folder}/"),
                    told(session, "memory_forget", path=folder, line=1),
                    told(session, "memory_write", target=folder, content="a boat"),
                    told(session, "memory_write", target=folder, content="a boat", append=False),
                    told(session, "memory_write", target=folder, old_string="a", new_string="b"),
                ]
            answers.add(plain("\n".join(asked)))
    assert len(answers) == 1


def test_a_folder_from_somebody_else_says_of_no_document_that_groups_are_shown_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Home.create(tmp_path / "aria", name="Aria", clock=Clock()) as home:
        home.write("notes/diary.md", "# Diary\n\n- Ana owes ten\n")
    file = tmp_path / "aria/anima.toml"
    file.write_text(f'{file.read_text()}\n[persona]\nfile = "notes/diary.md"\nchance = 1.0\n')
    monkeypatch.setenv("ANIMA_CONFIG", str(tmp_path / "of another"))
    with Home.open(tmp_path / "aria", clock=Clock()) as home:
        need(not home.config.trusted, "nobody trusts it")
        assert "Ana owes ten" not in "".join(home.prompt(scope=scope).text for scope in Scope)
