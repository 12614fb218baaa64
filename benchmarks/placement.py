"""Whether a line lands under the section a person would choose, in five homes of different character.

    python benchmarks/placement.py                 both halves of the facts, and what it costs
    python benchmarks/placement.py --half tuned    the half that was looked at while the rule was made, with what is wrong
    python benchmarks/placement.py --half held     the other half
    python benchmarks/placement.py --half unseen   facts by somebody who had not seen the rule
    python benchmarks/placement.py --half fresh    facts by somebody who had never seen the program
    python benchmarks/placement.py --half blind    facts by somebody who knew of nothing, written when the rule was finished
    python benchmarks/placement.py --file FILE     another file of facts; nothing but the totals is said
    python benchmarks/placement.py --asked         as at a terminal, where one key chooses when the rule is not sure
    python benchmarks/placement.py --named FILE    as by an agent that names the section: FILE has its answer for each fact, a line each

The facts, with the sections, are in tests/corpora/placement.toml; they were written before the rule, by whoever made it. Those
of placement_unseen.toml were written by somebody else, and tell more of pages nobody thought of; those of placement_fresh.toml
were scored, as totals, when the rule was made, and read by nobody who made it. right: facts under a section that a person would
choose, of all. asked: facts for which somebody would be asked, who takes a right section where one is offered.
marked: facts under a heading that is shared, private or dreamed (none may be).
"""

from __future__ import annotations

import argparse
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from anima.text.pages import placed

CORPORA = Path(__file__).parents[1] / "tests" / "corpora"
GOAL = 0.85
OTHERS = ("unseen", "fresh", "blind")  # files of their own
MARKED = ("<!-- share", "<!-- private", "## Dreamed")


class Fact(NamedTuple):
    """One fact, the page it goes to, and the sections that are right."""

    home: str
    memory: str
    text: str
    right: tuple[str, ...]
    held: bool  # among those that were not looked at


def facts(name: str = "placement", *, file: Path | None = None) -> Iterator[Fact]:
    for home, told in tomllib.loads((file or CORPORA / f"{name}.toml").read_text(encoding="utf-8")).items():
        for number, row in enumerate(told["facts"].strip().splitlines()):
            right, _, text = row.rpartition(" | ")
            yield Fact(home, told["memory"], text, tuple(right.split(" or ")), bool(number % 2))


class Owner:
    """Somebody at a terminal, who takes a right section where one is offered, and leaves the line where it goes else."""

    def __init__(self) -> None:
        self.asked, self.right = 0, tuple[str, ...]()

    def __call__(self, likely: Sequence[str], otherwise: str) -> str | None:
        self.asked += 1
        if otherwise in self.right:
            return None
        return next((title for title in likely if title in self.right), None)


def landed(fact: Fact, *, owner: Owner | None = None, named: str | None = None) -> tuple[str, bool]:
    """The section a fact lands under, and whether its heading is a marked one, read from the page itself."""
    heading = ""
    if owner is not None:
        owner.right = fact.right
    for line in placed(fact.memory, f"- {fact.text}", section=named, choose=owner).text.splitlines():
        heading = line if line.startswith("#") else heading
        if line == f"- {fact.text}":
            break
    return heading.partition("<!--")[0].lstrip("# ").strip(), any(sign in heading for sign in MARKED)


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--half", choices=["tuned", "held", *OTHERS])
    ask.add_argument("--file", type=Path)
    ask.add_argument("--asked", action="store_true")
    ask.add_argument("--named", type=Path)
    asked = ask.parse_args()
    half = asked.half
    every = facts(f"placement_{half}" if half in OTHERS else "placement", file=asked.file)
    chosen = [fact for fact in every if half in (None, *OTHERS) or fact.held == (half == "held")]
    began = time.perf_counter()
    owner = Owner() if asked.asked else None
    names = [row or None for row in asked.named.read_text(encoding="utf-8").splitlines()] if asked.named else None
    each = zip(chosen, names or [None] * len(chosen), strict=True)
    places = [landed(fact, owner=owner, named=name) for fact, name in each]
    took = (time.perf_counter() - began) / len(chosen)
    for home in dict.fromkeys(fact.home for fact in chosen if not asked.file):
        mine = [place[0] in fact.right for fact, place in zip(chosen, places, strict=True) if fact.home == home]
        print(f"{home:10} {sum(mine):3} of {len(mine)}")
    right = sum(place[0] in fact.right for fact, place in zip(chosen, places, strict=True))
    marked = sum(place[1] for place in places)
    if half == "tuned":
        for fact, place in zip(chosen, places, strict=True):
            if place[0] not in fact.right:
                print(f"  {fact.home}: {fact.text}: {place[0]}, not {' or '.join(fact.right)}")
    lost = sum(place[0] == "Notes" and place[0] not in fact.right for fact, place in zip(chosen, places, strict=True))
    print(f"wrong: {lost} in Notes, {len(chosen) - right - lost} under another section")
    if owner is not None:
        print(f"asked about {owner.asked / len(chosen):.0%}")
    print(f"right {right / len(chosen):.1%} (goal {GOAL:.0%})  marked {marked} (goal 0)  {took * 1e3:.1f} ms each")
    if right < GOAL * len(chosen) or marked:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
