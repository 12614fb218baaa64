"""What a served home costs while nobody talks: a simulated day of rounds, 100 routines, 100 sub-agents, and real seconds.

    python benchmarks/schedule.py [--seconds 20] [--many 100]

A day is 4,320 rounds of the schedule (one in 20 seconds) by a clock that is moved, in this process: processor time of a day
with an empty HEARTBEAT.md, of one with a heartbeat, and of one with many routines that each run once, with a model that
answers at once. Then many sub-agents: what their pages add to a prompt, and a conversation that starts each of them, one
after the other. Last a real server, idle, with all its chores: processor time and wake-ups, as they would be in a day.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from anima import Home, Scope
from anima.agent.conversation import Conversation
from anima.agent.rituals import Rituals
from anima.testing import Clock

DAY, ROUND = 86_400, 20
PAGE = "---\ndescription: Helper number {n}, which looks something up and says what it found.\n---\n\nYou are number {n}.\n"
SERVER = """
import os, resource, sys, threading, time
from anima import Home
from anima.web.serve import create_app
from anima.web.serve import CHORES
from anima.web.serve import bound, server_for
from anima.web.tokens import Keyring

with Home.open(sys.argv[1]) as home:
    server = server_for(create_app(home, keyring=Keyring(home.credentials, clock=home.clock), chores=CHORES))
    socket = bound(0)
    def look():
        time.sleep(5)
        used = resource.getrusage(resource.RUSAGE_SELF)
        time.sleep(float(sys.argv[2]))
        after = resource.getrusage(resource.RUSAGE_SELF)
        print(after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime, after.ru_nvcsw - used.ru_nvcsw,
              after.ru_maxrss, flush=True)
        os._exit(0)
    threading.Thread(target=look, daemon=True).start()
    server.run(sockets=[socket])
"""


def speaks(answers: list[tuple[str, dict[str, object]] | str]) -> FunctionModel:
    left = list(answers)

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        step = left.pop(0) if left else "HEARTBEAT_OK"
        if isinstance(step, str):
            yield step
        else:
            yield {0: DeltaToolCall(name=step[0], json_args=json.dumps(step[1]), tool_call_id=f"c{len(left)}")}

    return FunctionModel(stream_function=stream)


def simulated(folder: Path, name: str, pages: dict[str, str]) -> None:
    """A day of rounds, as a server makes them."""
    clock = Clock(datetime(2026, 5, 8, tzinfo=UTC))
    given = {"timezone": "UTC", "rituals.day_tokens": 1_000_000_000, "rituals.heartbeat": "30m"}
    with Home.create(folder / name.replace(" ", "-"), clock=clock, settings=given) as home:
        for path, text in pages.items():
            home.write(path, text)
        Rituals(home, made=lambda model: speaks([])).switch(on=True)
        runs, began, wall = 0, time.process_time(), time.perf_counter()
        for _ in range(DAY // ROUND):
            runs += len(Rituals(home, made=lambda model: speaks([])).round())
            clock.forward(seconds=ROUND)
        used = time.process_time() - began
    print(
        f"{name:<24} {DAY // ROUND:>6,} rounds {runs:>4} runs {used:7.2f} s of processor time"
        f" ({used / (DAY // ROUND) * 1000:.2f} ms a round; {time.perf_counter() - wall:.1f} s by the wall)"
    )


def subagents(folder: Path, many: int) -> None:
    with Home.create(folder / "agents") as home:
        times = []
        for count in (0, many):
            for n in range(count):
                place = Path(home.name) / "subagents" / f"number-{n}.md"
                place.parent.mkdir(exist_ok=True)
                place.write_text(PAGE.format(n=n), encoding="utf-8")
            began = time.process_time()
            for _ in range(10):
                prompt = home.prompt(scope=Scope.MAIN)
            times.append((time.process_time() - began) / 10)
        print(
            f"a prompt with {many} sub-agents' pages: {times[1] * 1000:.1f} ms of processor time, without {times[0] * 1000:.1f};"
            f" {len(prompt.text):,} characters"
        )
        asks: list[tuple[str, dict[str, object]] | str] = []
        for n in range(many):  # one model for all: each start is answered by the sub-agent's own word
            asks += [("agent_spawn", {"agent": f"number-{n}", "task": "Look it up."}), "Found."]

        async def talk() -> None:
            with home.session(scope=Scope.MAIN, channel="chat") as session:
                async with Conversation(session, speaks(asks), requests=10 * many) as conversation:
                    await conversation.turn("Ask them all.")

        began, wall = time.process_time(), time.perf_counter()
        asyncio.run(talk())
        used, spent = time.process_time() - began, time.perf_counter() - wall
        rows = [row for row in home.sessions.list() if row.scope == "subagent"]
        assert len(rows) == many and all(row.closed for row in rows)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{many} sub-agents, one after the other: {used / many * 1000:.1f} ms of processor time each,"
        f" {spent / many * 1000:.1f} by the wall; peak {peak} MiB"
    )


def served(folder: Path, seconds: float) -> None:
    """A real server that nobody asks anything, with the schedule on and an empty page."""
    with Home.create(folder / "served", name="Aria") as home:
        Rituals(home).switch(on=True)
    done = subprocess.run(
        [sys.executable, "-c", SERVER, str(folder / "served"), str(seconds)], capture_output=True, text=True, check=True
    )
    used, woken, peak = map(float, done.stdout.split())
    print(
        f"a server, idle for {seconds:.0f} s: {used:.2f} s of processor time ({used / seconds:.2%} of a core,"
        f" {used / seconds * DAY / 60:.1f} minutes a day), {woken / seconds:.1f} wake-ups a second"
        f" ({woken / seconds * DAY:,.0f} a day); {peak / 1024:.0f} MiB"
    )


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    given.add_argument("--seconds", type=float, default=20)
    given.add_argument("--many", type=int, default=100)
    asked = given.parse_args()
    routines = {
        f"routines/number-{n}.md": f"---\nat: {n % 60} {n * 7 % 24} * * *\n---\nLook around, number {n}.\n"
        for n in range(asked.many)
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        simulated(folder, "an idle day", {"HEARTBEAT.md": "# Heartbeat\n\n<!-- nothing -->\n"})
        simulated(folder, "a day of heartbeats", {"HEARTBEAT.md": "# Heartbeat\n\n- Is the boiler warm?\n"})
        simulated(folder, f"{asked.many} routines", {"HEARTBEAT.md": "# Heartbeat\n", **routines})
        subagents(folder, asked.many)
        served(folder, asked.seconds)


if __name__ == "__main__":
    main()
