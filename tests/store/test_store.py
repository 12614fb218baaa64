"""The folder store: the contract of every store, and what a folder must defend beyond it."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from anima.errors import BadPath, Damaged, HomeBusy, HomeError, Refused, StaleWrite
from anima.model import DocPath
from anima.store import Rules
from anima.store.folder import Folder
from anima.store.place import FolderStore
from store_contract import DEEP, NOTE, StoreContract, add, addition, text_of, write, written


class FolderParts:
    """The three parts over one folder."""

    def __init__(self, root: Path, opened: list[FolderParts]) -> None:
        self.root, self._opened = root, opened
        rules = Rules(clock=lambda: datetime(2026, 5, 8, tzinfo=UTC), author="aria", is_closed=lambda path: False)
        self.hand = FolderStore(Folder(root), rules)
        self.documents, self.machine = self.hand.documents, self.hand.machine
        opened.append(self)

    def again(self) -> FolderParts:
        return FolderParts(self.root, self._opened)

    def close(self) -> None:
        self.hand.close()


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[FolderParts]:
    root, opened = tmp_path / "home", list[FolderParts]()
    root.mkdir()
    yield FolderParts(root, opened)
    for each in opened:
        each.close()


class TestFolderStore(StoreContract):
    pass


# -- links ------------------------------------------------------------------------------------------------------------


def outside(parts: FolderParts) -> Path:
    folder = parts.root.parent / "outside"
    folder.mkdir(exist_ok=True)
    (folder / "canary.md").write_text("canary\n")
    return folder


def test_a_file_with_several_names_is_neither_read_nor_written(parts: FolderParts) -> None:
    os.link(outside(parts) / "canary.md", parts.root / "note.md")
    with pytest.raises(BadPath, match="another name outside the home"):
        text_of(parts, NOTE)
    with pytest.raises(Refused, match="several names"):
        parts.hand.look(NOTE)
    assert (outside(parts) / "canary.md").read_text() == "canary\n"


def test_a_second_name_that_appears_after_the_look_is_not_written_through(parts: FolderParts) -> None:
    write(parts, NOTE, "- ours\n")
    step = addition(parts, NOTE, "- more\n")
    (parts.root / "note.md").unlink()
    os.link(outside(parts) / "canary.md", parts.root / "note.md")
    with pytest.raises((StaleWrite, Refused)):
        parts.hand.do([step])
    assert (outside(parts) / "canary.md").read_text() == "canary\n"


@pytest.mark.parametrize("whole", [True, False])
def test_a_link_is_neither_read_nor_written(parts: FolderParts, whole: bool) -> None:
    (parts.root / "note.md").symlink_to(outside(parts) / "canary.md")
    with pytest.raises(BadPath):
        parts.documents.read(NOTE)
    with pytest.raises(BadPath):
        parts.hand.look(NOTE, whole=whole)


def test_a_folder_that_became_a_link_is_not_written_into(parts: FolderParts) -> None:
    write(parts, DEEP, "old\n")
    step = written(parts, DEEP, "new\n")
    target = outside(parts)
    (target / "c.md").write_text("canary\n")
    (parts.root / "a/b").rename(parts.root / "a/old")
    (parts.root / "a/b").symlink_to(target)
    with pytest.raises(HomeError):
        parts.hand.do([step])
    assert (target / "c.md").read_text() == "canary\n"
    assert sorted(path.name for path in target.iterdir()) == ["c.md", "canary.md"]


@pytest.mark.parametrize("name", ["key", "lock", "ledger.jsonl", "pending", "stage", ""])
def test_a_link_in_the_machines_folder_leads_nowhere(parts: FolderParts, name: str) -> None:
    target = outside(parts)
    if name:
        parts.machine.make()
        place = parts.root / ".anima" / name
        if place.is_dir():
            place.rmdir()
    else:
        place = parts.root / ".anima"
    place.symlink_to(target / "canary.md" if name in ("key", "lock", "ledger.jsonl") else target)
    for act in (
        lambda: parts.machine.key(),
        lambda: parts.machine.log("ledger.jsonl").append(b"x\n", sync=True),
        lambda: parts.machine.put("pending/p1.json", b"x"),
        lambda: write(parts, NOTE, "x\n"),
    ):
        try:
            act()
        except HomeError:
            continue
    assert {path.name: path.read_text() for path in target.iterdir()} == {"canary.md": "canary\n"}


@pytest.mark.parametrize("name", ["lock", "ledger.jsonl"])
def test_a_file_of_ours_with_another_name_elsewhere_is_not_used(parts: FolderParts, name: str) -> None:
    parts.machine.make()
    os.link(outside(parts) / "canary.md", parts.root / ".anima" / name)
    with pytest.raises(Damaged), parts.machine.lock.hold():
        parts.machine.log(name).append(b"x\n", sync=True)
    assert (outside(parts) / "canary.md").read_text() == "canary\n"


@pytest.mark.parametrize("name", ["lock", "ledger.jsonl", "key"])
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_pipe_or_folder_in_place_of_a_file_of_ours_is_damage_and_does_not_block(
    parts: FolderParts, name: str, kind: str
) -> None:
    parts.machine.make()
    place = parts.root / ".anima" / name
    os.mkfifo(place) if kind == "pipe" else place.mkdir()
    with pytest.raises(Damaged), parts.machine.lock.hold():
        parts.machine.key()
        parts.machine.log(name).append(b"x\n", sync=True)


def test_a_pipe_in_place_of_a_document_does_not_block(parts: FolderParts) -> None:
    os.mkfifo(parts.root / "note.md")
    for act in (
        lambda: parts.documents.read(NOTE),
        lambda: parts.hand.look(NOTE),
        lambda: parts.hand.raw(NOTE),
        lambda: parts.hand.cut_back(NOTE, 0),
    ):
        with pytest.raises(HomeError):
            act()


# -- modes and spelling -----------------------------------------------------------------------------------------------


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_new_files_and_folders_are_their_owners_alone_whatever_the_umask(parts: FolderParts) -> None:
    before = os.umask(0)
    try:
        write(parts, DEEP, "x\n")
        parts.machine.put("pending/p1.json", b"x")
    finally:
        os.umask(before)
    found = {path: mode_of(path) for path in parts.root.rglob("*")}
    assert {mode for path, mode in found.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in found.items() if path.is_file()} == {0o600}


def test_a_document_keeps_its_mode(parts: FolderParts) -> None:
    (parts.root / "note.md").write_text("old\n")
    (parts.root / "note.md").chmod(0o644)
    write(parts, NOTE, "new\n")
    add(parts, NOTE, "more\n")
    assert mode_of(parts.root / "note.md") == 0o644


def test_of_two_names_that_fold_alike_the_one_spelt_so_is_read_and_written(parts: FolderParts) -> None:
    (parts.root / "NOTE.md").write_text("upper\n")
    (parts.root / "note.md").write_text("lower\n")
    write(parts, NOTE, "written\n")
    assert text_of(parts, NOTE) == "written\n"
    assert text_of(parts, DocPath.parse("NOTE.md")) == "upper\n"
    assert text_of(parts, DocPath.parse("Note.md")) == "upper\n"


def test_nothing_is_left_behind(parts: FolderParts) -> None:
    write(parts, NOTE, "one\n")
    write(parts, NOTE, "two\n")
    add(parts, NOTE, "three\n")
    parts.machine.put("pending/p1.json", b"x")
    assert list((parts.root / ".anima/stage").iterdir()) == []


def test_a_staged_text_that_is_being_written_is_not_swept(parts: FolderParts) -> None:
    names = [parts.machine.stage(b"being written"), parts.machine.stage(b"left behind")]
    with open(parts.root / names[0], "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        parts.again().machine.sweep()
        assert [parts.machine.staged_bytes(name) for name in names] == [b"being written", None]


def test_a_text_in_pieces_is_not_swept_while_they_come(parts: FolderParts) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"one\n"
        parts.again().machine.sweep()
        yield b"two\n"

    parts.machine.place("note.md", pieces())
    assert (parts.root / "note.md").read_bytes() == b"one\ntwo\n"


# -- a machine's folder that somebody deletes -------------------------------------------------------------------------


def test_a_lock_file_that_was_deleted_is_made_again_and_still_excludes(parts: FolderParts) -> None:
    other = parts.again()
    with parts.machine.lock.hold():
        pass
    (parts.root / ".anima/lock").unlink()
    with parts.machine.lock.hold():
        assert (parts.root / ".anima/lock").exists()
        with pytest.raises(HomeBusy), other.machine.lock.hold(patience=0.01):
            raise AssertionError("two hold one lock")


def test_a_lock_is_not_shared_with_a_forked_child(parts: FolderParts) -> None:
    with parts.machine.lock.hold():
        pass
    out, answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with parts.machine.lock.hold(patience=5):
                os.write(answer, b"held")
                os.kill(os.getpid(), signal.SIGSTOP)  # stays, holding it, until it is killed
        finally:
            os._exit(0)
    try:
        assert os.read(out, 4) == b"held"
        with pytest.raises(HomeBusy), parts.machine.lock.hold(patience=0.01):
            raise AssertionError("two hold one lock")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    with parts.machine.lock.hold(patience=5):
        pass


def test_a_log_that_was_deleted_while_open_takes_nothing_more(parts: FolderParts) -> None:
    log = parts.machine.log("ledger.jsonl")
    log.append(b"one\n", sync=True)
    (parts.root / ".anima/ledger.jsonl").unlink()
    with pytest.raises(Damaged, match="deleted"):
        log.append(b"two\n", sync=True)


def test_a_file_that_is_too_large_to_be_ours_is_not_read(parts: FolderParts) -> None:
    parts.machine.make()
    with open(parts.root / ".anima/key", "wb") as file:
        file.truncate(2**40)
    with pytest.raises(Damaged, match="too large"):
        parts.machine.get("key")
