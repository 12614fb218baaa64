"""What does looking back cost in a home that was written to ten thousand times?

    python benchmarks/history.py [--place DIR] [--commits 10000] [--files 1000] [--runs 9]

A home of so many documents is written to so many times, each time one document, by the road every owner's write takes,
so its history is one it made itself. With `--place` it is kept there and used again; making it takes a minute or two.

first look      the newest twenty changes in a Home that was just opened (opening is not in it); it reads the ledger
whole           the newest twenty changes once more
one path        those of a document that changed about ten times, so that all of history has to be looked through
one path again  the same in the same Home
one commit      one more write on top, history and all

Each is the median of some Homes opened one after the other, in milliseconds, beside the most a log should take. Nothing
is packed, as nothing packs the history of a home that is only written to.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from anima import Home

BOUND, LENGTH = 150.0, 20
BOUNDED = ("whole", "one path", "one path again")


# -- what is asked of a home, in one place -----------------------------------------------------------------------------


def opened(place: Path) -> Home:
    return Home.open(place / "home", env={"ANIMA_CONFIG": str(place / "config")})


def created(place: Path) -> Home:
    return Home.create(place / "home", name="Aria", env={"ANIMA_CONFIG": str(place / "config")})


def write(home: Home, path: str, text: str) -> None:
    home.write(path, text)


def log(home: Home, path: str | None) -> int:
    return len(home.past.log(path, limit=LENGTH))


# -- the home ----------------------------------------------------------------------------------------------------------


def path_of(number: int) -> str:
    return f"notes/{number // 50:03}/n{number:04}.md"


def text_of(number: int, change: int) -> str:
    lines = (f"- fact {line} of note {number}, as of change {change if line == 3 else 0}\n" for line in range(20))
    return f"# Note {number}\n\n" + "".join(lines)


def make(place: Path, files: int, commits: int) -> None:
    """Documents that come in at once, then one change after the other."""
    source = place / "source"
    for number in range(files):
        path = source / path_of(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(number, 0), encoding="utf-8")
    dice = random.Random(7)
    with created(place) as home:
        home.import_directory(source, mine=True)
        for change in range(1, commits + 1):
            number = dice.randrange(files)
            write(home, path_of(number), text_of(number, change))


def ready(place: Path, files: int, commits: int) -> None:
    """Makes the home, unless the place has it."""
    note, wanted = place / "made.json", {"files": files, "commits": commits}
    if note.exists() and json.loads(note.read_text("utf-8")) == wanted:
        return
    if (place / "home").exists():
        sys.exit("the home there is another, or was not made to its end; name a place that is empty")
    begun = time.perf_counter()
    make(place, files, commits)
    note.write_text(json.dumps(wanted), encoding="utf-8")
    print(f"made in {time.perf_counter() - begun:.0f} s")


# -- measuring ---------------------------------------------------------------------------------------------------------


def timed(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return (time.perf_counter() - begun) * 1000


def measured(place: Path, *, looked_at: str, written: str, text: str) -> dict[str, float]:
    """Milliseconds of each, in a Home that was just opened."""
    with opened(place) as home:
        return {
            "first look": timed(lambda: log(home, None)),
            "whole": timed(lambda: log(home, None)),
            "one path": timed(lambda: log(home, looked_at)),
            "one path again": timed(lambda: log(home, looked_at)),
            "one commit": timed(lambda: write(home, written, text)),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--place", type=Path, help="where the home is kept and looked for")
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=9)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="anima-history-") as folder:
        place: Path = asked.place or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        ready(place, asked.files, asked.commits)
        looked_at, written, dice = path_of(asked.files // 3), path_of(0), random.Random()
        rows = [
            measured(place, looked_at=looked_at, written=written, text=text_of(0, dice.randrange(2**60)))
            for _ in range(asked.runs)
        ]
    print(f"{asked.commits:,} commits of {asked.files:,} files; medians of {asked.runs}")
    for name in rows[0]:
        took = statistics.median(row[name] for row in rows)
        bound = f"at most {BOUND:.0f}   {'over' if took > BOUND else ''}" if name in BOUNDED else ""
        print(f"{name:16} {took:8.1f} ms   {bound}".rstrip())


if __name__ == "__main__":
    main()
