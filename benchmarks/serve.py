"""A served home under a crowd, and what HTTP adds to a search.

    python benchmarks/serve.py [--seconds 60] [--clients 64] [--units 10000] [--rounds 300]

One server in a process of its own, on loopback, with a home of many units. First a search over HTTP beside the same
search in process and an empty route that needs a credential, measured turn about, medians compared: the search may cost
the one in process plus twice the empty route. Then clients, each an agent with a token of its own, that search, read and
write through the gate as fast as they are answered: errors, p50 and p99 of each, and the memory of the server. Exits
with 1 when an answer was an error, memory grew by more than a fifth after the first quarter, or the search cost too much.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from anima import Home, Scope
from anima.web.tokens import Keyring

WORDS = 4_000
PER_FILE = 25
MIX = (("memory_search", 0.5), ("memory_get", 0.35), ("memory_write", 0.15))
GROWTH = 1.2


class Texts:
    """Sentences of invented words, the same in every run."""

    def __init__(self) -> None:
        self.dice = random.Random(7)
        self.words = ["".join(self.dice.choices("aeioubcdfglmnprstv", k=self.dice.randint(3, 9))) for _ in range(WORDS)]
        self.weights = [1 / (n + 10) for n in range(WORDS)]

    def line(self, least: int = 8, most: int = 22) -> str:
        return " ".join(self.dice.choices(self.words, self.weights, k=self.dice.randint(least, most)))


def filled(root: Path, units: int, texts: Texts) -> list[str]:
    """A home with so many bullets in daily logs; gives their paths."""
    with Home.create(root, name="Aria") as home:
        first = date(2024, 1, 1)
        paths = [f"memory/{first + timedelta(days=day)}.md" for day in range(-(-units // PER_FILE))]
        for path in paths:
            bullets = "".join(f"- {texts.line()}\n" for _ in range(PER_FILE))
            (root / path).write_text(f"# {path[7:17]}\n\n{bullets}", encoding="utf-8")
        report = home.index()
    print(f"home: {report.documents:,} documents, {report.units:,} units")
    return paths


@contextmanager
def served(root: Path) -> Iterator[tuple[int, int]]:
    """The home served by a process of its own: its port and its process."""
    line = [sys.executable, "-m", "anima", "up", "--as-owner", "--home", str(root), "--port", "0", "--json"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        told = ""
        while not told.rstrip().endswith("\n}"):
            told += server.stdout.readline()
        yield int(json.loads(told)["url"].rpartition(":")[2]), server.pid
        server.terminate()
        if code := server.wait(30):
            sys.exit(f"the server ended with {code}")


class Line:
    """One connection that is kept, and just enough HTTP."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token

    async def open(self) -> None:
        self._in, self._out = await asyncio.open_connection("127.0.0.1", self._port)

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self._token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n" if data else "\r\n"
        self._out.write(head.encode() + data)
        answer = (await self._in.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        size = int(answer.partition("content-length: ")[2].partition("\r\n")[0] or 0)
        return int(answer.split(" ", 2)[1]), await self._in.readexactly(size)

    def close(self) -> None:
        self._out.close()


# -- what HTTP adds ----------------------------------------------------------------------------------------------------------


async def compared(port: int, home: Home, texts: Texts, rounds: int) -> bool:
    """Whether a search over HTTP costs at most one in process and twice the empty route."""
    line = Line(port, Keyring(home.credentials, clock=home.clock).owner_token())
    await line.open()
    times: dict[str, list[float]] = {"empty": [], "process": [], "http": []}
    for number in range(rounds + 20):
        question = texts.line(3, 5)
        path = f"/api/v1/search?scope=main&q={quote(question)}"
        for name in ("empty", "process", "http"):
            begun = time.perf_counter()
            if name == "process":
                home.search(question, scope=Scope.MAIN)
            else:
                status, _ = await line.ask("GET", "/api/v1/ping" if name == "empty" else path)
                assert status == 200, status
            if number >= 20:
                times[name].append(time.perf_counter() - begun)
    line.close()
    empty, process, http = (1e3 * statistics.median(times[name]) for name in ("empty", "process", "http"))
    limit = process + 2 * empty
    print(
        f"search: {process:.2f} ms in process, {http:.2f} ms over HTTP; empty route {empty:.2f} ms; limit {limit:.2f} ms"
    )
    return http <= limit


# -- a crowd -----------------------------------------------------------------------------------------------------------------


class Crowd:
    """Agents that ask as fast as they are answered."""

    def __init__(self, port: int, pid: int, paths: list[str], texts: Texts) -> None:
        self.port, self.pid, self.paths, self.texts = port, pid, paths, texts
        self.times: dict[str, list[float]] = {name: [] for name, _ in MIX}
        self.errors: list[str] = []
        self.memory: list[int] = []

    async def run(self, tokens: list[str], seconds: float) -> None:
        end = time.monotonic() + seconds
        await asyncio.gather(self._weigh(end, seconds), *(self._client(token, end) for token in tokens))

    async def _client(self, token: str, end: float) -> None:
        line = Line(self.port, token)
        await line.open()
        names, shares = zip(*MIX, strict=True)
        while time.monotonic() < end:
            name = self.texts.dice.choices(names, shares)[0]
            begun = time.perf_counter()
            status, body = await line.ask("POST", f"/api/v1/tools/{name}", self._arguments(name))
            self.times[name].append(time.perf_counter() - begun)
            if status != 200 or (name == "memory_write" and b'"refused"' in body):
                self.errors.append(f"{name} {status} {body[:200]!r}")
        line.close()

    def _arguments(self, name: str) -> dict[str, Any]:
        if name == "memory_search":
            return {"query": self.texts.line(3, 5)}
        if name == "memory_get":
            return {"path": self.texts.dice.choice(self.paths)}
        return {"target": "daily_log", "content": self.texts.line()}

    async def _weigh(self, end: float, seconds: float) -> None:
        while time.monotonic() < end:
            self.memory.append(resident(self.pid))
            await asyncio.sleep(seconds / 40)

    def told(self, seconds: float) -> bool:
        """Prints the figures; whether all is well."""
        total = sum(map(len, self.times.values()))
        print(
            f"crowd: {total:,} answers in {seconds:.0f} s, {total / seconds:,.0f} a second, {len(self.errors)} errors"
        )
        for name, times in self.times.items():
            if len(times) > 1:
                cuts = statistics.quantiles(times, n=100)
                print(f"  {name:<14} {len(times):>7,}   p50 {1e3 * cuts[49]:7.1f} ms   p99 {1e3 * cuts[98]:7.1f} ms")
        early, late = max(self.memory[: len(self.memory) // 4 + 1]), max(self.memory[-len(self.memory) // 4 :])
        print(f"  memory {early / 2**20:.0f} MiB in the first quarter, {late / 2**20:.0f} MiB in the last")
        for error in self.errors[:5]:
            print(f"  {error}")
        return not self.errors and late <= early * GROWTH


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    asked = argparse.ArgumentParser(description="A served home under a crowd.")
    asked.add_argument("--seconds", type=float, default=60)
    asked.add_argument("--clients", type=int, default=64)
    asked.add_argument("--units", type=int, default=10_000)
    asked.add_argument("--rounds", type=int, default=300)
    given = asked.parse_args()
    texts = Texts()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ANIMA_CONFIG"] = f"{folder}/config"
        root = Path(folder) / "home"
        paths = filled(root, given.units, texts)
        with served(root) as (port, pid):
            with Home.open(root) as home:
                is_cheap = asyncio.run(compared(port, home, texts, given.rounds))
                ring = Keyring(home.credentials, clock=home.clock)
                tokens = [
                    ring.make("agent", name=f"client {n}", scope=Scope.MAIN, agent=home.agent)[1]
                    for n in range(given.clients)
                ]
            crowd = Crowd(port, pid, paths, texts)
            asyncio.run(crowd.run(tokens, given.seconds))
            is_well = crowd.told(given.seconds)
    sys.exit(0 if is_cheap and is_well else 1)


if __name__ == "__main__":
    main()
