"""Transcripts beside the bare operations they stand on, in one run, as ratios.

    python benchmarks/sessions.py [--sessions 10000] [--entries 100000] [--rounds 200] [--folder DIR]

Logging a turn durably beside a bare append + fsync; listing sessions, from a fresh start with the list on disk, beside a
bare directory walk with a stat for each file; searching all entries, catching up and previews included, beside a bare
FTS5 query of the same words. Each pair is measured turn about, so that a busy machine slows both, and medians are
compared. Queries are two words of some entry. Exits with 1 when a ratio is over its limit. DIR should be on the disk that homes are on.
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path

from anima.gate.scan import redact
from anima.sessions.find import TranscriptIndex
from anima.sessions.record import Transcript, encode, transcripts_in
from anima.sessions.replay import Asker, Header, Turn, read, stamp
from anima.store import Logs, Rules
from anima.store.folder import Folder
from anima.store.place import FolderStore

START = datetime(2026, 1, 1, tzinfo=UTC)
LIMITS = {"log": 3.0, "list": 3.0, "search": 5.0}


class Bench:
    """One temporary home, and the figures found in it."""

    def __init__(self, root: Path, rounds: int) -> None:
        self.root, self.rounds, self.over = root, rounds, False
        rules = Rules(clock=lambda: datetime.now(UTC), author="kate", is_closed=lambda path: False)
        self.store = FolderStore(Folder(root), rules)
        self.dice = random.Random(7)
        vocabulary = [
            "".join(self.dice.choices("aeioubcdfglmnprstv", k=self.dice.randint(3, 9))) for _ in range(20_000)
        ]
        self.words = list(dict.fromkeys(vocabulary))
        self.weights = list(accumulate(1 / (n + 10) for n in range(len(self.words))))

    def folder(self, name: str) -> Logs:
        return transcripts_in(self.store, name)

    def index(self) -> TranscriptIndex:
        return TranscriptIndex(self.store.scratch("talks.sqlite", make=True), redact=redact)

    def text(self) -> str:
        return " ".join(self.dice.choices(self.words, cum_weights=self.weights, k=self.dice.randint(5, 45)))

    def pair(self, bare: Callable[[], object], ours: Callable[[], object]) -> tuple[float, float]:
        """Median seconds of both, measured turn about."""
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(self.rounds):
            for work, found in zip((bare, ours), times, strict=True):
                begun = time.perf_counter()
                work()
                found.append(time.perf_counter() - begun)
        return statistics.median(times[0]), statistics.median(times[1])

    def show(self, what: str, bare: float, ours: float, limit: float | None = None) -> None:
        ratio = ours / bare
        self.over |= limit is not None and ratio > limit
        mark = "" if limit is None else f"  limit {limit:.0f}x  {'ok' if ratio <= limit else 'OVER'}"
        print(f"{what:58} {bare * 1e3:9.3f} ms {ours * 1e3:9.3f} ms {ratio:6.2f}x{mark}", flush=True)


def logging(bench: Bench) -> None:
    header = Header(id="bench", timestamp=stamp(START), agent_id="kate", source_plugin="cli", scope="main", layer="")
    talk = Transcript.create(bench.folder("logging"), header, clock=lambda: datetime.now(UTC), redact=redact)
    texts = [bench.text() for _ in range(100)]
    lines = [encode(Turn(timestamp=stamp(START), role="user", content=text)) for text in texts]
    fd = os.open(bench.root / "logging/bare", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def bare() -> None:
        os.write(fd, bench.dice.choice(lines))
        os.fsync(fd)

    bench.show(
        "log a turn, redacted and durable / append + fsync",
        *bench.pair(bare, lambda: talk.log("user", bench.dice.choice(texts))),
        LIMITS["log"],
    )
    bench.show(
        "log a tool's turn (synced with the next) / append + fsync",
        *bench.pair(bare, lambda: talk.log("tool", bench.dice.choice(texts))),
    )
    talk.close()
    os.close(fd)


def write_session(folder: Logs, name: str, texts: list[str], start: datetime) -> None:
    header = Header(id=name, timestamp=stamp(start), agent_id="kate", source_plugin="cli", scope="main", layer="")
    turns = [
        Turn(timestamp=stamp(start + timedelta(seconds=n)), role=("user", "assistant")[n % 2], content=text)
        for n, text in enumerate(texts)
    ]
    with folder.create(name) as file:
        file.append(b"".join(map(encode, [header, *turns])), sync=False)


def listing(bench: Bench, sessions: int) -> None:
    folder = bench.folder("listing")
    folder.create("first").close()
    (bench.root / "listing/first.jsonl").unlink()
    header = Header(id="x", timestamp=stamp(START), agent_id="kate", source_plugin="cli", scope="main", layer="")
    for n in range(sessions):  # by hand: a folder synced for each of them would take minutes
        turns = [
            Turn(timestamp=stamp(START + timedelta(minutes=n)), role="user", content=bench.text()) for _ in range(4)
        ]
        (bench.root / f"listing/{n:08x}-session.jsonl").write_bytes(b"".join(map(encode, [header, *turns])))
    begun = time.perf_counter()
    bench.index().refresh(folder)
    print(f"{f'{sessions:,} sessions listed for the first time':58} {(time.perf_counter() - begun) * 1e3:12.0f} ms")

    def walk() -> int:
        with os.scandir(bench.root / "listing") as names:
            return sum(entry.stat(follow_symlinks=False).st_size for entry in names)

    def rows(shown: int) -> int:
        index = bench.index()
        found = index.rows(bench.folder("listing"), Asker(agent="kate"), shown)
        index.close()
        return found.total + sum(row.entries for row in found)

    rounds, bench.rounds = bench.rounds, max(10, bench.rounds // 10)
    assert rows(0) == sessions
    bench.show(
        f"open and list {sessions:,}, 50 shown / walk + stat", *bench.pair(walk, lambda: rows(50)), LIMITS["list"]
    )
    bench.show(f"open and list {sessions:,}, all shown / walk + stat", *bench.pair(walk, lambda: rows(sessions)))
    bench.rounds = rounds


def searching(bench: Bench, entries: int) -> None:
    folder, index, asker = bench.folder("searching"), bench.index(), Asker(agent="kate")
    plain = sqlite3.connect(bench.root / "bare.sqlite", isolation_level=None)
    plain.execute("create virtual table entry using fts5(text)")
    sessions = max(1, entries // 1000)
    plain.execute("begin")
    queries: list[str] = []
    for n in range(sessions):
        texts = [bench.text() for _ in range(entries // sessions)]
        write_session(folder, f"s{n}", texts, START + timedelta(days=n))
        plain.executemany("insert into entry(text) values(?)", ((text,) for text in texts))
        queries += [" ".join(bench.dice.sample(bench.dice.choice(texts).split(), k=2)) for _ in range(5)]
    plain.execute("commit")
    begun = time.perf_counter()
    taken = index.refresh(folder)
    print(f"{f'{taken:,} entries of {sessions} sessions indexed':58} {(time.perf_counter() - begun) * 1e3:12.0f} ms")
    bench.dice.shuffle(queries)
    turn = iter(range(10**9))

    def bare() -> int:
        query = " ".join(f'"{word}"' for word in queries[next(turn) // 2 % len(queries)].split())
        return len(
            plain.execute("select rowid from entry where entry match ? order by rank limit 50", (query,)).fetchall()
        )

    def ours() -> int:
        query = queries[next(turn) // 2 % len(queries)]
        return len(index.find(folder, query, asker, limit=50).hits)

    assert ours() >= 0 and next(turn)
    shown = f"search {entries:,} entries, catching up first / bare FTS5"
    bench.show(shown, *bench.pair(bare, ours), LIMITS["search"])
    index.close()
    plain.close()


def reading(bench: Bench, entries: int) -> None:
    folder = bench.folder("reading")
    write_session(folder, "long", [bench.text() for _ in range(entries)], START)
    row = bench.index().get(folder, "long")
    assert row is not None
    with folder.open("long") as file:
        size = file.size()
        for what, work in (
            ("the newest 50, count known", lambda: read(file, newest=True, known=row.known)),
            ("the newest 50, counted anew", lambda: read(file, newest=True)),
            ("50 from the middle", lambda: read(file, start=entries // 2)),
        ):
            begun = time.perf_counter()
            work()
            took = (time.perf_counter() - begun) * 1e3
            print(f"{f'read {what}, of {entries:,} entries ({size >> 20} MiB)':58} {took:12.1f} ms")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as root:
        bench = Bench(Path(root), given.rounds)
        print(f"{'':58} {'bare':>12} {'ours':>12}")
        logging(bench)
        listing(bench, given.sessions)
        reading(bench, given.entries)
        searching(bench, given.entries)
        bench.store.close()
    return int(bench.over)


if __name__ == "__main__":
    sys.exit(main())
