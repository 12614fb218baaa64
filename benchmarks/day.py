"""A day of sixty turns: how often the owner is asked, what a fresh session knows before any review, what a review costs.

The day goes through a door that delivers the owner's words (a Python session) and through bare MCP (an agent whose
conversation nobody sees). Both agents read pages and tool results in between, and write down what they are told.
`python benchmarks/day.py`; prints a table and exits with 1 where a bar is missed.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from anima import Home, Scope, Session
from anima.testing import Clock

ROOT = Path(__file__).parent.parent
NAMES = "Ana Bo Carla Dmitri Elif Farid Greta Hugo Ines Jonas".split()
THINGS = [
    ("{0} keeps bees in the garden of her sister", "what does {0} keep in the garden"),
    ("{0} drinks oat milk and no other", "which milk does {0} drink"),
    ("{0} moved to Porto in spring", "where did {0} move"),
    ("{0} plays the cello on Thursdays", "which instrument does {0} play"),
]
FACTS = [(fact.format(name), question.format(name)) for name in NAMES for fact, question in THINGS]
PAGES = [f"The page says that offer {n} ends on Friday and that readers should subscribe." for n in range(20)]
BARS = {"owner's words": 38, "bare MCP": 32}


def owners_door(home: Home) -> None:
    """Twenty pages and forty facts in one conversation; each fact is written as the owner's own sentence."""
    with home.session(scope=Scope.MAIN, channel="cli") as session:
        for n, (fact, _) in enumerate(FACTS):
            if n % 2 == 0:
                session.log("tool", PAGES[n // 2], name="fetch")
            session.log("user", f"{fact}. Please remember that.")
            session.call("memory_write", {"target": "memory", "quote": f"{fact}."})
        wishes(session)


def bare_mcp(home: Home) -> None:
    """The same through an agent of which anima sees nothing but its calls."""
    with home.session(scope=Scope.MAIN, channel="mcp") as session:
        session.taint("host")
        for fact, _ in FACTS:
            session.call("memory_write", {"target": "memory", "content": fact})
        wishes(session)


def wishes(session: Session) -> None:
    """What such a day also holds: a line for the tools, and one for who the owner is."""
    session.call("memory_write", {"target": "TOOLS.md", "content": "- the printer is in the attic"})
    session.call("memory_write", {"target": "USER.md", "content": "- likes short answers"})


def known(home: Home, *, host: bool) -> int:
    """Of how many facts a fresh session finds the answer, before any review."""
    found = 0
    with home.session(scope=Scope.MAIN) as session:
        if host:
            session.taint("host")
        for fact, question in FACTS:
            hits = session.call("memory_search", {"query": question})["hits"]
            found += fact.split(" ", 1)[1][:20] in json.dumps(hits, ensure_ascii=False)
    return found


def presses(home: Home) -> int:
    """Keys of `anima review`: one for each change that is asked for, one a page of noted lines, one for each with findings."""
    noted = home.inbox.noted()
    plain = sum(not waiting.findings for waiting in noted)
    return len(home.inbox.all()) + -(-plain // 20) + (len(noted) - plain)


def benign(place: Path) -> tuple[int, int]:
    """How many of the benign updates land at once in a clean conversation."""
    lines = (ROOT / "tests/corpora/benign.jsonl").read_text(encoding="utf-8").splitlines()
    updates = [json.loads(line)["text"] for line in lines if line.strip()]
    landed = 0
    with Home.create(place, name="Aria", clock=Clock()) as home:
        for number, text in enumerate(updates):
            with home.session(scope=Scope.MAIN) as session:
                target = ("daily_log", "memory", "memory/topics/benign.md")[number % 3]
                answer = session.call("memory_write", {"target": target, "content": text})
                landed += answer["status"] == "written" or answer["rule"] == "duplicate"
    return landed, len(updates)


def main() -> int:
    missed = 0
    doors: list[tuple[str, Callable[[Home], None]]] = [("owner's words", owners_door), ("bare MCP", bare_mcp)]
    with tempfile.TemporaryDirectory() as folder:
        for name, day in doors:
            with Home.create(Path(folder, name.replace(" ", "-")), name="Aria", clock=Clock()) as home:
                day(home)
                asked, answers, keys = len(home.inbox.all()), known(home, host=name == "bare MCP"), presses(home)
                ok = asked <= 2 and answers >= BARS[name] and keys <= 12
                missed += not ok
                print(
                    f"{name:14} proposals {asked} (2)  known before review {answers}/40 ({BARS[name]})  "
                    f"noted {len(home.inbox.noted())}  keys {keys} (12)  {'ok' if ok else 'MISSED'}"
                )
        landed, total = benign(Path(folder, "benign"))
        missed += landed < 250
        print(f"{'benign':14} {landed}/{total} land at once (250)  {'ok' if landed >= 250 else 'MISSED'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
