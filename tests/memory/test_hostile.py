"""Hostile paths, links, races and repositories: nothing outside the home is read or written, and nothing is run."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from anima import Home, Scope
from anima.errors import HomeError
from anima.memory import content_of
from anima.model import DocPath
from anima.store import blob_id
from hostile_paths import HOSTILE

CANARY = "canary: nobody may read or change this\n"
TURNS = 250  # of each race, at least


def made(folder: Path) -> Home:
    home = Home.create(folder, name="Aria", env={"ANIMA_CONFIG": f"{folder}.config"})
    home.write("notes/a.md", "# A\n\n- one\n")
    home.append("memory/2026-05-08.md", "- [09:00] woke up\n")
    return home


def documents(folder: Path) -> dict[str, bytes]:
    """Every file but those that begin with a dot and the records of sessions, which hold what was asked of them."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    own = re.compile(r"\..*|sessions/[0-9a-f-]{36}\.jsonl")
    return {name: path.read_bytes() for name, path in found.items() if not own.fullmatch(name)}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/canary.md").write_text(CANARY)
    (tmp_path / "canary.md").write_text(CANARY)
    with made(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def untouched(home: Home, tmp_path: Path) -> Iterator[None]:
    """Afterwards the documents are as before, and so is everything around the home."""
    before, around = documents(Path(home.name)), surroundings(tmp_path)
    yield
    assert documents(Path(home.name)) == before
    assert surroundings(tmp_path) == around


def surroundings(folder: Path) -> dict[str, bytes]:
    own = ("home/", "/heads/")  # the home, and what is noted of it in the user's configuration
    files = [path for path in folder.rglob("*") if path.is_file() and not any(o in path.as_posix() for o in own)]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


# -- every verb -------------------------------------------------------------------------------------------------------

Verb = Callable[[Home, str], object]

READING: dict[str, Verb] = {
    "read": lambda home, path: home.read(path),
    "exists": lambda home, path: home.exists(path),
    "why": lambda home, path: home.past.why(path, 1),
}
LOOKING_BACK: dict[str, Verb] = {  # here an empty path means everything
    "history": lambda home, path: home.past.log(path),
    "diff": lambda home, path: home.past.diff(home.past.log()[0].id, path=path),
}
FOLDERS = {"", "/", "//", "memory/"}  # no documents, but to a listing the home itself, and a folder of it
LISTING: dict[str, Verb] = {
    "list": lambda home, path: home.list(path),
    "list_all": lambda home, path: home.list_all(path),
    "tree": lambda home, path: home.tree(path),
}
WRITING: dict[str, Verb] = {
    "write": lambda home, path: home.write(path, "x\n"),
    "append": lambda home, path: home.append(path, "x\n"),
    "edit": lambda home, path: home.edit(path, "a", "b"),
    "move from": lambda home, path: home.move(path, "moved.md"),
    "move to": lambda home, path: home.move("notes/a.md", path),
    "delete": lambda home, path: home.delete(path),
    "restore": lambda home, path: home.past.restore(path, at=home.past.log()[0].id),
}


# The agent's tools: which, the argument that takes a path, the others.
TOOLS: dict[str, tuple[str, str, dict[str, object]]] = {
    "get": ("memory_get", "path", {}),
    "append": ("memory_write", "target", {"content": "- x\n"}),
    "replace": ("memory_write", "target", {"content": "x\n", "append": False}),
    "edit": ("memory_write", "target", {"old_string": "a", "new_string": "b"}),
}
FOLDER_TOOLS: dict[str, tuple[str, str, dict[str, object]]] = {
    "tree": ("memory_tree", "path", {}),
    "history": ("memory_history", "path", {"diff": True}),
}


@contextmanager
def tool(home: Home, name: str) -> Iterator[Verb]:
    """A tool as a verb, in a session of the owner's."""
    wanted, argument, more = (TOOLS | FOLDER_TOOLS)[name]
    with home.session(scope=Scope.MAIN) as session:
        yield lambda _, path: session.call(wanted, {argument: path, **more})


def is_refusal(answer: object) -> bool:
    status = answer.get("status") if isinstance(answer, dict) else getattr(answer, "status", None)
    return status == "refused"


def accepted(home: Home, verb: Verb, paths: list[str]) -> list[str]:
    """The paths a verb did not refuse, neither by an error of ours nor by an answer."""
    found = []
    for path in paths:
        try:
            answer = verb(home, path)
        except HomeError:
            continue
        if not is_refusal(answer):
            found.append(path)
    return found


def test_there_are_enough_hostile_paths() -> None:
    assert len(set(HOSTILE)) >= 150


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name", [*READING, *WRITING])
def test_every_verb_refuses_every_hostile_path(home: Home, name: str) -> None:
    assert accepted(home, (READING | WRITING)[name], HOSTILE) == []


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name", [*LISTING, *LOOKING_BACK])
def test_every_verb_over_many_documents_refuses_every_hostile_path(home: Home, name: str) -> None:
    harmless = {""} if name in LOOKING_BACK else FOLDERS
    assert set(accepted(home, (LISTING | LOOKING_BACK)[name], HOSTILE)) <= harmless


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_refuses_every_hostile_path(home: Home, name: str) -> None:
    with tool(home, name) as verb:
        assert accepted(home, verb, HOSTILE) == []


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name", FOLDER_TOOLS)
def test_every_tool_over_many_documents_refuses_every_hostile_path(home: Home, name: str) -> None:
    with tool(home, name) as verb:
        assert set(accepted(home, verb, HOSTILE)) <= FOLDERS


def test_an_import_takes_nothing_of_hostile_name_or_kind(home: Home, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in (".git", ".anima", "sessions"):
        (source / name).mkdir()
        (source / name / "x.md").write_text("hostile\n")
    for name in [raw for raw in HOSTILE if "/" not in raw and "\0" not in raw]:
        try:
            (source / name).write_text("hostile\n")
        except (OSError, ValueError):
            continue  # this file system does not take it either
    (source / "anima.toml").write_text("[gate]\npreset = 'open'\n")
    (source / "link.md").symlink_to(tmp_path / "canary.md")
    (source / "good.md").write_text("good\n")
    toml = home.read("anima.toml").text
    assert home.import_directory(source, mine=True).copied == ("good.md",)
    assert home.read("anima.toml").text == toml
    assert not [text for text in documents(Path(home.name)).values() if b"hostile" in text or b"canary" in text]


# -- places no verb writes --------------------------------------------------------------------------------------------

CLOSED = [
    "anima.toml",
    "ANIMA.TOML",
    "Anima.toml",
    "ａｎｉｍａ.toml",
    "sessions/x.md",
    "SESSIONS/x.md",
    "sessions/a/b.md",
    "sessions/sessions.json",
    "sessions/x.jsonl",
    "ｓｅｓｓｉｏｎｓ/x.md",
]
NO_MARKDOWN = ["notes/x.txt", "run.sh", "notes/x", "notes/x.md.exe", "README", "skills/x/run.py", "notes/x.html"]


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name", ["write", "append", "move to"])
def test_closed_places_and_other_files_are_written_by_nobody(home: Home, name: str) -> None:
    assert accepted(home, WRITING[name], [*CLOSED, *NO_MARKDOWN]) == []


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name", [name for name in TOOLS if name != "get"])
def test_closed_places_and_other_files_are_written_by_no_tool(home: Home, name: str) -> None:
    with tool(home, name) as verb:
        assert accepted(home, verb, [*CLOSED, *NO_MARKDOWN]) == []


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name", ["edit", "move from", "delete", "restore"])
def test_the_configuration_is_not_changed_by_any_verb(home: Home, name: str) -> None:
    acts = {**WRITING, "edit": lambda home, path: home.edit(path, "dialect", "x")}
    assert accepted(home, acts[name], ["anima.toml", "ANIMA.toml"]) == []


@pytest.mark.parametrize("path", ["anima.toml", "sessions/x.md", "notes/x.sh"])
def test_a_forged_proposal_is_judged_again_and_refused(home: Home, path: str) -> None:
    with home.session(scope=Scope.GROUP) as session:
        name = session.call("memory_write", {"target": "TOOLS.md", "content": "- x\n"})["proposal"]
    waiting = home.inbox.all()[0]
    forged = tuple(replace(change, path=DocPath.parse(path)) for change in waiting.changes)
    file = Path(home.name, f".anima/pending/{name}.json")
    raw = json.loads(file.read_text())
    raw["changes"][0]["path"] = path
    file.write_text(json.dumps(raw))
    with pytest.raises(HomeError, match="altered"):
        home.inbox.approve(name, approver="terminal")
    raw["content"] = content_of(forged)
    file.write_text(json.dumps(raw))
    with pytest.raises(HomeError, match="altered"):
        home.inbox.approve(name, approver="terminal")
    home.inbox.deny(name)
    same = {name: getattr(waiting, name) for name in ("rule", "why", "diff", "bases")}
    known = home._writer.proposals.ask(forged, content=content_of(forged), **same)
    assert known is not None
    assert [receipt.status for receipt in home.inbox.approve(known.id, approver="terminal")] == ["refused"]
    assert not [file for file in documents(Path(home.name)) if file.startswith(("sessions/", "notes/x"))]


# -- links ------------------------------------------------------------------------------------------------------------


def plant(home: Home, outside: Path) -> list[str]:
    """Links of every kind that lead out; their paths."""
    root = Path(home.name)
    (root / "link.md").symlink_to(outside / "canary.md")
    (root / "notes/up.md").symlink_to("../../outside/canary.md")
    (root / "folder").symlink_to(outside)
    (root / "loop.md").symlink_to("loop.md")
    (root / "dangling.md").symlink_to(outside / "new.md")
    (root / "proc.md").symlink_to("/proc/self/environ")
    return ["link.md", "notes/up.md", "folder/canary.md", "folder/new.md", "loop.md", "dangling.md", "proc.md"]


@pytest.mark.parametrize("name", [*READING, *WRITING])
def test_no_verb_follows_a_link(home: Home, tmp_path: Path, name: str) -> None:
    links, around = plant(home, tmp_path / "outside"), surroundings(tmp_path)
    found = accepted(home, (READING | WRITING)[name], links)
    if name == "exists":
        found = [path for path in links if home.exists(path)]
    assert found == []
    assert surroundings(tmp_path) == around


@pytest.mark.parametrize("name", TOOLS)
def test_no_tool_follows_a_link(home: Home, tmp_path: Path, name: str) -> None:
    links = plant(home, tmp_path / "outside")
    with tool(home, name) as verb:
        assert accepted(home, verb, links) == []
    assert (tmp_path / "outside/canary.md").read_text() == CANARY
    assert os.listdir(tmp_path / "outside") == ["canary.md"]


@pytest.mark.parametrize("name", [name for name in WRITING if name not in ("trust", "move to", "restore")])
def test_a_file_with_a_second_name_outside_is_not_written(home: Home, tmp_path: Path, name: str) -> None:
    os.link(tmp_path / "outside/canary.md", Path(home.name, "notes/twin.md"))
    act = {**WRITING, "edit": lambda home, path: home.edit(path, "canary", "changed")}[name]
    assert accepted(home, act, ["notes/twin.md"]) == []
    assert (tmp_path / "outside/canary.md").read_text() == CANARY


# -- races ------------------------------------------------------------------------------------------------------------


@contextmanager
def swapping(*swaps: Callable[[], None]) -> Iterator[None]:
    """Another process does these one after the other, as fast as it can."""
    pid = os.fork()
    if pid == 0:
        try:
            while True:
                for swap in swaps:
                    swap()
        finally:
            os._exit(0)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def quietly(act: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        try:
            act()
        except OSError:
            pass

    return run


def put_link(place: Path, target: Path) -> Callable[[], None]:
    def swap() -> None:
        spare = place.with_name(".spare-link")
        spare.unlink(missing_ok=True)
        spare.symlink_to(target)
        spare.rename(place)

    return quietly(swap)


def put_twin(place: Path, target: Path) -> Callable[[], None]:
    def swap() -> None:
        spare = place.with_name(".spare-twin")
        spare.unlink(missing_ok=True)
        os.link(target, spare)
        spare.rename(place)

    return quietly(swap)


def put_file(place: Path) -> Callable[[], None]:
    def swap() -> None:
        spare = place.with_name(".spare-file")
        spare.write_text("- ours\n")
        spare.rename(place)

    return quietly(swap)


def put_folder(place: Path, kept: Path) -> Callable[[], None]:
    def swap() -> None:
        if place.is_symlink():
            place.unlink()
            kept.rename(place)

    return quietly(swap)


def put_folder_link(place: Path, kept: Path, target: Path) -> Callable[[], None]:
    def swap() -> None:
        if not place.is_symlink():
            place.rename(kept)
            place.symlink_to(target)

    return quietly(swap)


def hammered(home: Home, path: str) -> list[str]:
    """Reads and writes one path many times; every text that came back."""
    seen: list[str] = []
    dice, n = random.Random(7), 0
    with home.session(scope=Scope.MAIN) as session:
        acts: list[Callable[[], object]] = [
            lambda: seen.append(home.read(path).text),
            lambda: seen.append(str(session.call("memory_get", {"path": path}))),
            lambda: home.write(path, f"- written {n}\n"),
            lambda: home.append(path, f"- added {n}\n"),
            lambda: session.call("memory_write", {"target": path, "content": f"- agent {n}\n"}),
            lambda: home.edit(path, "- ours", "- edited"),
            lambda: home.move(path, f"moved/{n}.md"),
            lambda: home.delete(path),
        ]
        while n < TURNS or len(seen) <= 20:
            n += 1
            try:
                dice.choice(acts)()
            except HomeError as error:
                seen.append(str(getattr(error, "theirs", "")))
    return seen


def held_by_history(home: Home) -> set[str]:
    home.site.store.commit()
    history = home.site.store.history
    assert history is not None
    return {blob for revision in history.log(limit=100_000) for blob in history.tree(revision.id).values()}


def check_canary(home: Home, tmp_path: Path, seen: list[str], *, may_be_read: bool = False) -> None:
    assert (tmp_path / "outside/canary.md").read_text() == CANARY
    assert os.listdir(tmp_path / "outside") == ["canary.md"]
    assert len(seen) > 20  # something happened
    if not may_be_read:
        assert not [text for text in seen if CANARY.strip() in text]
        assert blob_id(CANARY.encode()) not in held_by_history(home)
    assert home.past.audit().ok


def test_a_file_that_is_swapped_for_a_link_leads_nowhere(home: Home, tmp_path: Path) -> None:
    place = Path(home.name, "notes/a.md")
    with swapping(put_link(place, tmp_path / "outside/canary.md"), put_file(place)):
        seen = hammered(home, "notes/a.md")
    check_canary(home, tmp_path, seen)


def test_a_folder_that_is_swapped_for_a_link_leads_nowhere(home: Home, tmp_path: Path) -> None:
    root = Path(home.name)
    home.write("inner/canary.md", "- ours\n")
    there, kept = root / "inner", root / ".kept"
    with swapping(put_folder_link(there, kept, tmp_path / "outside"), put_folder(there, kept)):
        seen = hammered(home, "inner/canary.md")
    check_canary(home, tmp_path, seen)


def test_a_file_that_is_swapped_for_a_second_name_is_not_written_through(home: Home, tmp_path: Path) -> None:
    place = Path(home.name, "notes/a.md")
    with swapping(put_twin(place, tmp_path / "outside/canary.md"), put_file(place)):
        seen = hammered(home, "notes/a.md")
    check_canary(home, tmp_path, seen, may_be_read=True)


# -- hostile repositories ---------------------------------------------------------------------------------------------

HOOKS = (
    "pre-commit prepare-commit-msg commit-msg post-commit post-checkout post-merge post-rewrite pre-auto-gc "
    "reference-transaction post-index-change fsmonitor-watchman update pre-receive post-receive"
).split()


def trap(git: Path, canary: Path) -> None:
    """A repository that runs something on every occasion git offers."""
    run = f"touch {canary}"
    (git / "hooks").mkdir(exist_ok=True)
    for hook in HOOKS:
        (git / "hooks" / hook).write_text(f"#!/bin/sh\n{run}\n")
        (git / "hooks" / hook).chmod(0o755)
    (git / "config").write_text(
        f'[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = "{run}"\n\thooksPath = {git}/hooks\n'
        f'\teditor = "{run}"\n\tpager = "{run}"\n\tsshCommand = "{run}"\n\tattributesFile = {git}/attributes\n'
        f'[filter "x"]\n\tclean = "{run}; cat"\n\tsmudge = "{run}; cat"\n\trequired = true\n'
        f'[diff "x"]\n\ttextconv = "{run}; cat"\n\tcommand = "{run}"\n[diff]\n\texternal = "{run}"\n'
        f'[gpg]\n\tprogram = "{git}/hooks/pre-commit"\n[commit]\n\tgpgSign = true\n[include]\n\tpath = {git}/more\n'
        f'[alias]\n\tlog = "!{run}"\n[user]\n\tname = x\n\temail = x@example.org\n'
    )
    (git / "more").write_text(f'[credential]\n\thelper = "!{run}"\n')
    (git / "attributes").write_text("* filter=x diff=x\n")
    (git / "info").mkdir(exist_ok=True)
    (git / "info/attributes").write_text("* filter=x diff=x\n")


def exercised(home: Home) -> None:
    """Everything that touches history."""
    home.write("notes/a.md", "# A\n\n- changed\n")
    home.append("memory/2026-05-08.md", "- [10:00] ate\n")
    home.move("notes/a.md", "notes/b.md")
    home.undo()
    for revision in home.past.log(limit=5):
        home.past.diff(revision.id)
    home.past.audit()
    home.past.why("notes/a.md", 3)
    home.past.history_problems()
    home.site.store.repair_history()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "shown"
    (folder / "memory").mkdir(parents=True)
    (folder / "notes").mkdir()
    (folder / "MEMORY.md").write_text("# Memory\n\n- a fact\n")
    (folder / "notes/a.md").write_text("# A\n\n- one\n")
    (folder / ".gitattributes").write_text("* filter=x diff=x\n")
    return folder


def opened(folder: Path) -> Home:
    return Home.open(folder, env={"ANIMA_CONFIG": f"{folder}.config"})


def test_the_traps_do_work_for_git_itself(folder: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    trap(folder / ".git", tmp_path / "ran")
    subprocess.run(["git", "-C", str(folder), "add", "-A"], check=False, capture_output=True)
    assert (tmp_path / "ran").exists()


def test_a_hostile_repository_of_somebody_else_runs_nothing_and_is_left_alone(folder: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    trap(folder / ".git", tmp_path / "ran")
    before = {path: path.read_bytes() for path in (folder / ".git").rglob("*") if path.is_file()}
    with opened(folder) as home:
        exercised(home)
    assert not (tmp_path / "ran").exists()
    assert {path: path.read_bytes() for path in (folder / ".git").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("place", [".git", ".anima/history.git"])
def test_a_history_of_ours_that_was_made_hostile_runs_nothing(tmp_path: Path, folder: Path, place: str) -> None:
    if place == ".git":
        folder = tmp_path / "own"
        made(folder).close()
    else:
        with opened(folder) as home:
            home.append("MEMORY.md", "- another\n")
    assert (folder / place / "anima").exists()
    trap(folder / place, tmp_path / "ran")
    (folder / ".gitattributes").write_text("* filter=x diff=x\n")
    with opened(folder) as home:
        exercised(home)
    assert not (tmp_path / "ran").exists()


def test_a_repository_whose_parts_are_links_out_of_it_writes_nothing_there(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    made(folder).close()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("objects", "refs"):
        shutil.move(folder / ".git" / name, elsewhere / name)
        (folder / ".git" / name).symlink_to(elsewhere / name)
    before = {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()}
    with opened(folder) as home:
        assert home.write("notes/a.md", "# A\n\n- changed\n").status == "written"
    assert {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()} == before


def test_a_hostile_ledger_moves_nothing_into_or_out_of_the_home(home: Home, tmp_path: Path) -> None:
    """A begun batch that names a file outside, or the configuration, as what it wants to put in place."""
    from anima.ledger import Edit, Intent
    from anima.model import Actor, Kind, Origin

    key, ledger = home.site.store.key, home.site.store.ledger
    toml, text = home.read("anima.toml").text, home.read("notes/a.md").text
    for n, (path, temp, aim) in enumerate(
        [
            ("notes/new.md", "../outside/canary.md", CANARY),
            ("notes/new.md", f"{tmp_path}/canary.md", CANARY),
            ("notes/new.md", "anima.toml", toml),
            ("notes/new.md", "notes/a.md", text),
            ("anima.toml", "notes/a.md", text),
            ("notes/new.md", ".anima/stage/../../notes/a.md", text),
        ]
    ):
        edit = Edit(
            path=path,
            kind=Kind.WRITE,
            digest=key.of(aim),
            after=1,
            temp=temp,
            base=key.of(toml) if path == "anima.toml" else None,
        )
        ledger.intend(Intent(id=f"x{n}", what="write", edits=(edit,), actor=Actor.OWNER, origin=Origin.OWNER))
        home.site.store.recover()
    assert (home.read("anima.toml").text, home.read("notes/a.md").text) == (toml, text)
    assert not home.exists("notes/new.md")
    assert (tmp_path / "outside/canary.md").read_text() == (tmp_path / "canary.md").read_text() == CANARY


def test_what_an_undo_of_an_undo_brings_back_is_told_of_like_the_first_time(home: Home) -> None:
    long = "- the gauge was read, and it was as usual\n" * 25_000 + "password: hunter2hunter2\n"
    wrote = home.write("notes/long.md", long)
    [gone] = home.undo(wrote.change)
    [again] = home.undo(gone.change)

    assert "secret:password" in [found.kind for found in wrote.findings]
    assert (gone.findings, again.findings, again.way_back) == ((), wrote.findings, wrote.way_back)
    assert home.read("notes/long.md").text == long
