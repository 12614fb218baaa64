"""Sixteen processes write, append, approve and undo in one home while others of them are killed at random.

Each process keeps a diary of what it began and what was acknowledged. Afterwards every acknowledged line is there
exactly once (or, if its undo was acknowledged, not at all), every counter stands at the number of its increments, nobody
waited in vain, and ledger, history and files tell the same story.

    python benchmarks/crowd.py                 30 seconds
    python benchmarks/crowd.py --seconds 4     as in `make test`
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from anima import Home, Scope
from anima.errors import HomeError, NoSuchDocument, NoSuchProposal, StaleWrite
from anima.store import blob_id

LOGS = ("memory/2026-05-08.md", "memory/2026-05-09.md", "notes/shared.md")
COUNTERS = ("counters/one.md", "counters/two.md")
PATIENCE = 90.0  # seconds a process may take to end once it is asked to


def opened(folder: Path) -> Home:
    return Home.open(folder, env={"ANIMA_CONFIG": f"{folder}.config"})


# -- one process ------------------------------------------------------------------------------------------------------


class Worker:
    """Does one thing after another until its time is over, and writes down what it does."""

    def __init__(self, folder: Path, diary: Path, *, seed: int, until: float) -> None:
        self.home, self.dice, self.until = opened(folder), random.Random(seed), until
        self.diary = os.open(diary, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.seed, self.number = seed, 0
        self.own: list[tuple[str, str]] = []  # token and change of what we appended

    def work(self) -> None:
        deeds = (self.append, self.append, self.count, self.propose, self.approve, self.undo, self.write)
        while time.time() < self.until:
            try:
                self.dice.choice(deeds)()
            except (StaleWrite, NoSuchProposal, NoSuchDocument):
                continue  # somebody else was quicker, and we were told
            except HomeError as error:
                self.say(wrong=f"{type(error).__name__}: {error}")
        self.home.close()

    def say(self, **what: object) -> None:
        os.write(self.diary, json.dumps(what).encode() + b"\n")

    def token(self) -> str:
        self.number += 1
        return f"w{self.seed}n{self.number}"

    def append(self) -> None:
        token = self.token()
        self.say(begun=token)
        receipt = self.home.append(self.dice.choice(LOGS), f"- line {token} end\n")
        self.say(done=token, change=receipt.change)
        self.own.append((token, receipt.change or ""))

    def write(self) -> None:
        """A whole document of one's own, again and again: the last acknowledged text must stand."""
        token = self.token()
        self.say(wrote=token, begun=token)
        self.home.write(f"own/w{self.seed}.md", f"# Mine\n\n- line {token} end\n")
        self.say(stands=token)

    def count(self) -> None:
        """One more, by compare and swap."""
        path = self.dice.choice(COUNTERS)
        for _ in range(50):
            found = self.home.read(path)
            number = int(found.text.split()[1])
            try:
                receipt = self.home.write(path, f"count {number + 1}\n", base=found.digest)
            except StaleWrite:
                continue
            self.say(counted=path, change=receipt.change)
            return

    def propose(self) -> None:
        token = self.token()
        self.say(begun=token)
        with self.home.session(scope=Scope.GROUP) as session:
            session.call("memory_write", {"target": "skills/asked/SKILL.md", "content": f"- line {token} end\n"})

    def approve(self) -> None:
        waiting = self.home.inbox.all()
        if not waiting:
            return
        proposal = self.dice.choice(waiting)
        token = proposal.changes[0].text.split()[2]
        self.home.inbox.approve(proposal.id, approver="terminal")
        self.say(done=token)

    def undo(self) -> None:
        if not self.own:
            return
        token, change = self.own.pop(self.dice.randrange(len(self.own)))
        self.say(undoing=token)
        self.home.undo(change)
        self.say(undone=token)


# -- all of them ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Story:
    """What the diaries tell."""

    begun: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    undoing: set[str] = field(default_factory=set)
    undone: set[str] = field(default_factory=set)
    counted: list[tuple[str, str]] = field(default_factory=list)
    written: dict[str, list[str]] = field(default_factory=dict)  # by process: tokens that may stand, oldest first
    acknowledged: set[str] = field(default_factory=set)  # processes with a text that must stand
    wrong: list[str] = field(default_factory=list)
    kills: int = 0

    @classmethod
    def read(cls, diaries: Iterator[Path]) -> Story:
        story = cls()
        for diary in diaries:
            for line in diary.read_text().splitlines():
                story.take(json.loads(line), diary.stem)
        return story

    def take(self, said: dict[str, str], who: str) -> None:
        for name, tokens in (
            ("begun", self.begun),
            ("done", self.done),
            ("undoing", self.undoing),
            ("undone", self.undone),
        ):
            if name in said:
                tokens.add(said[name])
        if "wrote" in said:
            self.written.setdefault(who, []).append(said["wrote"])
        if "stands" in said:  # nothing older can stand any more
            self.written[who] = self.written[who][self.written[who].index(said["stands"]) :]
            self.acknowledged.add(who)
        if "counted" in said:
            self.counted.append((said["counted"], said["change"]))
        if "wrong" in said:
            self.wrong.append(said["wrong"])


class Crowd:
    """The processes, and whoever kills them."""

    def __init__(self, place: Path, *, processes: int, seconds: float, seed: int) -> None:
        self.folder, self.diaries = place / "home", place / "diaries"
        self.diaries.mkdir()
        self.processes, self.until, self.dice = processes, time.time() + seconds, random.Random(seed)
        self.alive: dict[int, int] = {}
        self.started = self.kills = 0

    def start(self) -> None:
        self.started += 1
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                Worker(self.folder, self.diaries / f"{self.started}.jsonl", seed=self.started, until=self.until).work()
                code = 0
            finally:
                os._exit(code)
        self.alive[pid] = self.started

    def run(self) -> list[str]:
        for _ in range(self.processes):
            self.start()
        while time.time() < self.until - 0.5:
            time.sleep(self.dice.uniform(0.02, 0.2))
            self.kill_one()
        return self.wait()

    def kill_one(self) -> None:
        pid = self.dice.choice(sorted(self.alive))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        del self.alive[pid]
        self.kills += 1
        self.start()

    def wait(self) -> list[str]:
        """Asks nobody: each ends by itself when its time is over. Says who did not."""
        wrong, give_up = [], time.time() + PATIENCE
        while self.alive and time.time() < give_up:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                time.sleep(0.02)
                continue
            if status != 0:
                wrong.append(f"process {self.alive[pid]} ended with {status}")
            del self.alive[pid]
        for pid, number in self.alive.items():
            wrong.append(f"process {number} did not end within {PATIENCE:.0f} seconds")
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        return wrong


# -- what must hold afterwards ----------------------------------------------------------------------------------------


def problems(folder: Path, story: Story) -> Iterator[str]:
    yield from (f"a process was told: {said}" for said in story.wrong)
    with opened(folder) as home:
        home.site.store.commit()
        yield from _lines(home, story)
        yield from _counters(home, story)
        yield from _agreement(home)
    yield from (f"left behind: {path.name}" for path in (folder / ".anima/stage").iterdir())


def _lines(home: Home, story: Story) -> Iterator[str]:
    texts = [home.read(path).text for path in (*LOGS, "skills/asked/SKILL.md") if home.exists(path)]
    found = Counter(line.split()[2] for text in texts for line in text.splitlines() if line.startswith("- line"))
    for token, times in found.items():
        if times > 1:
            yield f"{token} stands there {times} times"
        if token not in story.begun:
            yield f"{token} was never begun"
    for token in sorted(story.done - story.undoing - found.keys()):
        yield f"{token} was acknowledged, and is not there"
    for token in sorted(story.undone & found.keys()):
        yield f"{token} was taken back, and is there"
    for who, tokens in story.written.items():
        path = f"own/w{who}.md"
        stands = home.read(path).text.split()[4] if home.exists(path) else None
        if stands not in tokens and (stands is not None or who in story.acknowledged):
            yield f"{path} holds {stands}, and the last acknowledged text is {tokens[0]}"


def _counters(home: Home, story: Story) -> Iterator[str]:
    changes = home.past.changes()
    for path in COUNTERS:
        carried_out = [entry.id for entry in changes if path in entry.paths][:-1]  # the first one made it
        number = int(home.read(path).text.split()[1])
        if number != len(carried_out):
            yield f"{path} stands at {number}, and was counted up {len(carried_out)} times"
        lost = {change for counted, change in story.counted if counted == path} - set(carried_out)
        if lost:
            yield f"{path}: {len(lost)} acknowledged increments are not in the ledger"


def _agreement(home: Home) -> Iterator[str]:
    if not (verified := home.past.audit()).ok:
        yield f"audit: {verified.fault}"
    yield from (f"doctor: {remark.message}" for remark in home.upkeep.doctor() if remark.level == "damage")
    if home.site.store.provenance.intents():
        yield "a batch is still begun"
    kept = (entry.path for entry in home.list_all() if not entry.path.startswith("sessions/"))
    files = {path: home.read(path) for path in kept}
    for path, document in files.items():
        if not home.site.store.provenance.is_ours(document.path, document.text):
            yield f"the ledger does not know {path} as it stands"
    history = home.site.store.history
    head = history.head() if history else None
    if history is None or head is None:
        yield f"there is no history: {home.site.store.history_problem}"
        return
    held, here = history.tree(head), {path: blob_id(found.text.encode()) for path, found in files.items()}
    if differing := sorted(path for path in held.keys() | here.keys() if held.get(path) != here.get(path)):
        yield f"history and files disagree about {', '.join(differing[:5])}"
    yield from (f"history: {said}" for said in history.check())


def run(place: Path, *, processes: int, seconds: float, seed: int) -> tuple[Story, list[str]]:
    folder = place / "home"
    with Home.create(folder, name="Aria", env={"ANIMA_CONFIG": f"{folder}.config"}) as home:
        for path in COUNTERS:
            home.write(path, "count 0\n")
        home.site.store.commit()
    del home
    crowd = Crowd(place, processes=processes, seconds=seconds, seed=seed)
    wrong = crowd.run()
    story = Story.read(iter(sorted(crowd.diaries.iterdir())))
    story.kills = crowd.kills
    return story, [*wrong, *problems(folder, story)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--seed", type=int, default=20260508)
    parser.add_argument("--json", action="store_true", help="one line of figures at the end")
    given = parser.parse_args()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # more happens there in the same time
    with tempfile.TemporaryDirectory(prefix="anima-crowd-", dir=memory) as place:
        story, wrong = run(Path(place), processes=given.processes, seconds=given.seconds, seed=given.seed)
    for said in wrong:
        print(f"WRONG  {said}")
    print(
        f"{given.processes} processes, {given.seconds:.0f} s, {story.kills} kills: {len(story.done)} lines and approvals, "
        f"{len(story.counted)} increments, {len(story.undone)} undone; {len(wrong)} wrong"
    )
    if given.json:
        figures = {
            "kills": story.kills,
            "done": len(story.done),
            "counted": len(story.counted),
            "undone": len(story.undone),
        }
        print(json.dumps({**figures, "wrong": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
