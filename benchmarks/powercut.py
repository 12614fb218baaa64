"""Is what was acknowledged still there after the power went, on a disk that keeps only what it was told to keep?

Each operation is done once while every call that changes a file is written down. Then, for every moment in between, the
disk is put together as a power cut might have left it: everything that was not synced lost; names kept and contents
lost; contents kept and names lost; a part of the names in their order, with contents whole, torn or missing. The home
is opened on each of them, and must be old or new, with every acknowledged change in it.

    python benchmarks/powercut.py            all moments, eight random disks each beside the four certain ones
    python benchmarks/powercut.py --short    as in `make test`

History is left out: it may be late or broken, and is not synced.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anima import Home
from anima.errors import HomeError
from faults import NOW, OPERATIONS, Docs, Operation, snapshot

WITHOUT_HISTORY = (
    "write",
    "write-new",
    "append",
    "append-long",
    "append-untidy",
    "note",
    "remember",
    "move",
    "delete",
    "batch",
    "propose",
    "approve",
    "deny",
)


def opened(folder: Path) -> Home:
    return Home.open(
        folder,
        env={"ANIMA_CONFIG": f"{folder}.config"},
        clock=lambda: NOW,
        dice=random.Random(7),
        settings={"history.enabled": False},
    )


# -- what was done ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change to a file or folder, by inode. `what` is make, write, cut, sync, move, link, drop or acknowledged."""

    what: str
    node: int = 0
    folder: int = 0
    name: str = ""
    to_folder: int = 0
    to_name: str = ""
    at: int = 0
    data: bytes = b""
    is_folder: bool = False


class Recorder:
    """Stands between the store and the system, and writes down what passes. For one process that then ends."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        for name in ("open", "write", "fsync", "ftruncate", "rename", "link", "unlink", "mkdir"):
            setattr(os, name, self._around(getattr(os, name), getattr(self, f"_{name}")))

    def _around(self, real: Callable[..., Any], note: Callable[..., Iterator[Event]]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            noting = note(*given, **more)
            before = next(noting)
            result = real(*given, **more)
            if before is not None:
                self.events.append(noting.send(result))
            return result

        return call

    # Each looks first, says whether it will have something to tell, is given the result, and tells.

    def _open(self, path: Any, flags: int, *_: Any, dir_fd: int | None = None) -> Iterator[Any]:
        makes = flags & os.O_CREAT and not _there(path, dir_fd)
        fd = yield True if makes else None
        folder, name = _place(path, dir_fd)
        yield Event(what="make", node=os.fstat(fd).st_ino, folder=folder, name=name)

    def _write(self, fd: int, data: Any) -> Iterator[Any]:
        before = os.fstat(fd).st_size
        written = yield True
        yield Event(what="write", node=os.fstat(fd).st_ino, at=before, data=bytes(data)[:written])

    def _fsync(self, fd: int) -> Iterator[Any]:
        yield True
        yield Event(what="sync", node=os.fstat(fd).st_ino)

    def _ftruncate(self, fd: int, size: int) -> Iterator[Any]:
        yield True
        yield Event(what="cut", node=os.fstat(fd).st_ino, at=size)

    def _rename(self, a: Any, b: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> Iterator[Any]:
        (folder, name), (to_folder, to_name) = _place(a, src_dir_fd), _place(b, dst_dir_fd)
        node = os.stat(a, dir_fd=src_dir_fd).st_ino
        yield True
        yield Event(what="move", node=node, folder=folder, name=name, to_folder=to_folder, to_name=to_name)

    def _link(
        self,
        a: Any,
        b: Any,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> Iterator[Any]:
        node, (folder, name) = os.stat(a, dir_fd=src_dir_fd).st_ino, _place(b, dst_dir_fd)
        yield True
        yield Event(what="link", node=node, folder=folder, name=name)

    def _unlink(self, path: Any, *, dir_fd: int | None = None) -> Iterator[Any]:
        folder, name = _place(path, dir_fd)
        yield True
        yield Event(what="drop", folder=folder, name=name)

    def _mkdir(self, path: Any, *_: Any, dir_fd: int | None = None) -> Iterator[Any]:
        folder, name = _place(path, dir_fd)
        yield True
        yield Event(what="make", node=os.stat(path, dir_fd=dir_fd).st_ino, folder=folder, name=name, is_folder=True)


def _there(path: Any, dir_fd: int | None) -> bool:
    try:
        os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _place(path: Any, dir_fd: int | None) -> tuple[int, str]:
    folder, _, name = str(path).rpartition("/")
    return os.stat(folder or ".", dir_fd=dir_fd).st_ino, name


def recorded(operation: Operation, folder: Path) -> list[Event]:
    """What an operation changes, call by call. It runs in a process of its own."""
    out, answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            home, real_write = opened(folder), os.write
            recorder = Recorder()
            operation.act(home)
            raw = json.dumps([{**_dumped(event)} for event in recorder.events]).encode()
            while raw:
                raw = raw[real_write(answer, raw) :]
            code = 0
        finally:
            os._exit(code)
    os.close(answer)
    with open(out, "rb") as pipe:
        raw = pipe.read()
    os.waitpid(pid, 0)
    events = [Event(**{**event, "data": bytes.fromhex(event["data"])}) for event in json.loads(raw)]
    return [*events, Event(what="acknowledged")]


def _dumped(event: Event) -> dict[str, Any]:
    return {name: getattr(event, name) for name in Event.__slots__} | {"data": event.data.hex()}


# -- a disk -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Disk:
    """What is in memory, what is on the disk, and what is on its way."""

    root: int
    folders: dict[int, dict[str, int]] = field(default_factory=dict)
    files: dict[int, bytes] = field(default_factory=dict)
    kept_folders: dict[int, dict[str, int]] = field(default_factory=dict)
    kept_files: dict[int, bytes] = field(default_factory=dict)
    waiting: list[Event] = field(default_factory=list)  # changes of names that no sync has covered, in their order

    @classmethod
    def read(cls, folder: Path) -> Disk:
        disk = cls(root=folder.stat().st_ino)
        for path in (folder, *folder.rglob("*")):
            if path.is_dir():
                disk.folders[path.stat().st_ino] = {inner.name: inner.stat().st_ino for inner in path.iterdir()}
            else:
                disk.files[path.stat().st_ino] = path.read_bytes()
        disk.kept_folders = {node: dict(names) for node, names in disk.folders.items()}
        disk.kept_files = dict(disk.files)
        return disk

    def take(self, event: Event) -> None:
        if event.what == "write":
            old = self.files.get(event.node, b"")
            self.files[event.node] = (
                old[: event.at].ljust(event.at, b"\0") + event.data + old[event.at + len(event.data) :]
            )
        elif event.what == "cut":
            self.files[event.node] = self.files[event.node][: event.at]
        elif event.what == "sync":
            self.sync(event.node)
        elif event.what != "acknowledged":
            if event.what == "make":
                (self.folders if event.is_folder else self.files)[event.node] = {} if event.is_folder else b""  # type: ignore[index]
            renamed(self.folders, event)
            self.waiting.append(event)

    def sync(self, node: int) -> None:
        """A file's contents, or a folder's names. A move is one step: both of its folders get it, and what led to it."""
        if node in self.files:
            self.kept_files[node] = self.files[node]
            return
        told = [event for event in self.waiting if node in (event.folder, event.to_folder)]
        moved = {(event.folder, event.name) for event in told if event.what == "move"}
        for event in [event for event in self.waiting if event in told or (event.folder, event.name) in moved]:
            renamed(self.kept_folders, event)
            self.waiting.remove(event)

    def after_cut(
        self, dice: random.Random | None, *, names: bool, contents: bool
    ) -> tuple[dict[int, dict[str, int]], dict[int, bytes]]:
        """Folders and files as a power cut may leave them."""
        folders = {node: dict(inner) for node, inner in self.kept_folders.items()}
        arrived = len(self.waiting) if names else 0
        for event in self.waiting[: dice.randint(0, len(self.waiting)) if dice else arrived]:
            renamed(folders, event)
        files = {}
        for node, new in self.files.items():
            old = self.kept_files.get(node, b"")
            files[node] = dice.choice((old, new, torn(old, new, dice))) if dice else new if contents else old
        return folders, files


def torn(old: bytes, new: bytes, dice: random.Random) -> bytes:
    """A part of what was added, or of what was written anew."""
    return new[: dice.randint(len(old), len(new))] if new.startswith(old) else new[: dice.randint(0, len(new))]


def renamed(folders: dict[int, dict[str, int]], event: Event) -> None:
    here = folders.setdefault(event.folder, {})
    if event.what in ("make", "link"):
        here[event.name] = event.node
        if event.is_folder:
            folders.setdefault(event.node, {})
    elif event.what == "drop":
        here.pop(event.name, None)
    elif event.what == "move":
        here.pop(event.name, None)
        folders.setdefault(event.to_folder, {})[event.to_name] = event.node


def put_together(root: int, folders: dict[int, dict[str, int]], files: dict[int, bytes], place: Path) -> Path:
    place.mkdir(mode=0o700)
    for name, node in folders[root].items():
        if node in folders:
            put_together(node, folders, files, place / name)
        else:
            (place / name).write_bytes(files.get(node, b""))
            (place / name).chmod(0o600)
    return place


# -- all moments ------------------------------------------------------------------------------------------------------


def problems(folder: Path, before: Docs, after: Docs, *, acknowledged: bool) -> Iterator[str]:
    try:
        with opened(folder) as home:
            home.site.store.provenance  # noqa: B018  finishes what was interrupted
            docs = snapshot(folder)
            if docs not in (before, after):
                yield "the documents are neither old nor new"
            if acknowledged and docs != after:
                yield "it was acknowledged, and is lost"
            if not (verified := home.past.audit()).ok:
                yield f"audit: {verified.fault}"
            if home.write("later.md", "# Later\n").status != "written" or home.site.store.provenance.intents():
                yield "nothing can be written any more"
    except HomeError as error:
        yield f"{type(error).__name__}: {error}"


def disks(disk: Disk, dice: random.Random, randoms: int) -> Iterator[tuple[str, Any]]:
    for names in (True, False):
        for contents in (True, False):
            yield (
                f"names {'kept' if names else 'lost'}, contents {'kept' if contents else 'lost'}",
                disk.after_cut(None, names=names, contents=contents),
            )
    for n in range(randoms):
        yield f"random disk {n}", disk.after_cut(dice, names=True, contents=True)


def cut_everywhere(operation: Operation, place: Path, *, randoms: int, step: int) -> tuple[int, list[str]]:
    template = place / "template"
    home = Home.create(
        template,
        name="Aria",
        env={"ANIMA_CONFIG": f"{template}.config"},
        clock=lambda: NOW,
        settings={"history.enabled": False},
    )
    operation.prepare(home)
    home.close()
    before, disk, dice = snapshot(template), Disk.read(template), random.Random(1)
    events = recorded(operation, template)
    after, cuts, wrong = snapshot(template), 0, []
    for n, event in enumerate(events):
        disk.take(event)
        if n % step and event.what != "acknowledged":
            continue
        for what, (folders, files) in disks(disk, dice, randoms):
            cuts += 1
            folder = put_together(disk.root, folders, files, place / "trial")
            for problem in problems(folder, before, after, acknowledged=event.what == "acknowledged"):
                wrong.append(f"{operation.name}, after call {n} ({event.what} {event.name}), {what}: {problem}")
                print(f"  WRONG  {wrong[-1]}", flush=True)
            shutil.rmtree(folder)
    return cuts, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--json", action="store_true", help="one line of figures at the end")
    given = parser.parse_args()
    cuts, wrong = 0, list[str]()
    for operation in OPERATIONS:
        if operation.name not in WITHOUT_HISTORY:
            continue
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(prefix="anima-powercut-", dir=memory) as place:
            found = cut_everywhere(
                operation, Path(place), randoms=1 if given.short else 8, step=4 if given.short else 1
            )
        print(f"{operation.name:14} {found[0]:5} power cuts", flush=True)
        cuts, wrong = cuts + found[0], wrong + found[1]
    print(f"{cuts:,} power cuts; {len(wrong)} left something wrong")
    if given.json:
        print(json.dumps({"cuts": cuts, "wrong": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
