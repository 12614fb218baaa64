"""What does a database of many tenants' homes do, and what does it take?

    python benchmarks/fleet.py [--tenants 50] [--units 1000] [--seconds 5] [--workers 1 8 32] [--growth 10000 100000]
    python benchmarks/fleet.py --full       1,000 tenants of 1,000 units, and one home of a million
    python benchmarks/fleet.py --store postgresql://…   a database of one's own, for its owner; else a server is started

Four homes are made by the ordinary road (import, gate, ledger, history, index); the others are copies of their rows under
other tenants. Workers are processes that share the machine with the server.

tables  searches of one tenant while the tables grow by the others: warm, and cold (open a home, search, close it)
search  searches a second over random tenants, homes held (warm) or opened for each (cold); p50 and p99
write   gated changes a second (append a line, with ledger and its record's head), each to a random tenant's home
bytes   of tables with their indexes, for each unit
cpu     processor time of each, the server's and the worker's together: it hangs less on what else the machine does
memory  of what a process holds for a home, and of a process before and after it holds some
home    one home that grows: its p50, its cold search, its bytes
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from typing import Any

import psycopg

from anima import Home, Scope
from anima.search.rows import RowTables
from anima.store.rows import find_home
from anima.testing import postgres
from engines import LIMIT, OverHome, OverIndex, database
from search import documents, vocabulary

ORIGINALS = 4
FULL: dict[str, Any] = {"tenants": 1000, "units": 1000, "growth": [10_000, 100_000, 1_000_000]}
KINDS = {
    "index": ("part", "document", "made"),
    "documents": ("file", "line", "gone"),
    "ledger": ("record", "head"),
    "history": ("revision", "version"),
}
FOUND: dict[str, Any] = {}


def say(name: str, **found: Any) -> None:
    """A line of figures, with the load of the moment."""
    FOUND[name] = found
    shown = "  ".join(
        f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}" for key, value in found.items()
    )
    print(f"{name:24} {shown}  (load {os.getloadavg()[0]:.0f})", flush=True)


# -- homes ------------------------------------------------------------------------------------------------------------------


def fill(owner: str, address: str, tenants: int, units: int) -> Iterator[list[str]]:
    """Makes tenants with a home each; gives the names of all there are, at 10, 100 and so on."""
    names = []
    for n in range(min(ORIGINALS, tenants)):
        names.append(postgres.new_tenant(owner))
        dice = random.Random(n)
        with closing(OverHome(f"{address}#{names[-1]}")) as home:
            home.put(documents(dice, vocabulary(dice), units))
    with psycopg.connect(owner, autocommit=True) as db:
        sql = "select table_name, string_agg(column_name, ',') from information_schema.columns where table_schema = 'anima'"
        columns = dict(db.execute(f"{sql} group by 1 having bool_or(column_name = 'home')").fetchall())
        while len(names) < tenants:
            of, made = names[len(names) % ORIGINALS], postgres.new_tenant(owner)
            number = "(select tenant from anima.tenant where name = %s)"
            for table, held in columns.items():
                rest = ",".join(name for name in held.split(",") if name != "tenant")
                sql = f"insert into anima.{table}(tenant,{rest}) select {number},{rest} from anima.{table} where tenant = {number}"
                db.execute(sql, (made, of))  # type: ignore[arg-type]
            names.append(made)
            if len(names) in (10, 100):
                db.execute("vacuum analyze")
                yield names
        db.execute("vacuum analyze")
    yield names


def questions(count: int) -> list[str]:
    dice = random.Random(0)  # the vocabulary of the first original, and much of the others'
    words = vocabulary(dice)
    return [" ".join(dice.sample(words[20:5000], dice.randint(3, 7))) for _ in range(count)]


class Work:
    """Deeds one after the other: how long each took, and the processor time of this process and of its backend."""

    def __init__(self, home: Home) -> None:
        engine: Any = home.site.store.rows.engine  # type: ignore[attr-defined]
        with engine.connection() as db:
            self._backend = db.info.backend_pid
        self.spent, self.cpu = list[float](), -self._cpu()

    def _cpu(self) -> float:
        with open(f"/proc/{self._backend}/stat") as file:
            ticks = sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
        return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")

    @contextmanager
    def deed(self) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.spent.append(time.perf_counter() - start)

    def done(self) -> tuple[list[float], float]:
        return self.spent, self.cpu + self._cpu()


def asked(address: str, names: list[str], count: int, *, cold: bool, seed: int = 0) -> tuple[list[float], float]:
    """So many searches over random tenants; each home was held, or none was."""
    dice, texts = random.Random(seed), questions(50)
    with ExitStack() as stack:
        held = {} if cold else {name: stack.enter_context(opened(address, name)) for name in names}
        for home in held.values():
            home.search("warm", scope=Scope.MAIN)
        with opened(address, names[0]) as home:  # the embedder's words, the pool
            for text in texts:
                home.search(text, scope=Scope.MAIN)
            work = Work(home)
        for _ in range(count):
            name, text = dice.choice(names), dice.choice(texts)
            with work.deed(), opened(address, name) if cold else nullcontext(held.get(name)) as home:
                home.search(text, scope=Scope.MAIN)
        return work.done()


@contextmanager
def opened(address: str, name: str) -> Iterator[Home]:
    with Home.open(f"{address}#{name}", embedder=OverIndex.embedder) as home:
        yield home


def written(address: str, names: list[str], seconds: float, *, seed: int) -> tuple[list[float], float]:
    """Gated changes, made one after the other for so long, to homes that are held."""
    dice = random.Random(seed)
    with ExitStack() as stack:
        held = [stack.enter_context(opened(address, name)) for name in dice.sample(names, min(8, len(names)))]
        for home in held:
            home.append("log.md", "- first\n")
        work, until = Work(held[0]), time.perf_counter() + seconds
        while time.perf_counter() < until:
            with work.deed():
                dice.choice(held).append("log.md", f"- {seed} {len(work.spent)}\n")
        return work.done()


def side_by_side(
    workers: int, work: Callable[..., tuple[list[float], float]], *given: Any, **more: Any
) -> dict[str, Any]:
    """The same work in so many processes at once: how many a second all of them did, and how long each took."""
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        jobs = [pool.apply_async(work, given, {**more, "seed": seed}) for seed in range(workers)]
        found = [job.get() for job in jobs]
    every = sorted(spent for each, _ in found for spent in each)
    rate, cpu = sum(len(each) / sum(each) for each, _ in found), sum(cpu for _, cpu in found) * 1e3 / len(every)
    high = every[int(len(every) * 0.99)] * 1e3
    return {"a_second": rate, "p50_ms": middle(every), "p99_ms": high, "cpu_ms": cpu, "n": len(every)}


def middle(spent: list[float]) -> float:
    return statistics.median(spent) * 1e3


# -- figures ----------------------------------------------------------------------------------------------------------------


def sizes(owner: str, units: int) -> None:
    with psycopg.connect(owner, autocommit=True) as db:
        sql = (
            "select coalesce(sum(pg_total_relation_size(('anima.' || name)::regclass)), 0) from unnest(%s::text[]) name"
        )
        found = {kind: float(db.execute(sql, (list(tables),)).fetchone()[0]) for kind, tables in KINDS.items()}  # type: ignore[index]
    say("bytes a unit", **{kind: size / units for kind, size in found.items()}, all=sum(found.values()) / units)


def memory(address: str, names: list[str]) -> None:
    def resident() -> float:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 1e6

    with ExitStack() as stack:
        with opened(address, names[0]) as home:
            home.search("warm", scope=Scope.MAIN)
        before, homes = resident(), [stack.enter_context(opened(address, name)) for name in names[:50]]
        for home in homes:
            home.search("warm", scope=Scope.MAIN)
        index, more = statistics.mean(home.index.held_bytes for home in homes) / 1e6, resident() - before
        say("memory", process_mb=before, homes=len(homes), a_home_mb=more / len(homes), of_it_index_mb=index)


def grown(owner: str, address: str, sizes: list[int], count: int) -> None:
    """One home of 10,000 units, and then copies of its rows beside them, so that each size is a multiple of it."""
    name = postgres.new_tenant(owner)
    rows = find_home(f"{address}#{name}", tenant=None, agent=None, env=os.environ, create=True).rows
    dice, least = random.Random(1), min(sizes)
    words = vocabulary(dice)
    with closing(OverIndex(lambda: RowTables(rows))) as index:
        index.put(documents(dice, words, least))
    texts = [" ".join(dice.sample(words[20:5000], dice.randint(3, 7))) for _ in range(count)]
    for size in sizes:
        with psycopg.connect(owner, autocommit=True) as db:
            copied(db, rows.tenant, size // least)
        cold, cpu = [], time.process_time()
        for text in texts[:3]:
            start = time.perf_counter()
            with closing(OverIndex(lambda: RowTables(rows))) as index:
                index.search(text)
                cold.append(time.perf_counter() - start)
        cold_cpu = (time.process_time() - cpu) * 1e3 / 3
        with closing(OverIndex(lambda: RowTables(rows))) as index:
            index.search(texts[0])
            spent, cpu = [], time.process_time()
            for text in texts:
                start = time.perf_counter()
                index.search(text)
                spent.append(time.perf_counter() - start)
            held, cpu = index._index.held_bytes / 1e6, (time.process_time() - cpu) * 1e3 / len(texts)
        found = {"p50_ms": middle(spent), "cpu_ms": cpu, "cold_ms": middle(cold), "cold_cpu_ms": cold_cpu}
        say(f"home of {size:,}", **found, held_mb=held, limit=LIMIT)


def copied(db: psycopg.Connection[Any], tenant: int, times: int) -> None:
    """So many times the first rows of a home's index, under other numbers and paths; those there are already stay."""
    made = db.execute("select last_part, last_document from anima.made where tenant = %s", (tenant,)).fetchone()
    parts, docs = made or (0, 0)
    first = {"tenant": tenant, "parts": parts, "docs": docs}
    base = db.execute("select min(id) from anima.part where tenant = %(tenant)s", first).fetchone()
    known = FOUND.setdefault("_first", (parts, docs)) if base else (parts, docs)
    p, d = known
    for n in range(docs // d, times):
        sql = """
            insert into anima.document select tenant, home, id + %(n)s::bigint * %(d)s, path || '.' || %(n)s, digest, kind, layer, day
            from anima.document where tenant = %(tenant)s and id <= %(d)s
        """
        db.execute(sql, {**first, "n": n, "d": d})
        sql = """
            insert into anima.part select tenant, home, id + %(n)s::bigint * %(p)s, document + %(n)s::bigint * %(d)s, packed, vectors, said
            from anima.part where tenant = %(tenant)s and id <= %(p)s
        """
        db.execute(sql, {**first, "n": n, "p": p, "d": d})
    sql = "update anima.made set generation = generation + 1, last_part = %s, last_document = %s where tenant = %s"
    db.execute(sql, (p * times, d * times, tenant))
    db.execute("analyze anima.part")


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--store", help="a database, for its owner")
    ask.add_argument("--tenants", type=int, default=50)
    ask.add_argument("--units", type=int, default=1000)
    ask.add_argument("--seconds", type=float, default=5.0)
    ask.add_argument("--searches", type=int, default=200, help="of each process")
    ask.add_argument("--workers", type=int, nargs="+", default=[1, 8, 32])
    ask.add_argument("--growth", type=int, nargs="*", default=[10_000, 100_000])
    ask.add_argument("--full", action="store_true", help="1,000 tenants of 1,000 units, and one home of a million")
    ask.add_argument("--json", help="a file for all figures")
    given = ask.parse_args()
    vars(given).update(FULL if given.full else {})
    os.environ.setdefault("ANIMA_KEY", "0123456789abcdef" * 4)
    with database(given.store) as owner, tempfile.TemporaryDirectory() as config:
        os.environ["ANIMA_CONFIG"] = config
        address, names = postgres.prepare(owner), list[str]()
        start = time.perf_counter()
        for names in fill(owner, address, given.tenants, given.units):
            some = random.Random(1).sample(names, min(10, len(names)))
            warm = side_by_side(1, asked, address, some, given.searches, cold=False)
            cold = side_by_side(1, asked, address, some, given.searches // 2, cold=True)
            units = len(names) * given.units
            found = {"warm_p50_ms": warm["p50_ms"], "warm_cpu_ms": warm["cpu_ms"], "cold_p50_ms": cold["p50_ms"]}
            say(f"tables of {units:,}", **found, cold_cpu_ms=cold["cpu_ms"])
        say("filled", tenants=len(names), seconds=time.perf_counter() - start)
        sizes(owner, len(names) * given.units)
        for workers in (1, 2):
            some = random.Random(2).sample(names, min(100, len(names)))
            say(f"search warm, {workers}", **side_by_side(workers, asked, address, some, given.searches, cold=False))
            say(f"search cold, {workers}", **side_by_side(workers, asked, address, names, given.searches, cold=True))
        for workers in given.workers:
            say(f"write, {workers}", **side_by_side(workers, written, address, names, given.seconds))
        memory(address, names)
        if given.growth:
            grown(owner, address, given.growth, 20)
    if given.json:
        with open(given.json, "w") as file:
            json.dump({key: value for key, value in FOUND.items() if not key.startswith("_")}, file, indent=1)


if __name__ == "__main__":
    main()
