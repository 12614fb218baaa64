"""What talking through a home costs beside a bare HTTP client on the same loopback server.

Run with the environment's own Python: `.venv/bin/python benchmarks/chat.py`. Both send the same body and read the same
stream; the bare client does nothing else. Figures are medians from the second turn of a process on.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import tempfile
import time
from pathlib import Path

import httpx2

from anima import Home, Scope
from anima.agent.conversation import Conversation, Happening
from anima.agent.models import Models
from anima.testing.models import ModelServer, Spoken

TURNS, OPEN = 40, 100
ANSWER = Spoken("The boat is called Aurora, and it lies in the marina until the end of May. " * 6)


async def bare(server: ModelServer, body: bytes) -> tuple[float, float]:
    """Seconds to the first piece of text, and to the end."""
    headers = {"authorization": f"Bearer {server.key}", "content-type": "application/json"}
    async with httpx2.AsyncClient(headers=headers) as client:
        found = []
        for _ in range(TURNS):
            begun, first = time.perf_counter(), 0.0
            async with client.stream("POST", f"{server.url}/chat/completions", content=body) as response:
                async for line in response.aiter_lines():
                    if not first and '"content": "T' in line:
                        first = time.perf_counter() - begun
            found.append((first, time.perf_counter() - begun))
    return _medians(found[1:])


async def through_a_home(home: Home, models: Models) -> tuple[float, float]:
    found: list[tuple[float, float]] = []
    first = begun = 0.0

    def heard(what: Happening) -> None:
        nonlocal first
        if what.kind == "delta" and not first:
            first = time.perf_counter() - begun

    for _ in range(2):  # short conversations, so that both clients send about as much
        with home.session(scope=Scope.MAIN, channel="chat") as session:
            async with Conversation(session, models.made(models.choice()), heard=heard) as conversation:
                for number in range(TURNS // 2):
                    begun, first = time.perf_counter(), 0.0
                    await conversation.turn(f"What is the boat called? ({number})")
                    found.append((first, time.perf_counter() - begun))
    return _medians(found[1:])


def _medians(found: list[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(f for f, _ in found), statistics.median(w for _, w in found)


async def kept_open(home: Home, models: Models) -> float:
    """Megabytes that so many open conversations take, each after one turn."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    held = []
    for number in range(OPEN):
        session = home.session(scope=Scope.MAIN, channel="chat")
        conversation = Conversation(session, models.made(models.choice()))
        await conversation.__aenter__()
        await conversation.turn(f"Hello {number}")
        held.append((session, conversation))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for session, conversation in held:
        await conversation.__aexit__(None, None, None)
        session.leave()
    return (after - before) / 1024


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ModelServer(then=ANSWER) as server:
        env = {"ANIMA_CONFIG": str(Path(folder) / "own")}
        with Home.create(Path(folder) / "home", name="Aria", env=env) as home:
            models = Models.of(home)
            models.use("openai-chat:loopback", url=server.url, key=server.key)
            first, whole = asyncio.run(through_a_home(home, models))
            body = json.dumps(server.requests[TURNS // 4].body).encode()
            bare_first, bare_whole = asyncio.run(bare(server, body))
            megabytes = asyncio.run(kept_open(home, models))
    print(
        f"first token   bare {bare_first * 1000:6.1f} ms   home {first * 1000:6.1f} ms   over {(first - bare_first) * 1000:5.1f} ms"
    )
    print(
        f"whole turn    bare {bare_whole * 1000:6.1f} ms   home {whole * 1000:6.1f} ms   over {(whole - bare_whole) * 1000:5.1f} ms"
    )
    print(f"{OPEN} open conversations take {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
