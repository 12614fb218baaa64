"""What stands in memory after months of dreaming every night, by our rules and by those of two others.

    python benchmarks/dreaming.py                          three styles, two seeds each, three presets: one table
    python benchmarks/dreaming.py --style check --seed 4   one case
    python benchmarks/dreaming.py --case FILE              a case of your own
    python benchmarks/dreaming.py --growth                 what a sweep costs with 1x, 10x recalls and logs, and no case

A case is a list of events (note, ask, sleep), the facts in it with the notes that tell them, and notes that must never
be kept. precision: lines that dreaming added and that tell a fact which still holds, of all it added. recall: facts that
hold and are told. stale: replaced facts that the main prompt tells. never: forbidden notes in memory or prompt. largest:
the largest MEMORY.md of any night, in characters.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from anima import Home, Scope
from lives import STYLES, life

PRESETS = ("anima", "nexo", "openclaw")
MOST_BESIDE = 120  # characters an added line may have beside the words of the note it tells
GOALS = {"precision": 0.95, "recall": 0.80, "stale": 0, "never": 0, "largest": 10_000}
_SIGNS = re.compile(r"[*_`>#\[\]()-]+")

Case = dict[str, Any]


def bare(text: str) -> str:
    return " ".join(_SIGNS.sub(" ", text.lower()).split())


def told_lines(markdown: str) -> list[str]:
    """What a document tells, line by line, without headings and comments."""
    kept = (line for line in markdown.splitlines() if not line.lstrip().startswith(("#", "<!--")))
    return [found for line in kept if (found := bare(line))]


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a replayed life ended."""

    before: list[str]
    memory: str
    prompt: str
    nights: list[int]
    seconds: float  # spent dreaming
    folder: Path


def replay(case: Case, folder: Path, *, preset: str | None) -> Ending:
    now = [datetime.fromisoformat(case["events"][0]["t"])]
    home = Home.create(folder, name="Aria", clock=lambda: now[0])
    page = folder / "MEMORY.md"
    before, nights, seconds, talks = told_lines(page.read_text("utf-8")), [], 0.0, {}
    for event in case["events"]:
        now[0] = datetime.fromisoformat(event["t"])
        if event["do"] == "sleep":
            for session in talks.values():
                session.close()
            talks = {}
            began = time.perf_counter()
            home.dream(preset=preset)
            seconds += time.perf_counter() - began
            nights.append(len(page.read_text("utf-8")))
            continue
        origin = event.get("from", "agent")
        if origin not in talks:
            talks[origin] = home.session(scope=Scope.MAIN, channel="cli")
            if origin == "web":
                talks[origin].taint("web")
        if event["do"] == "note":
            talks[origin].call("memory_write", {"target": "daily_log", "content": event["text"]})
        else:
            talks[origin].call("memory_search", {"query": event["text"]})
    for session in talks.values():
        session.close()
    prompt = home.prompt(scope=Scope.MAIN).text
    home.close()
    return Ending(
        before=before, memory=page.read_text("utf-8"), prompt=prompt, nights=nights, seconds=seconds, folder=folder
    )


class Judge:
    """Compares an ending with what its case wanted."""

    def __init__(self, case: Case, ending: Ending) -> None:
        self.case, self.ending = case, ending
        self.note = {event["id"]: bare(event["text"]) for event in case["events"] if event["do"] == "note"}
        self.added = [line for line in told_lines(ending.memory) if line not in ending.before]
        self.holding = [fact for fact in case["facts"] if not fact["until"]]

    def tells(self, line: str, fact: dict[str, Any]) -> bool:
        return any(
            self.note[name] in line and len(line) - len(self.note[name]) <= MOST_BESIDE for name in fact["events"]
        )

    def leaks(self, name: str, where: str) -> bool:
        return self.note[name] in where or any(word in where for word in self.note[name].split() if len(word) > 15)

    def wrong(self) -> list[str]:
        return [line for line in self.added if not any(self.tells(line, fact) for fact in self.holding)]

    def missed(self) -> list[dict[str, Any]]:
        return [fact for fact in self.holding if not any(self.tells(line, fact) for line in self.added)]

    def stale(self) -> list[str]:
        shown = bare(self.ending.prompt)
        replaced = [fact for fact in self.case["facts"] if fact["until"]]
        return [self.note[name] for fact in replaced for name in fact["events"] if self.note[name] in shown]

    def figures(self) -> dict[str, float]:
        memory, shown = bare(self.ending.memory), bare(self.ending.prompt)
        replaced = [fact for fact in self.case["facts"] if fact["until"]]
        return {
            "lines": len(self.added),
            "precision": round(1 - len(self.wrong()) / max(1, len(self.added)), 3),
            "recall": round(1 - len(self.missed()) / max(1, len(self.holding)), 3),
            "stale": sum(any(self.note[name] in shown for name in fact["events"]) for fact in replaced),
            "never": sum(self.leaks(name, memory) or self.leaks(name, shown) for name in self.case["never"]),
            "largest": max(self.ending.nights, default=0),
            "seconds": round(self.ending.seconds, 1),
        }


def reached(found: dict[str, float]) -> bool:
    """Whether all goals are reached."""
    least = ("precision", "recall")
    return all(found[name] >= goal if name in least else found[name] <= goal for name, goal in GOALS.items())


def tried(case: Case, preset: str | None, *, keep: Path | None = None) -> Judge:
    if keep is not None:
        return Judge(case, replay(case, keep / f"home-{time.time_ns()}", preset=preset))
    with tempfile.TemporaryDirectory() as folder:
        return Judge(case, replay(case, Path(folder) / "home", preset=preset))


def cases(asked: argparse.Namespace) -> Iterator[tuple[str, Case]]:
    if asked.case:
        yield asked.case.stem, json.loads(asked.case.read_text("utf-8"))
        return
    for style in asked.style or ("plain", "chatty", "terse", "spanish", "check"):
        for seed in asked.seed or (1, 2):
            yield f"{style} {seed}", life(seed, style, days=asked.days, junk=asked.junk, asks=asked.asks)


def show(row: tuple[str, ...]) -> None:
    print(
        "  ".join(cell.ljust(width) for cell, width in zip(row, (12, 9, 6, 10, 7, 6, 6, 8, 8), strict=False)),
        flush=True,
    )


# -- growth ------------------------------------------------------------------------------------------------------------


def grown(folder: Path, *, logs: int, recalls: int) -> datetime:
    """A home with so many daily logs and recalls in its ledger, on the evening of its last day."""
    events = [event for event in life(3, "check", days=logs, junk=8, asks=0.1)["events"] if event["do"] == "note"]
    days: dict[str, list[str]] = {}
    for event in events:
        if event.get("from", "agent") != "web":
            days.setdefault(event["t"][:10], []).append(f"- [{event['t'][11:16]}] {event['text']}")
    (folder / "memory").mkdir(parents=True)
    for day, lines in days.items():
        (folder / "memory" / f"{day}.md").write_text("\n".join(lines) + "\n", "utf-8")
    last = datetime.fromisoformat(events[-1]["t"]) + timedelta(hours=1)
    with Home.create(folder, name="Aria", clock=lambda: last) as home:
        recalled(home, days, recalls)
    return last


def recalled(home: Home, days: dict[str, list[str]], recalls: int) -> None:
    """Notes so many recalls: three hits each, on a day after they were noted."""
    dice, dates, key = random.Random(5), sorted(days), home.site.store.key
    digests = {day: [key.line(line) for line in lines] for day, lines in days.items()}
    with home.site.store.lock():
        for number in range(recalls):
            day = dates[min(len(dates) - 1, number * len(dates) // recalls)]
            noted = dates[dice.randrange(dates.index(day) + 1)]
            hits = [
                {"path": f"memory/{noted}.md", "lines": [dice.choice(digests[noted])], "rank": n, "score": 1 / n}
                for n in (1, 2, 3)
            ]
            fields = {"query": key.of(str(dice.randrange(50_000))), "hits": hits, "session": "s", "scope": "main"}
            home.site.store.ledger.add("recall", {**fields, "day": day}, sync=False)


def growth() -> int:
    """A cold sweep over 10,000 recalls and 100 logs, and over ten times that; then another at once. Processor time."""
    print("logs   recalls   first night   the same again   a second a thousand recalls")
    for logs, recalls in ((100, 10_000), (1_000, 100_000)):
        with tempfile.TemporaryDirectory() as place:
            now = grown(Path(place) / "home", logs=logs, recalls=recalls)
            with Home.open(Path(place) / "home", clock=lambda: now) as home:  # noqa: B023
                began = time.process_time()
                swept = home.dream()
                first = time.process_time() - began
                began = time.process_time()
                home.dream()
                again = time.process_time() - began
        print(
            f"{logs:5,}  {recalls:8,}  {first:10.2f} s  {again:13.2f} s  {1000 * first / recalls:9.3f}  ({swept.status})"
        )
    return 0


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--case", type=Path, help="a case file")
    ask.add_argument("--style", action="append", choices=list(STYLES))
    ask.add_argument("--seed", action="append", type=int)
    ask.add_argument("--preset", action="append", choices=PRESETS)
    ask.add_argument("--days", type=int, default=180)
    ask.add_argument("--junk", type=int, default=18, help="junk notes a day")
    ask.add_argument("--asks", type=float, default=6.0, help="searches a fact, on average")
    ask.add_argument("--wrong", action="store_true", help="also list what was added wrongly, missed or stale")
    ask.add_argument("--growth", action="store_true", help="what a sweep costs as a home grows, and nothing else")
    ask.add_argument("--keep", type=Path, help="keep the homes in this folder")
    ask.add_argument("--json", type=Path, help="write the figures here")
    ask.add_argument("--write", type=Path, help="write the cases into this folder and do nothing else")
    asked = ask.parse_args()
    if asked.growth:
        return growth()
    found: list[dict[str, Any]] = []
    show(("case", "preset", "lines", "precision", "recall", "stale", "never", "largest", "seconds"))
    for name, case in cases(asked):
        if asked.write:
            (asked.write / f"{name.replace(' ', '-')}.json").write_text(json.dumps(case), "utf-8")
            continue
        for preset in asked.preset or PRESETS:
            judge = tried(case, preset, keep=asked.keep)
            figures = judge.figures()
            found.append({"case": name, "preset": preset, **figures})
            show((name, preset, *(str(value) for value in figures.values())))
            if asked.wrong:
                explain(judge, print)
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1), "utf-8")
    ours = [figures for figures in found if figures["preset"] == "anima"]
    return 0 if all(map(reached, ours)) else 1


def explain(judge: Judge, say: Callable[[str], None]) -> None:
    for line in judge.wrong():
        say(f"    wrong   {line[:150]}")
    for fact in judge.missed():
        say(f"    missed  {[judge.note[name][:60] for name in fact['events']]}")
    for line in judge.stale():
        say(f"    stale   {line[:150]}")


if __name__ == "__main__":
    sys.exit(main())
