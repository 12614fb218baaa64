"""What does a change cost that is scanned, judged, written down, durable and committed?

Measured against the least that anybody would do by hand for the same file in the same tree of 300: replace it by
fsync and rename, add a line to a log with fsync, commit it with pygit2. Both are done in turns, so that whatever else
the machine does hits both. And: does a long daily log make each line dear, and what does a document of 6 MB cost beside
copying it with fsync? The floor beside it says how much of that nobody could save.

    python benchmarks/write.py            exits with 1 when a change costs more than 3 times the bare sequence, or a
                                          line of a 10,000-line log more than 1.5 times one of a 10-line log
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pygit2
import pygit2.enums

from anima import Home

FILES, PATH = 300, "notes/n007.md"
CHANGE_LIMIT, APPEND_LIMIT = 3.0, 1.5
STEPS = (
    ("scan and gate", "writing", "judge"),
    ("read what stands there", "hand", "look"),
    ("stage, fsync", "hand", "stage"),
    ("intent, fsync", "ledger", "intend"),
    ("rename, fsync of the folder", "hand", "do"),
    ("done", "ledger", "done"),
    ("history", "books", "commit"),
)


def text(n: int, number: int = 0) -> str:
    lines = [f"- fact {line} about note {number}, as it was on day {n if line == 3 else 0}" for line in range(20)]
    return f"# Note {number}\n\n" + "\n".join(lines) + "\n"


# -- by hand ----------------------------------------------------------------------------------------------------------


class Bare:
    """The bare sequence, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "notes").mkdir(parents=True)
        for number in range(FILES):
            (folder / f"notes/n{number:03}.md").write_text(text(0, number))
        self.repository = pygit2.init_repository(str(folder))
        self.repository.index.add_all()
        self.repository.index.write()
        self.signature = pygit2.Signature("Aria", "aria@example.org")
        self._commit(self.repository.index.write_tree(), [])
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self.log = os.open(folder / "log.jsonl", flags, 0o600)

    def change(self, n: int) -> None:
        self.replace(text(n).encode())
        self.append(b'{"n":%d,"hash":"%s"}\n' % (n, b"0" * 300))
        self.commit()

    def replace(self, data: bytes) -> None:
        place = self.folder / PATH
        temp = place.with_name(".new")
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(fd, data)
        os.fsync(fd)
        os.close(fd)
        os.rename(temp, place)
        fd = os.open(place.parent, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)

    def append(self, data: bytes) -> None:
        os.write(self.log, data)
        os.fsync(self.log)

    def commit(self) -> None:
        """The quickest way there is: one blob, the two trees above it, a commit. Git's own index is left behind."""
        head = self.repository[self.repository.head.target].peel(pygit2.Commit)
        folder, name = PATH.split("/")
        blob = self.repository.create_blob_fromworkdir(PATH)
        inner = self.repository.TreeBuilder(self.repository[head.tree[folder].id].peel(pygit2.Tree))
        inner.insert(name, blob, pygit2.enums.FileMode.BLOB)
        outer = self.repository.TreeBuilder(head.tree)
        outer.insert(folder, inner.write(), pygit2.enums.FileMode.TREE)
        self._commit(outer.write(), [head.id])

    def _commit(self, tree: Any, parents: list[Any]) -> None:
        self.repository.create_commit("HEAD", self.signature, self.signature, "change", tree, parents)


# -- by the road ------------------------------------------------------------------------------------------------------


def made(place: Path) -> Home:
    home = Home.create(place / "home", name="Aria", env={"ANIMA_CONFIG": str(place / "config")})
    source = place / "source/notes"
    source.mkdir(parents=True)
    for number in range(FILES):
        (source / f"n{number:03}.md").write_text(text(0, number))
    home.import_directory(place / "source", mine=True)
    return home


def timed(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return (time.perf_counter() - begun) * 1000


def in_turns(acts: dict[str, Callable[[int], object]], *, rounds: int, warm: int = 10) -> dict[str, list[float]]:
    """Milliseconds of each act, done one after the other, round after round."""
    found: dict[str, list[float]] = {name: [] for name in acts}
    for n in range(rounds + warm):
        for name, act in acts.items():
            took = timed(lambda act=act, n=n: act(n + 1))  # type: ignore[misc]
            if n >= warm:
                found[name].append(took)
    return found


def per_step(home: Home, *, rounds: int) -> dict[str, float]:
    """Milliseconds of each step of a change; the rest is what is left."""
    spent: dict[str, float] = dict.fromkeys((name for name, _, _ in STEPS), 0.0)
    owners: dict[str, Any] = {
        "writing": home._writer,
        "books": home.site.store,
        "hand": home.site.store,
        "ledger": home.site.store.ledger,
    }
    for name, owner, method in STEPS:
        watched(owners[owner], method, name, spent)
    whole = sum(timed(lambda n=n: home.write(PATH, text(n))) for n in range(1000, 1000 + rounds))  # type: ignore[misc]
    for _, owner, method in STEPS:
        delattr(owners[owner], method)
    return {name: took / rounds for name, took in {**spent, "everything else": whole - sum(spent.values())}.items()}


def watched(owner: Any, method: str, name: str, spent: dict[str, float]) -> None:
    real = getattr(owner, method)

    def call(*given: Any, **more: Any) -> Any:
        begun = time.perf_counter()
        try:
            return real(*given, **more)
        finally:
            spent[name] += (time.perf_counter() - begun) * 1000

    setattr(owner, method, call)


def with_logs(home: Home) -> dict[str, Callable[[int], object]]:
    """Two daily logs, one of 10 lines and one of 10,000."""
    short, long = "memory/2026-05-08.md", "memory/2026-05-09.md"
    for path, lines in ((short, 10), (long, 10_000)):
        home.write(path, "".join(f"- [{n // 60 % 24:02}:{n % 60:02}] line {n} of the day\n" for n in range(lines)))
    return {
        "short": lambda n: home.append(short, f"- [14:30] one more, {n}\n"),
        "long": lambda n: home.append(long, f"- [14:30] one more, {n}\n"),
    }


def very_long(home: Home, place: Path, *, rounds: int = 3) -> dict[str, list[float]]:
    """A document of 6 MB, another one each time: copied with fsync, written, the writing undone, and the undoing. The floor
    is what no writing of ours can do without: one durable copy, one blob for history, one digest of each sort."""

    def whole(n: int) -> bytes:
        lines = (
            f"- the reading {n} of the gauge was taken on day {day:07}, and it was as usual" for day in range(83_000)
        )
        return ("\n".join(lines) + "\n").encode()

    texts = {n: whole(n) for n in range(1, rounds + 2)}

    def copy(n: int, name: str = "copy") -> None:
        with open(place / f"{name}-{n}", "wb") as file:
            file.write(texts[n])
            file.flush()
            os.fsync(file.fileno())

    def floor(n: int) -> None:
        copy(n, "floor")
        (place / f"blob-{n}").write_bytes(zlib.compress(texts[n], 0))
        hashlib.sha256(texts[n]).digest()
        hashlib.sha1(texts[n], usedforsecurity=False).digest()

    acts: dict[str, Callable[[int], object]] = {
        "copied": copy,
        "floor": floor,
        "written": lambda n: home.write(f"notes/gauge-{n}.md", texts[n].decode()),
        "undone": lambda n: home.undo(),
        "brought back": lambda n: home.undo(home.past.changes(limit=1)[0].id),
    }
    return in_turns(acts, rounds=rounds, warm=1)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=150)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="anima-write-") as place:
        bare, home = Bare(Path(place) / "bare"), made(Path(place))
        took = in_turns({"bare": bare.change, "ours": lambda n: home.write(PATH, text(n))}, rounds=rounds)
        steps = per_step(home, rounds=rounds)
        logs = in_turns(with_logs(home), rounds=rounds)
        large = very_long(home, Path(place))
        home.close()
    middle = {name: statistics.median(found) for name, found in {**took, **logs, **large}.items()}
    change, line = middle["ours"] / middle["bare"], middle["long"] / middle["short"]
    print(f"a change, bare       {middle['bare']:7.2f} ms   replace, append, commit in a tree of {FILES} files")
    print(f"a change, ours       {middle['ours']:7.2f} ms   {change:.2f} times as much (at most {CHANGE_LIMIT})")
    for name, step in steps.items():
        print(f"    {name:28} {step:7.2f} ms")
    print(f"a line, 10 lines     {middle['short']:7.2f} ms")
    print(f"a line, 10,000 lines {middle['long']:7.2f} ms   {line:.2f} times as much (at most {APPEND_LIMIT})")
    print(f"6 MB, copied         {middle['copied']:7.2f} ms   with fsync")
    print(f"6 MB, floor          {middle['floor']:7.2f} ms   with a blob for history, a SHA-256 and a SHA-1")
    for name in ("written", "undone", "brought back"):
        print(f"6 MB, {name:14} {middle[name]:7.2f} ms   {middle[name] / middle['copied']:.1f} times as much (aim: 5)")
    return 0 if change <= CHANGE_LIMIT and line <= APPEND_LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
