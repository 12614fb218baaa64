"""Does search answer alike on SQLite and on PostgreSQL, and what does it take on each, in one run?

    python benchmarks/engines.py [--store postgresql://…] [--units 1000 10000 100000] [--queries 30] [--rounds 7] [--homes]

The same generated documents in both; every question is put to both, turn by turn, and each answer is compared to the bit:
paths, lines, scores, texts. `--store` names a database for whoever owns it; without it a server of our own is started.

p50     a question to somebody who holds the home, with all 50 texts fetched
cold    the first question of somebody who holds nothing of it; least is the quickest of the rounds, which other work on
        the machine troubles least
put     seconds to take all documents in

With `--homes` whole homes are asked, a folder beside the database: cold is then opening one and the first search of it.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from anima import Home, Scope
from anima.search.embed import StaticEmbedder
from anima.search.field import Filter
from anima.search.index import DocumentIn, Index
from anima.search.rank import Query, run
from anima.search.rows import RowTables
from anima.search.tables import SqliteTables
from anima.store.rows import find_home
from anima.testing import postgres
from search import documents, timed, vocabulary

LIMIT = 50
Hits = list[tuple[Any, ...]]


class Asked(Protocol):
    """Something that is open and answers."""

    def search(self, question: str) -> Hits: ...
    def close(self) -> None: ...


class OverIndex:
    """An index alone, over the tables of one engine."""

    embedder = StaticEmbedder()

    def __init__(self, tables: Callable[[], Any]) -> None:
        self._index = Index(tables(), self.embedder)
        self.put, self.close = self._index.put, self._index.close

    def search(self, question: str) -> Hits:
        return told(run(self._index, self.embedder, Query(text=question, limit=LIMIT), Filter()).hits)


class OverHome:
    """A whole home at a place."""

    def __init__(self, place: str) -> None:
        self._home = Home.open(place, create=":" in place)
        self.close = self._home.close

    def put(self, every: Iterator[DocumentIn]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for document in every:
                path = Path(folder, document.path)
                path.parent.mkdir(exist_ok=True)
                path.write_text(document.text)
            self._home.import_directory(folder)
            self._home.index()

    def search(self, question: str) -> Hits:
        return told(self._home.search(question, scope=Scope.MAIN, limit=LIMIT).hits)


def told(hits: Any) -> Hits:
    return [(str(hit.path), hit.start_line, hit.end_line, hit.score, hit.text) for hit in hits]


@contextmanager
def engines(owner: str, *, homes: bool) -> Iterator[dict[str, Callable[[], Any]]]:
    """How each is opened: a folder's SQLite file, and rows of the database as its application sees them."""
    os.environ.setdefault("ANIMA_KEY", "0123456789abcdef" * 4)
    with tempfile.TemporaryDirectory() as place:
        os.environ["ANIMA_CONFIG"] = f"{place}/config"
        address = f"{postgres.prepare(owner)}#{postgres.new_tenant(owner)}"
        if homes:
            Path(place, "home").mkdir()
            yield {"SQLite": lambda: OverHome(f"{place}/home"), "PostgreSQL": lambda: OverHome(address)}
            return
        rows = find_home(address, tenant=None, agent=None, env=os.environ, create=True).rows
        yield {
            "SQLite": lambda: OverIndex(lambda: SqliteTables(f"{place}/i.sqlite", lock=f"{place}/i.lock")),
            "PostgreSQL": lambda: OverIndex(lambda: RowTables(rows)),
        }


@contextmanager
def database(owner: str | None) -> Iterator[str]:
    """The database somebody named, or one on a server of our own, which goes afterwards; the address for its owner."""
    folder = tempfile.mkdtemp(prefix="pg-")
    try:
        yield owner or postgres.server(folder)
    finally:
        postgres.stop(folder)
        shutil.rmtree(folder, ignore_errors=True)


def measure(owner: str, units: int, asked: argparse.Namespace) -> bool:
    """Prints one size; whether every answer was the same."""
    dice = random.Random(units)
    words = vocabulary(dice)
    every = list(documents(dice, words, units))
    questions = [" ".join(dice.sample(words[20:5000], dice.randint(3, 7))) for _ in range(asked.queries)]
    put, cold, warm = dict[str, float](), dict[str, list[float]](), dict[str, list[float]]()
    with engines(owner, homes=asked.homes) as kinds, ExitStack() as stack:
        for name, opened in kinds.items():
            with closing(opened()) as engine:
                put[name] = timed(lambda engine=engine: engine.put(iter(every)))[0]  # type: ignore[misc]
        for question in questions[: asked.rounds]:
            for name, opened in kinds.items():
                start = time.perf_counter()
                with closing(opened()) as engine:
                    engine.search(question)
                    cold.setdefault(name, []).append(time.perf_counter() - start)
        held = {name: stack.enter_context(closing(opened())) for name, opened in kinds.items()}
        same = 0
        for number, question in enumerate(questions[:3] + questions):  # the first three only warm up
            answers = []
            for name, engine in held.items():
                spent, hits = timed(lambda engine=engine, question=question: engine.search(question))  # type: ignore[misc]
                answers.append(hits)
                if number >= 3:
                    warm.setdefault(name, []).append(spent)
            same += number >= 3 and bool(answers[0]) and answers[0] == answers[1]
    print(f"{units:>9} units: {same} of {len(questions)} answers the same to the bit")
    least = {name: min(every) for name, every in cold.items()}
    rows = (("p50", middle(warm)), ("cold", middle(cold)), ("least", least), ("put", put))
    for name, found in rows:
        one, two = found.values()
        unit, scale = ("s", 1.0) if name == "put" else ("ms", 1e3)
        ours = f"SQLite {one * scale:.1f} {unit}, PostgreSQL {two * scale:.1f} {unit}"
        print(f"{'':>9} {name:>5}: {ours} = {two / one:.2f}x", flush=True)
    return same == len(questions)


def middle(found: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(every) for name, every in found.items()}


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--store", help="a database, for its owner")
    ask.add_argument("--units", type=int, nargs="+", default=[1000, 10_000, 100_000])
    ask.add_argument("--queries", type=int, default=30)
    ask.add_argument("--rounds", type=int, default=7, help="how often cold is measured")
    ask.add_argument("--homes", action="store_true", help="whole homes, not the index alone")
    asked = ask.parse_args()
    with database(asked.store) as owner:
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        if not all(measure(owner, units, asked) for units in asked.units):
            raise SystemExit("some answers differ")


if __name__ == "__main__":
    main()
