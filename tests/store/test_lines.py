"""Line files: one write a record, nothing glued, nothing lost, whoever else writes and whenever a process dies."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anima.errors import BadArguments, Damaged, NoSuchSession
from anima.ledger import BLOCK, MAX_LINE, block_before, blocks, last_line, line_at
from anima.store import logs as module
from anima.store.folder import Folder
from anima.store.logs import LineFolder
from anima.store.private import Machine
from anima.store.safe_open import Unconfirmed


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Folder]:
    found = Folder(tmp_path)
    yield found
    found.close()


@pytest.fixture
def folder(store: Folder) -> LineFolder:
    return LineFolder(store, Machine(store), "sessions")


class Bytes:
    """A file in memory that notes how much of it was read."""

    def __init__(self, data: bytes) -> None:
        self.data, self.touched = data, 0

    def size(self) -> int:
        return len(self.data)

    def read(self, start: int, end: int) -> bytes:
        piece = self.data[start:end]
        self.touched += len(piece)
        return piece


# -- appending ------------------------------------------------------------------------------------------------------------


def test_records_stand_in_the_order_in_which_they_were_appended(folder: LineFolder, tmp_path: Path) -> None:
    with folder.create("one") as file:
        assert [file.append(b"first\n", sync=True), file.append(b"second\n", sync=False)] == [0, 6]
    assert (tmp_path / "sessions/one.jsonl").read_bytes() == b"first\nsecond\n"


def test_files_and_folders_are_for_their_owner_alone_whatever_the_umask(folder: LineFolder, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with folder.create("one") as file:
            file.append(b"torn", sync=False)
            file.append(b"whole\n", sync=True)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "sessions").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "sessions/one.jsonl").stat().st_mode) == 0o600
    (aside,) = (tmp_path / ".anima/aside/torn").iterdir()
    assert stat.S_IMODE(aside.stat().st_mode) == 0o600


def test_a_torn_tail_is_put_aside_and_never_glued_to_a_new_record(folder: LineFolder, tmp_path: Path) -> None:
    with folder.create("one") as file:
        file.append(b"first\n", sync=True)
        with (tmp_path / "sessions/one.jsonl").open("ab") as other:
            other.write(b'{"half')
        assert file.append(b"second\n", sync=True) == 6
    assert (tmp_path / "sessions/one.jsonl").read_bytes() == b"first\nsecond\n"
    assert [*folder.torn("one").values()] == [b'{"half']
    assert folder.torn("on") == {} == folder.torn("one.6")


def test_two_torn_tails_at_one_place_are_both_kept(folder: LineFolder, tmp_path: Path) -> None:
    path = tmp_path / "sessions/one.jsonl"
    with folder.create("one") as file:
        for torn in (b"first try", b"second try"):
            path.write_bytes(torn)
            file.append(b"x\n", sync=False)
            path.write_bytes(b"")
    assert {*folder.torn("one").values()} == {b"first try", b"second try"}


def test_a_tail_that_only_lacks_its_end_is_completed(store: Folder, tmp_path: Path) -> None:
    folder = LineFolder(
        store, Machine(store), "sessions", mend=lambda tail, before: b"\n" if tail == b"whole" else None
    )
    with folder.create("one") as file:
        (tmp_path / "sessions/one.jsonl").write_bytes(b"whole")
        assert file.append(b"next\n", sync=False) == 6
    assert (tmp_path / "sessions/one.jsonl").read_bytes() == b"whole\nnext\n"
    assert folder.torn("one") == {}


def test_only_one_of_two_can_write_the_first_record(folder: LineFolder) -> None:
    with folder.create("one") as first, folder.create("one") as second:
        first.begin(b"mine\n")
        with pytest.raises(BadArguments, match="already"):
            second.begin(b"mine too\n")
        assert second.read(0, 100) == b"mine\n"


def test_a_record_larger_than_a_line_may_be_is_refused_and_nothing_is_written(folder: LineFolder) -> None:
    with folder.create("one") as file:
        with pytest.raises(BadArguments, match="at most"):
            file.append(b"x" * MAX_LINE + b"\n", sync=False)
        assert file.size() == 0


@pytest.mark.parametrize(
    "id", ["", "..", "a/b", ".hidden", "a\0b", "a\n", "ä", "x" * 121, "con", "NUL.txt", "x.log", "a."]
)
def test_an_id_that_cannot_be_a_file_name_is_refused(folder: LineFolder, id: str) -> None:
    with pytest.raises(BadArguments):
        folder.create(id)
    with pytest.raises(NoSuchSession):
        folder.open(id)
    assert folder.versions() == {}


def test_a_file_that_is_not_there_is_no_session(folder: LineFolder) -> None:
    with pytest.raises(NoSuchSession):
        folder.open("one")
    with pytest.raises(NoSuchSession):
        folder.append_to("one")
    assert folder.look("one") is None


def test_links_are_not_followed_and_not_listed(folder: LineFolder, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("private\n")
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions/link.jsonl").symlink_to(tmp_path / "outside")
    (tmp_path / "sessions/folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "sessions/pipe.jsonl")
    for id in ("link", "folder", "pipe"):
        with pytest.raises(NoSuchSession):
            folder.open(id)
        with pytest.raises((NoSuchSession, Damaged)):
            folder.append_to(id)
        assert folder.look(id) is None
    assert folder.versions() == {}


def test_a_sessions_folder_that_is_a_link_holds_no_transcripts(folder: LineFolder, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "sessions").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Damaged, match="must be a folder"):
        folder.create("one")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_walk_sees_each_file_with_its_size(folder: LineFolder, tmp_path: Path) -> None:
    for id, data in (("a", b"1\n"), ("b.c-d_e", b"22\n")):
        with folder.create(id) as file:
            file.append(data, sync=False)
    (tmp_path / "sessions/notes.txt").write_text("not a transcript")
    states = {id: folder.look(id) for id in folder.versions()}
    assert {id: state and state.size for id, state in states.items()} == {"a": 2, "b.c-d_e": 3}
    assert folder.versions() == {id: state and state.version for id, state in states.items()}


# -- replaced and removed files -------------------------------------------------------------------------------------------


def test_a_writer_goes_on_in_the_file_that_took_its_files_place(folder: LineFolder, tmp_path: Path) -> None:
    with folder.create("one") as writer, folder.append_to("one") as other:
        writer.append(b"first\nsecond\n", sync=True)
        other.rewrite(lambda: [b"second\n"])
        assert writer.append(b"third\n", sync=True) == 7
        assert (writer.replaced, other.replaced) == (1, 1)
    assert (tmp_path / "sessions/one.jsonl").read_bytes() == b"second\nthird\n"
    assert stat.S_IMODE((tmp_path / "sessions/one.jsonl").stat().st_mode) == 0o600


def test_a_rewrite_that_fails_leaves_the_file_and_no_rubbish(folder: LineFolder, tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half of it\n"
        raise OSError(28, "no room")

    with folder.create("one") as file:
        file.append(b"first\n", sync=True)
        with pytest.raises(Damaged):
            file.rewrite(broken)
        assert file.append(b"second\n", sync=False) == 6
    assert (tmp_path / "sessions/one.jsonl").read_bytes() == b"first\nsecond\n"
    assert list((tmp_path / ".anima/stage").iterdir()) == []


def test_appending_to_a_file_that_was_removed_says_so(folder: LineFolder, tmp_path: Path) -> None:
    with folder.create("one") as file:
        file.append(b"first\n", sync=False)
        (tmp_path / "sessions/one.jsonl").unlink()
        with pytest.raises(NoSuchSession, match="removed"):
            file.append(b"second\n", sync=False)


# -- several writers, and a death -------------------------------------------------------------------------------------------

_WRITER = """
import os, sys
from anima.store.folder import Folder
from anima.store.logs import LineFolder
from anima.store.private import Machine
root, name, number, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
store = Folder(root)
file = LineFolder(store, Machine(store), "sessions").append_to("one")
sys.stdin.read(1)
for n in range(number):
    file.append(f'{name} {n} '.encode() + name.encode() * size + b'\\n', sync=False)
    sys.stdout.write(f'{n}\\n'); sys.stdout.flush()
"""


def _writer(root: Path, name: str, *, number: int, size: int) -> subprocess.Popen[bytes]:
    source = str(Path(module.__file__).parents[2])
    command = [sys.executable, "-c", _WRITER, str(root), name, str(number), str(size)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": source}
    )


def test_two_processes_that_append_to_one_file_tear_nothing(folder: LineFolder, tmp_path: Path) -> None:
    folder.create("one").close()
    writers = [_writer(tmp_path, name, number=300, size=3000) for name in "AB"]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"x")
        writer.stdin.close()
    for writer in writers:
        assert writer.stdout is not None
        assert len(writer.stdout.read().splitlines()) == 300
        assert writer.wait() == 0
        writer.stdout.close()
    lines = (tmp_path / "sessions/one.jsonl").read_bytes().splitlines()
    for name in (b"A", b"B"):
        assert [line for line in lines if line.startswith(name)] == [
            b"%b %d %b" % (name, n, name * 3000) for n in range(300)
        ]


def test_whatever_was_appended_before_a_kill_is_whole_afterwards(folder: LineFolder, tmp_path: Path) -> None:
    for turn in range(6):
        folder.create("one").close()
        writer = _writer(tmp_path, "A", number=10_000, size=1_000_000)
        assert writer.stdin is not None and writer.stdout is not None
        writer.stdin.write(b"x")
        writer.stdin.flush()
        for _ in range(turn + 1):  # so many are acknowledged; the next one is on its way
            writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        acknowledged = turn + 1 + len(writer.stdout.read().splitlines())
        writer.wait()
        writer.stdin.close()
        writer.stdout.close()
        with folder.append_to("one") as file:
            file.append(b"after\n", sync=True)
            *whole, last = file.read(0, file.size()).split(b"\n")[:-1]
            assert last == b"after"
            assert len(whole) >= acknowledged
            assert all(line == b"A %d %b" % (n, b"A" * 1_000_000) for n, line in enumerate(whole))
        (tmp_path / "sessions/one.jsonl").unlink()


def test_threads_that_share_a_file_tear_nothing(folder: LineFolder) -> None:
    with folder.create("one") as file:
        work = [threading.Thread(target=_append_many, args=(file, name)) for name in (b"a", b"b", b"c")]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        lines = file.read(0, file.size()).splitlines()
    assert sorted(lines) == sorted(name * 500 for name in (b"a", b"b", b"c") for _ in range(100))


def _append_many(file: module.LineFile, name: bytes) -> None:
    for _ in range(100):
        file.append(name * 500 + b"\n", sync=False)


_FULL = """
import resource, signal, sys
from anima.errors import Damaged
from anima.store.folder import Folder
from anima.store.logs import LineFolder
from anima.store.private import Machine
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Folder(sys.argv[1])
file = LineFolder(store, Machine(store), "sessions").append_to("one")
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    file.append(b'x' * 50_000 + b'\\n', sync=True)
except Damaged as error:
    print(error)
file.append(b'second\\n', sync=True)
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="needs a limit on file sizes")
def test_a_disk_that_takes_only_half_of_a_record_leaves_the_file_as_it_was(folder: LineFolder, tmp_path: Path) -> None:
    with folder.create("one") as file:
        file.append(b"first\n", sync=True)
    source = str(Path(module.__file__).parents[2])
    command = [sys.executable, "-c", _FULL, str(tmp_path)]
    found = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True, check=True
    )
    assert "nothing was changed" in found.stdout
    assert (tmp_path / "sessions/one.jsonl").read_bytes() == b"first\nsecond\n"


def fails(*_: object, **__: object) -> None:
    raise OSError(errno.EIO, "the disk failed")


def test_a_lock_that_the_disk_refuses_is_told_and_nothing_is_written(
    folder: LineFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with folder.create("one") as file:
        file.append(b"first\n", sync=True)
        for work in (lambda: file.append(b"lost\n", sync=True), file.follow, lambda: file.rewrite(lambda: [b"lost\n"])):
            with monkeypatch.context() as disk, pytest.raises(Damaged, match="session one cannot be locked"):
                disk.setattr(fcntl, "flock", fails)
                work()
        file.append(b"second\n", sync=True)
    assert (tmp_path / "sessions/one.jsonl").read_bytes() == b"first\nsecond\n"


def test_a_lock_that_the_disk_does_not_take_back_is_let_go_all_the_same(
    folder: LineFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with folder.create("one") as file, folder.append_to("one") as other:
        with monkeypatch.context() as disk:
            with file.alone():
                disk.setattr(fcntl, "flock", fails)
        other.append(b"of another\n", sync=True)
        file.append(b"ours\n", sync=True)
        assert file.read(0, file.size()) == b"of another\nours\n"


def test_a_line_that_the_disk_does_not_confirm_is_not_said_to_be_missing(
    folder: LineFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with folder.create("one") as file, monkeypatch.context() as disk:
        disk.setattr(os, "fsync", fails)
        with pytest.raises(Unconfirmed, match="it is written, but the disk did not confirm it"):
            file.append(b"first\n", sync=True)
    assert (tmp_path / "sessions/one.jsonl").read_bytes() == b"first\n"


# -- reading ----------------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b" ")), max_size=30), st.booleans(), st.data()
)
def test_blocks_forward_and_backward_are_the_file_in_whole_lines(
    lines: list[bytes], ended: bool, data: st.DataObject
) -> None:
    whole = b"\n".join(lines) + (b"\n" if ended else b"")
    file, starts = Bytes(whole), [0, *(n + 1 for n, byte in enumerate(whole) if byte == 10)]
    start = data.draw(st.sampled_from(starts))
    assert b"".join(block for _, block in blocks(file, start)) == whole[start:]
    at, back = len(whole), list[bytes]()
    while at:
        at, block = block_before(file, at)
        assert at in starts
        back.insert(0, block)
    assert b"".join(back) == whole
    assert last_line(file, len(whole))[1] == whole[whole.rfind(b"\n") + 1 :]
    assert line_at(file, start) == whole[start : whole.find(b"\n", start) + 1 or len(whole)]


def test_long_files_are_read_a_block_at_a_time_and_lines_longer_than_a_block_stay_whole() -> None:
    lines = [b"x" * (BLOCK // 3) for _ in range(10)] + [b"y" * (3 * BLOCK)] + [b"z" * 10] * 5
    whole = b"\n".join(lines) + b"\n"
    found = [line for _, block in blocks(Bytes(whole)) for line in block.split(b"\n")[:-1]]
    assert found == lines
    at, back = len(whole), list[bytes]()
    while at:
        at, block = block_before(Bytes(whole), at)
        back[:0] = block.split(b"\n")[:-1]
    assert back == lines
    last = Bytes(whole)
    assert block_before(last, len(whole))[1].endswith(b"z\n")
    assert last.touched <= 5 * BLOCK


def test_a_line_without_end_is_handed_out_in_pieces_and_never_held_whole() -> None:
    file = Bytes(b"x" * (MAX_LINE + 5 * BLOCK) + b"\nlast\n")
    sizes = [len(block) for _, block in blocks(file)]
    assert max(sizes) <= MAX_LINE + BLOCK
    assert sum(sizes) == file.size()
    assert len(line_at(file, 0)) == MAX_LINE
    assert len(block_before(file, file.size() - 6)[1]) <= MAX_LINE + BLOCK


# -- whole files beside them --------------------------------------------------------------------------------------------------


def test_a_file_beside_the_transcripts_is_replaced_whole(folder: LineFolder, tmp_path: Path) -> None:
    folder.create("one").close()
    assert folder.get("sessions.json") is None
    assert folder.put("sessions.json", json.dumps({"version": 1}).encode())
    assert folder.get("sessions.json") == b'{"version": 1}'
    assert stat.S_IMODE((tmp_path / "sessions/sessions.json").stat().st_mode) == 0o600
    assert list((tmp_path / ".anima/stage").iterdir()) == []
