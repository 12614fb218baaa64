"""A long conversation with cuts, killed again and again in every phase: nothing marked is lost or doubled, no call stands
without its result, the open task goes on, and the prompt that is sent is the session's own."""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from killed import hold
from speaking import choose, made

from anima import Home
from anima.sessions.replay import Turn
from anima.testing.models import ModelServer, Received, Spoken

RUNS = int(os.environ.get("ANIMA_RUNS") or 100)
SEED = os.environ.get("ANIMA_SEED") or "7"
PHASES = ("said", "called", "silent", "summary")
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["anima.agent.conversation", "anima.agent.models", "pydantic_ai.models.openai", "openai"]
)


def phase_of(asked: Received) -> str:
    last = asked.body["messages"][-1]
    if "Write the summary" in asked.said:
        return "summary"
    if last["role"] == "user" and "about to be shortened" in str(last["content"]):
        return "silent"
    return "called" if last["role"] == "tool" else "said"


class Killing:
    """The model of these tests, which knows what is open from what it is sent alone; and the hand that kills."""

    def __init__(self, seed: str, kills: int) -> None:
        self._dice, self.process, self.phases = random.Random(seed), None, Counter[str]()
        self.left = [(phase, self._dice.randrange(6)) for phase in PHASES for _ in range(kills)]

    def answer(self, asked: Received) -> Spoken:
        phase = phase_of(asked)
        self.phases[phase] += 1
        self._kill_perhaps(phase)
        if phase == "silent":
            return Spoken("NO_REPLY")
        if phase == "summary":
            return Spoken(f"Open\n- {self._open(asked)}\nDone\n- all before it")
        if phase == "called":
            return Spoken("Done.")
        number = self._open(asked)
        wish = {"target": "memory", "content": f"Item {number} is coloured c{number}"}
        return Spoken(calls=[("memory_write", wish)])

    def _open(self, asked: Received) -> str:
        """The task that was named last."""
        return re.findall(r"(?:Task |- )(\d+)\b", asked.said)[-1]

    def _kill_perhaps(self, phase: str) -> None:
        """Kills now, while the process waits, or a moment after it has its answer."""
        for planned in self.left:
            if planned[0] == phase and self._dice.random() < 0.3:
                self.left.remove(planned)
                pid = self.process.pid
                if planned[1] % 2:
                    os.kill(pid, signal.SIGKILL)
                else:
                    threading.Timer(planned[1] / 60, _killed, [pid]).start()
                return


def _killed(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def conversation(tmp_path: Path, seed: str, *, turns: int, kills: int) -> tuple[Killing, list[Received]]:
    """Holds the whole conversation, in as many processes as it takes."""
    home = made(tmp_path)
    settings = "\n[sessions]\nwindow = 24000\nreserve = 6000\nsoft = 1000\n"
    with (tmp_path / "home" / "anima.toml").open("a", encoding="utf-8") as file:
        file.write(settings)
    killing = Killing(seed, kills)
    with home, ModelServer(then=killing.answer) as server:
        choose(home, server)
        for _ in range(6 * kills + 4):
            given = (home.name, os.environ["ANIMA_CONFIG"], turns)
            killing.process = CONTEXT.Process(target=hold, args=given)
            killing.process.start()
            killing.process.join()
            if killing.process.exitcode == 0:
                return killing, server.requests
        raise AssertionError(f"it never came to its end: {killing.process.exitcode}")


def unpaired(messages: list[dict[str, Any]]) -> set[str]:
    called = {call["id"] for message in messages for call in message.get("tool_calls") or ()}
    return called ^ {message["tool_call_id"] for message in messages if message["role"] == "tool"}


def looked_over(tmp_path: Path, requests: list[Received], turns: int) -> None:
    with Home.open(tmp_path / "home") as home:
        memory = home.read("MEMORY.md").text
        (row,) = home.sessions.list()
        page = home.sessions.read(row.id, limit=10**6)
    facts = Counter(re.findall(r"^- Item (\d+) is coloured c\1$", memory, re.MULTILINE))
    tasks = [n for turn in page.entries if turn.role == "user" for n in re.findall(r"^Task (\d+):", turn.content)]
    prompts = set((tmp_path / "prompts").read_text(encoding="utf-8").split("\0"))

    assert facts == Counter(map(str, range(turns)))
    assert tasks == [str(n) for n in range(turns)] and not page.damaged
    assert not any(unpaired(asked.body["messages"]) for asked in requests)
    assert all(asked.prompt in prompts for asked in requests if phase_of(asked) in ("said", "called"))
    assert _is_answered(page.entries)


def _is_answered(turns: tuple[Turn, ...]) -> bool:
    """Whether every line of the person's was answered in the end, by itself or after "go on"."""
    return turns[-1].role == "assistant" and turns[-1].content == "Done."


def test_a_conversation_survives_kills_in_every_phase(tmp_path: Path) -> None:
    killing, requests = conversation(tmp_path, f"{SEED}-0", turns=60, kills=1)

    assert killing.phases["summary"] >= 2
    looked_over(tmp_path, requests, 60)


@pytest.mark.long
def test_a_hundred_long_conversations_survive_kills(tmp_path: Path) -> None:
    for run in range(RUNS):
        folder = tmp_path / str(run)
        folder.mkdir()
        killing, requests = conversation(folder, f"{SEED}-long-{run}", turns=300, kills=2)
        assert killing.phases["summary"] >= 5, (run, killing.phases)
        looked_over(folder, requests, 300)
