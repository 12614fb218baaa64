"""Every format that was ever released opens in this version; a newer one is refused, and nothing is lost on the way.

The homes in `tests/formats/<n>/` were written by the version that had that format (`make.py` says how), and are never
made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from anima import Home, NewerFormat, Runtime, Scope
from anima.cli import run
from anima.errors import Damaged, exit_code, http_status
from anima.layout.trust import Register
from anima.ledger.chain import FORMAT
from anima.store.folder import Folder
from anima.store.git import History
from anima.store.migrating import STEPS, due, format_of
from anima.testing import Clock, dice
from anima.upkeep.formats import FORMATS, Format
from anima.web.tokens import Keyring

HERE = Path(__file__).parents[1] / "formats"
KEPT = sorted(path.relative_to(HERE).as_posix() for path in HERE.glob("[0-9]*/*"))


@pytest.fixture(params=KEPT)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A home as an earlier version left it, and what that version showed of it."""
    return unpacked(request.param, tmp_path / "home")


def unpacked(name: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    shutil.copytree(HERE / name / "home", folder)
    with tarfile.open(HERE / name / "history.tar") as tar:
        tar.extractall(folder, filter="data")
    for path in [folder / ".anima", *(folder / ".anima").rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)  # git keeps no modes
    return folder, json.loads((HERE / name / "expected.json").read_text(encoding="utf-8"))


@contextmanager
def opened(folder: Path, **more: Any) -> Iterator[Home]:
    with Home.open(folder, clock=Clock(), dice=dice(), settings={"owner": ["luis"]}, **more) as home:
        yield home


def documents(folder: Path) -> dict[str, str]:
    found = (
        path
        for path in folder.rglob("*.md")
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


# -- old homes ----------------------------------------------------------------------------------------------------------------


def test_there_is_a_home_of_every_format_and_of_both_places_of_history() -> None:
    assert {int(name.partition("/")[0]) for name in KEPT} >= set(range(1, FORMAT))
    places = set()
    for name in KEPT:
        with tarfile.open(HERE / name / "history.tar") as tar:
            places |= {(name.partition("/")[0], tar.getnames()[0])}
    assert {("1", ".git"), ("1", ".anima/history.git")} <= places


def test_an_old_home_opens_and_shows_what_it_showed(kept: tuple[Path, dict[str, Any]]) -> None:
    folder, expected = kept
    before = everything(folder)
    with opened(folder) as home:
        assert home.dialect == expected["dialect"]
        for scope, text in expected["prompts"].items():
            assert home.prompt(scope=scope, runtime=Runtime(host="here")).text.replace(home.root, "HOME") == text
    assert everything(folder) == before, "reading changed something"
    with opened(folder) as home:
        asker = home.transcripts.owner()
        assert {one.id: one.diff for one in home.pending()} == expected["pending"]
        rows = {row.id for row in home.transcripts.rows(asker)}
        assert {id: [turn.content for turn in home.transcripts.read(id, asker).entries] for id in rows} == expected[
            "sessions"
        ]
        assert {str(hit.path) for hit in home.search("Ana peanuts", scope=Scope.MAIN).hits} >= set(expected["found"])
        assert len(home.writing.forgotten) == expected["forgotten"]
        assert home.books.view.distrusted() == expected["distrusted"]
        assert len(home.history(limit=1_000)) == expected["revisions"]
        verified = home.audit()
        noted = sum(1 for _ in home.books.ledger.records(kinds=("format",)))  # looking at history commits what is late
        assert verified.ok and verified.records - noted == expected["records"]
    assert documents(folder) == expected["documents"]


def test_an_old_home_takes_a_write_and_loses_no_byte_of_a_document(kept: tuple[Path, dict[str, Any]]) -> None:
    folder, expected = kept
    ledger = (folder / ".anima/ledger.jsonl").read_bytes()
    with opened(folder) as home:
        assert home.write("notes/new.md", "# New\n").status == "written"
        assert format_of(home.store) == FORMAT and due(home.store) == ()
        assert home.audit().ok
        assert next(entry.what for entry in home.keeping.changes()) == "write"
    found = documents(folder)
    assert found.pop("notes/new.md") and found == expected["documents"]
    assert (folder / ".anima/ledger.jsonl").read_bytes().startswith(ledger)
    with opened(folder) as home:
        home.undo()
        [waiting] = home.pending()
        assert home.approve(waiting.id, approver="terminal")[0].status == "written"
        id = next(iter(expected["sessions"]))
        with home.resume(id) as session:
            session.log("user", "and on it goes")
        home.forget(text="A page said the mill is for sale")
        assert home.audit().ok and home.migrate().steps == ()


def test_migrating_can_be_asked_for_shown_first_and_repeated(kept: tuple[Path, dict[str, Any]]) -> None:
    folder, expected = kept
    with opened(folder) as home:
        before = everything(folder)
        dry = home.migrate(dry_run=True)
        assert everything(folder) == before and len(dry.steps) == FORMAT - dry.format
        done = home.migrate()
        assert (done.steps, done.format) == (dry.steps, dry.format)
        assert home.migrate().steps == () and home.audit().ok
    assert documents(folder) == expected["documents"]
    changed = {name for name, data in everything(folder).items() if before.get(name) != data}
    assert changed == {".anima/format", ".anima/ledger.jsonl"}


def test_what_a_crash_left_of_a_migration_is_finished_by_the_next(kept: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = kept
    with opened(folder) as home:
        home.migrate()
    (folder / ".anima/format").unlink()  # killed between the ledger and the number
    with opened(folder) as home:
        assert home.migrate().steps and home.migrate().steps == ()
        records = [record.fields["format"] for record in home.books.ledger.records(kinds=("format",))]
        assert records == [2] and home.audit().ok


def test_an_old_home_on_a_disk_that_takes_nothing_can_be_read(kept: tuple[Path, dict[str, Any]]) -> None:
    folder, expected = kept
    (folder / ".anima/format").mkdir()  # the number cannot be put there
    with opened(folder) as home:
        assert (
            home.prompt(scope=Scope.MAIN, runtime=Runtime(host="here")).text.replace(home.root, "HOME")
            == expected["prompts"]["main"]
        )
        assert home.write("notes/new.md", "# New\n").status == "written"
        with pytest.raises(Damaged):
            home.migrate()


def test_a_new_home_needs_no_step(tmp_path: Path) -> None:
    with Home.create(tmp_path / "aria", name="Aria", clock=Clock()) as home:
        home.remember("Something")
        assert format_of(home.store) == FORMAT and home.migrate().steps == ()
    assert not (tmp_path / "aria/.anima/format").exists()
    (tmp_path / "empty").mkdir()
    with Home.open(tmp_path / "empty") as home:
        assert home.migrate().steps == () and not (tmp_path / "empty/.anima").exists()


# -- newer ones -----------------------------------------------------------------------------------------------------------------


def newer_number(folder: Path) -> None:
    (folder / ".anima/format").write_bytes(b'{"format":%d}\n' % (FORMAT + 1))


def newer_head(folder: Path) -> None:
    ledger = folder / ".anima/ledger.jsonl"
    ledger.write_bytes(re.sub(rb'"format":\d+', b'"format":%d' % (FORMAT + 1), ledger.read_bytes(), count=1))


@pytest.mark.parametrize("damage", [newer_number, newer_head])
def test_a_newer_home_is_refused_before_anything_is_read_or_touched(
    tmp_path: Path, damage: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with Home.create(tmp_path / "aria", name="Aria", clock=Clock()) as home:
        home.remember("Something")
    damage(tmp_path / "aria")
    before = everything(tmp_path / "aria")
    with pytest.raises(
        NewerFormat, match=f"has format {FORMAT + 1}, and this version of anima reads up to {FORMAT}"
    ) as told:
        Home.open(tmp_path / "aria")
    assert (exit_code(told.value), http_status(told.value)) == (5, 501)
    assert (told.value.found, told.value.known) == (FORMAT + 1, FORMAT) and told.value.hint
    capsys.readouterr()
    for words in (["prompt"], ["note", "x"], ["migrate"], ["search", "x"]):
        assert run([*words, "--home", str(tmp_path / "aria")]) == 5
        assert "newer" in capsys.readouterr().err
    assert everything(tmp_path / "aria") == before


def test_a_newer_home_whose_number_was_taken_away_is_refused_by_its_ledger(tmp_path: Path) -> None:
    folder, _ = unpacked("1/anima", tmp_path / "home")
    with opened(folder) as home:
        home.migrate()
        home.books.note("format", {"format": FORMAT + 1})
    for gone in (".anima/format", None):
        if gone:
            (folder / gone).unlink()
        with opened(folder) as home, pytest.raises(NewerFormat):
            home.write("notes/new.md", "# New\n")
        assert not (folder / "notes/new.md").exists()


def test_what_is_newer_in_a_home_is_refused_where_it_would_be_used(tmp_path: Path) -> None:
    folder, expected = unpacked("1/anima", tmp_path / "home")
    proposal, id = next(iter(expected["pending"])), next(iter(expected["sessions"]))
    pending = folder / f".anima/pending/{proposal}.json"
    body = pending.read_bytes()
    pending.write_text(json.dumps({**json.loads(body), "format": 2}))
    with opened(folder) as home, pytest.raises(NewerFormat, match="pending/"):
        home.approve(proposal, approver="terminal")
    pending.write_bytes(body)

    talk = folder / f"sessions/{id}.jsonl"
    said = talk.read_bytes()
    first, _, rest = said.partition(b"\n")
    talk.write_bytes(first.rstrip().replace(b'"version":1', b'"version":2') + b"\n" + rest)
    with opened(folder) as home:
        with pytest.raises(NewerFormat, match="transcript"):
            home.resume(id)
        assert home.transcripts.doubts([id]), "what a newer transcript had read cannot be known"
    talk.write_bytes(said)

    forgotten = folder / ".anima/forgotten"
    forgotten.write_text('{"format":2,"phrases":[]}')
    with opened(folder) as home, pytest.raises(NewerFormat, match="forgotten"):
        home.write("notes/new.md", "# New\n")
    assert forgotten.read_text() == '{"format":2,"phrases":[]}'


def test_a_newer_list_of_homes_trusts_nothing_and_is_not_written_over(tmp_path: Path) -> None:
    register = Register(tmp_path)
    register.note("/a", inode=1, trusted=True)
    assert json.loads((tmp_path / "homes.json").read_text())["format"] == 1
    newer = json.dumps({"format": 2, "/a": {"trusted": True, "inode": 1}})
    (tmp_path / "homes.json").write_text(newer)
    assert not register.trusts("/a", 1)
    with pytest.raises(NewerFormat, match="list of homes"):
        register.note("/b", inode=2, trusted=True)
    assert (tmp_path / "homes.json").read_text() == newer
    (tmp_path / "homes.json").write_text(json.dumps({"/a": {"trusted": True, "inode": 1}}))  # as it was first released
    assert register.trusts("/a", 1)


def test_newer_tokens_are_refused_and_old_ones_are_good(tmp_path: Path) -> None:
    clock = Clock()
    keyring = Keyring(tmp_path, clock=clock)
    _, secret = keyring.make("agent", name="phone", agent="main", scope=Scope.MAIN, lifetime=timedelta(days=1))
    file = tmp_path / "passes.json"
    body = json.loads(file.read_text())
    assert body.pop("format") == 1
    file.write_text(json.dumps(body))
    assert Keyring(tmp_path, clock=clock).find(secret)
    file.write_text(json.dumps({**body, "format": 2}))
    with pytest.raises(NewerFormat, match="tokens"):
        Keyring(tmp_path, clock=clock).find(secret)


def test_an_index_of_another_format_is_made_anew(tmp_path: Path) -> None:
    import sqlite3

    with Home.create(tmp_path / "aria", clock=Clock()) as home:
        home.remember("Ana uses a Samsung")
        assert home.search("Samsung", scope=Scope.MAIN).hits
    db = sqlite3.connect(tmp_path / "aria/.anima/index.sqlite")
    db.execute("pragma user_version = 99")
    db.commit()
    db.close()
    with Home.open(tmp_path / "aria", clock=Clock()) as home:
        assert home.search("Samsung", scope=Scope.MAIN).hits


# -- the table --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_the_table_says_what_the_modules_write(row: Format) -> None:
    module, _, name = row.constant.partition(":")
    assert getattr(import_module(module), name) == row.number


def test_every_format_has_its_step() -> None:
    assert [step.to for step in STEPS] == list(range(2, FORMAT + 1))


def test_the_command_shows_the_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = unpacked("1/anima", tmp_path / "home")
    assert run(["migrate", "--home", str(folder), "--dry-run"]) == 0
    assert "would do: format 1 to 2" in capsys.readouterr().out
    assert run(["migrate", "--home", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"]
    assert run(["migrate", "--home", str(folder)]) == 0
    assert "up to date" in capsys.readouterr().out
    with _closing(Folder(folder)) as store:
        assert format_of(store) == FORMAT
    assert os.stat(folder / ".anima/format").st_mode & 0o777 == 0o600
    with Home.open(folder) as home:
        assert isinstance(home.books.history, History)


@contextmanager
def _closing(store: Folder) -> Iterator[Folder]:
    try:
        yield store
    finally:
        store.close()
