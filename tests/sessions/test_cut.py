"""A long conversation that is cut three times and killed at a random point of each phase loses nothing, and doubles nothing."""

import os
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from anima import Home, Scope
from anima.errors import HomeError
from anima.testing import Clock, Model

TURNS, CUTS = 200, (60, 120, 180)
PLACES = ("Lisbon", "Oslo", "Quito", "Hanoi", "Cork")


def turn(n):
    """What is said in a turn: every sixth is marked, others are talk."""
    if n % 6 == 0:
        return "user", f"Remember that guest {n:03} sleeps in room {n * 7 % 90} in {PLACES[n % 5]}."
    if n % 6 == 3:
        return "user", f"I went to {PLACES[n % 5]} with my mother last week, trip number {n:03}."
    return ("assistant", f"Noted, number {n:03}.") if n % 2 else ("user", f"ok {n:03}")


def talk(root, tell):
    """A host: takes the session up where its transcript stands and goes on to the end, telling each phase it enters."""
    model = Model(then="- the guests like it here")
    with Home.open(root, clock=Clock()) as home:
        session = taken_up(home, model)
        said = home.sessions.get(session.id).entries if home.sessions.has(session.id) else 0
        done = cuts_of(root, session.id)
        for n in range(said, TURNS + 1):
            while done < len(CUTS) and CUTS[done] == n:
                tell(2 * done + 1)
                session.pressure(190_000)
                session.after_compaction(tokens=9_000, summary=f"up to {n}")
                done += 1
            if n < TURNS:
                tell(2 * done)
                session.log(*turn(n))
        session.close()


def taken_up(home, model):
    for row in home.sessions.list():
        try:
            return home.resume(row.id, complete=model)
        except HomeError:
            continue  # killed before its first line stood: nothing was said in it
    return home.session(scope=Scope.MAIN, channel="cli", complete=model)


def cuts_of(root, id):
    place = Path(root) / "sessions" / f"{id}.jsonl"
    return place.read_bytes().count(b'{"type":"compact_boundary"') if place.exists() else 0


def host(root, kill_in=None, delay=0.0):
    """Runs the host in a process of its own; kills it a moment after it enters a phase. Whether it came to its end."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reads)
        code = 1
        try:
            talk(root, lambda phase: os.write(writes, bytes([phase])))
            code = 0
        finally:
            os._exit(code)
    os.close(writes)
    while (seen := os.read(reads, 1)) and kill_in is not None:
        if seen[0] == kill_in:
            time.sleep(delay)
            os.kill(pid, signal.SIGKILL)
            break
    while os.read(reads, 4096):
        pass
    os.close(reads)
    return os.waitpid(pid, 0)[1] == 0


def conversations(tmp_path, runs, seed):
    dice = random.Random(seed)
    made = tmp_path / "made"
    Home.create(made, name="Aria", clock=Clock()).close()
    killed = 0
    for run in range(runs):
        root = tmp_path / f"run{run}"
        shutil.copytree(made, root, symlinks=True)
        for phase in range(2 * len(CUTS) + 1):
            killed += not host(root, phase, dice.uniform(0, 0.012 if phase % 2 else 0.02))
        assert host(root), f"run {run} of seed {seed} does not come to its end"
        verify(root, f"run {run} of seed {seed}")
        shutil.rmtree(root)
    return killed


def verify(root, where):
    with Home.open(root, clock=Clock()) as home:
        (row,) = [row for row in home.sessions.list() if row.entries]
        page = home.sessions.read(row.id, limit=TURNS + 1)
        assert [(t.role, t.content) for t in page.entries] == [turn(n) for n in range(TURNS)], where
        assert home.past.audit().ok, where
    lines = "".join(p.read_text() for p in sorted(Path(root, "memory").glob("*.md"))).splitlines()
    counts = Counter(line.partition("] ")[2] for line in lines if line.startswith("- ["))
    lost = [n for n in range(0, TURNS, 6) if counts[turn(n)[1].replace("Remember that guest", "Guest")] != 1]
    twice = [line for line, count in counts.items() if count > 1 and "guests like it" not in line]
    assert (lost, twice) == ([], []), where


def test_a_conversation_that_is_killed_in_every_phase_loses_nothing(tmp_path):
    assert conversations(tmp_path, runs=3, seed=os.environ.get("ANIMA_SEED", "7")) > 0


@pytest.mark.long
def test_a_hundred_conversations_that_are_killed_in_every_phase_lose_nothing(tmp_path):
    killed = conversations(tmp_path, runs=100, seed="100")
    print(f"\n100 conversations of {TURNS} turns, {killed} kills: nothing lost, nothing twice")
    assert killed > 400
