"""How well tidying finds duplicates and contradictions in a home of 20,000 lines whose twins are known.

Facts about three hundred people and what they did, each with neighbours that differ only in a name, a number, a date, a
negation or a value; a share of them is said again: exactly, with other punctuation, with its date moved or written in
another way, or in other words. The paraphrases of the style "other" were written apart from the rules, and nothing is
tuned on them. A pair counts as found when both lines are in one group.

    python benchmarks/tidying.py               20,000 lines, both styles, with vectors and without
    python benchmarks/tidying.py --lines 2000
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from itertools import combinations

from anima.search.embed import open_embedder
from anima.text.reading import ToldLine, read
from anima.upkeep.hygiene import find_contradictions, find_duplicates

FIRST = """Ana Luis Diego Marta Ines Pavel Yuki Omar Lena Tomas Rosa Kofi Priya Nils Sofia Hugo Aisha Bruno Clara Emil
    Farah Goran Hanna Ivan Jonas Kaia Leon Mina Noor Oscar""".split()
LAST = "Paz Weber Okafor Silva Tanaka Novak Rossi Larsen Haddad Moreau".split()
CITIES = "Lima Bogota Oslo Turin Accra Quito Porto Kyoto Basel Leeds Tunis Riga Ghent Cork Split".split()
THINGS = "tea coffee chess sailing jazz pottery cycling opera gardening climbing baking swimming".split()
FIRMS = "Northwind Acme Globex Initech Umbra Vertex Lumen Quanta".split()
GOODS = "lamp drill kettle tent ladder printer saddle lantern heater mixer camera violin".split()
PLACES = "harbour market library station museum bakery clinic stadium".split()

# One row a kind of fact: the first sentence states it; those after it say the same, first in style "near", then "other".
Row = tuple[str, tuple[str, ...], tuple[str, ...]]
STEADY: tuple[Row, ...] = (
    (
        "{p} lives in {city}",
        ("{p} resides in {city}", "{city} is where {p} lives"),
        ("{p} has a home in {city}", "In {city}, that is where {p} is living"),
    ),
    (
        "{p} works for {firm}",
        ("{p} is working for {firm}", "{firm} is where {p} works"),
        ("{p} is employed by {firm}", "{p} has a job at {firm}"),
    ),
    (
        "The rent {p} pays is {n} euros",
        ("{p} pays {n} euros in rent", "{p} pays a rent of {n} euros"),
        ("For rent {p} is paying {n} euros", "Rent: {p} pays {n} euros"),
    ),
    (
        "{p} was born on {day}",
        ("{p}'s birthday is {day}", "Born on {day}: {p}"),
        ("{day} is when {p} was born", "{p} has her birthday on {day}"),
    ),
    (
        "{p} drives to work in a {good} van",
        ("{p} drives a {good} van to work", "To work {p} drives in a {good} van"),
        ("{p} is driving to work with the {good} van", "A {good} van is what {p} drives to work"),
    ),
    (
        "The door code of {p} is {n}",
        ("{p}'s door code is {n}", "{p} has the door code {n}"),
        ("Door code for {p}: {n}", "{n} is the code of the door of {p}"),
    ),
)
EVENTS: tuple[Row, ...] = (
    (
        "{p} met {q} at the {place} on {day}",
        ("On {day} {p} met {q} at the {place}", "{p} met {q} on {day} at the {place}"),
        ("At the {place} {p} had met {q}, on {day}", "{day}: {p} met {q} at the {place}"),
    ),
    (
        "{p} bought a {good} for {n} euros in {city}",
        ("In {city} {p} bought a {good} for {n} euros", "{p} purchased a {good} in {city} for {n} euros"),
        ("{p} was buying a {good} in {city}, for {n} euros", "A {good} was bought by {p} in {city} for {n} euros"),
    ),
    (
        "{p} teaches {thing} to children in {city}",
        ("{p} teaches children {thing} in {city}", "In {city} {p} teaches {thing} to kids"),
        ("{p} is teaching {thing} to the children of {city}", "{p} gives children in {city} lessons in {thing}"),
    ),
    (
        "{p} asked {q} to repair the old {good}",
        ("{p} has asked {q} to fix the old {good}", "{p} asked {q} to mend the old {good}"),
        ("{q} was asked by {p} to repair the old {good}", "{p} requested that {q} repairs the old {good}"),
    ),
)
# Pairs written freely, without a look at the rules: the first ten say the same, the last ten do not.
FREE = """Bruno Rossi teaches chess to children in Leeds|Bruno Rossi gives children in Leeds lessons in chess
Ana pays 900 euros of rent each month|Ana's monthly rent is 900 euros
Luis is allergic to walnuts|Luis can't eat walnuts because of an allergy
Ana moved to Lima in 2024|Since 2024 Ana has been living in Lima
The wifi password is on the fridge|You find the wifi password stuck to the fridge
Deploys go out on Tuesdays at 10|We deploy every Tuesday at 10
Marta's sister Ines studies law|Ines, the sister of Marta, is a law student
Standup is at 9:15|The daily standup starts at 9:15
Diego takes the bus to work|Diego goes to work by bus
Ana uses a Samsung phone|Ana's phone is a Samsung
Bruno Rossi teaches chess to children in Leeds|Bruno Rossi teaches sailing to children in Leeds
Ana pays 900 euros of rent each month|Ana pays 900 euros of tax each month
Luis is allergic to walnuts|Luis is allergic to peanuts
Ana moved to Lima in 2024|Ana visited Lima in 2024
The wifi password is on the fridge|The door code is on the fridge
Deploys go out on Tuesdays at 10|Reviews are on Tuesdays at 10
Marta's sister Ines studies law|Marta's sister Ines studies music
Standup is at 9:15|The train leaves at 9:15
Diego takes the bus to work|Diego takes the bike to work
Ana uses a Samsung phone|Ana sold a Samsung phone"""
TRAPS = ("{p}'s mother", "{p}'s neighbour")


def sentences(rows: tuple[Row, ...], dice: random.Random) -> Iterator[tuple[Row, dict[str, object]]]:
    """Facts without end, none twice."""
    people = [f"{first} {last}" for first in FIRST for last in LAST]
    had: set[str] = set()
    while True:
        row = dice.choice(rows)
        person, other = dice.sample(people, 2)
        fill = {
            "p": person,
            "q": other,
            "city": dice.choice(CITIES),
            "firm": dice.choice(FIRMS),
            "n": dice.randint(300, 2400),
            "day": date(2026, 1, 1) + timedelta(days=dice.randint(0, 300)),
            "good": dice.choice(GOODS),
            "place": dice.choice(PLACES),
            "thing": dice.choice(THINGS),
        }
        only = f"{row[0]}{person}" if row in STEADY else row[0].format(**fill)
        if only not in had:
            had.add(only)
            yield row, fill


def dated(text: str, fill: dict[str, object], way: int) -> str:
    """The same date written or placed in another way."""
    day: date = fill["day"]  # type: ignore[assignment]
    written = [
        f"{day:%B} {day.day}, {day.year}",
        f"{day.day} {day:%B} {day.year}",
        f"{day.day}.{day.month}.{day.year}",
    ][way % 3]
    moved = text.replace(f" on {day}", "")
    return f"On {written}: {moved}" if way % 2 and moved != text else text.replace(str(day), written)


def punctuated(text: str, dice: random.Random) -> str:
    marks: list[Callable[[str], str]] = [
        lambda t: t + ".",
        lambda t: t.upper() if dice.random() < 0.3 else t + "…",
        lambda t: f"“{t}”",
        lambda t: t.replace(" in ", " – in "),
        lambda t: f"**{t}**",
        lambda t: t.replace("'", "’") + "!",
        lambda t: f"[14:30] {t}",
    ]
    return dice.choice(marks)(text)


def made(
    number: int, style: int, seed: int
) -> tuple[list[ToldLine], dict[int, int], dict[int, str], set[frozenset[int]]]:
    """Lines, the fact each states, how each twin was made, and the pairs that contradict each other."""
    dice = random.Random(seed)
    stock = {rows: sentences(rows, dice) for rows in (STEADY, EVENTS)}
    texts: list[tuple[str, int, str]] = []
    clashes: list[tuple[int, int]] = []
    fact = 0
    while len(texts) < number:
        rows = STEADY if dice.random() < 0.12 and fact < 1_500 else EVENTS
        row, fill = next(stock[rows])
        said, fact = row[0].format(**fill), fact + 1
        mine = fact
        texts.append((said, mine, ""))
        if dice.random() < 0.1:  # a neighbour that is no twin
            other = dict(fill, n=int(str(fill["n"])) + 7, day=fill["day"] + timedelta(days=9))  # type: ignore[operator]
            trap = said.replace(str(fill["p"]), dice.choice(TRAPS).format(**fill), 1)
            fact += 1
            changed = row[0].format(**other)
            texts.append((changed if changed != said and rows is EVENTS else trap, fact, ""))
        if rows is STEADY and dice.random() < 0.15:
            fact += 1
            other = dict(fill, n=int(str(fill["n"])) + 50, city=dice.choice(CITIES), firm=dice.choice(FIRMS))
            if (changed := row[0].format(**other)) != said:
                texts.append((changed, fact, ""))
                clashes.append((mine, fact))
        if dice.random() < 0.25:
            kind = dice.choice(["exact", "punctuation", "dates", "reworded"])
            if kind == "dates" and "{day}" not in row[0]:
                kind = "reworded"
            twin = {
                "exact": said,
                "punctuation": punctuated(said, dice),
                "dates": dated(said, fill, dice.randint(0, 5)),
                "reworded": dice.choice(row[1 + style]).format(**fill),
            }[kind]
            texts.append((twin, mine, kind))
    dice.shuffle(texts)
    lines = [
        ToldLine(path=f"memory/{date(2025, 1, 1) + timedelta(days=n // 60)}.md", number=n % 60 + 1, text=f"- {text}")
        for n, (text, _, _) in enumerate(texts)
    ]
    where: dict[int, int] = {}
    for place, (_, which, kind) in enumerate(texts):
        if not kind:
            where[which] = place
    pairs = {frozenset((where[one], where[other])) for one, other in clashes}
    return (
        lines,
        {n: which for n, (_, which, _) in enumerate(texts)},
        {n: k for n, (_, _, k) in enumerate(texts) if k},
        pairs,
    )


def measured(number: int, style: int, seed: int, meaning: bool) -> dict[str, float]:
    lines, facts, kinds, clashes = made(number, style, seed)
    vectors = None
    if meaning and (embedder := open_embedder("static")):
        vectors = lambda texts: embedder.embed(texts, kind="document")  # noqa: E731
    begun = time.perf_counter()
    groups = find_duplicates(read(lines), vectors=vectors)
    seconds = time.perf_counter() - begun
    place = {(line.path, line.number): n for n, line in enumerate(lines)}
    found = {
        frozenset(pair)
        for group in groups
        for pair in combinations(
            [place[one.path, one.number] for one in (group.keep, *(t.line for t in group.twins))], 2
        )
    }
    members: dict[int, list[int]] = {}
    for n, fact in facts.items():
        members.setdefault(fact, []).append(n)
    true = {frozenset(pair) for same in members.values() for pair in combinations(same, 2)}
    missed = Counter(kinds.get(max(p, key=lambda n: n in kinds), "") for p in true - found)
    total = Counter(kinds.get(max(p, key=lambda n: n in kinds), "") for p in true)
    told = {
        frozenset((place[c.one.path, c.one.number], place[c.other.path, c.other.number]))
        for c in find_contradictions(read(lines))
    }
    right = sum(
        any(frozenset((a, b)) in clashes for a in members[facts[x]] for b in members[facts[y]])
        for x, y in map(tuple, told)
    )
    named = {n for pair in told for n in pair}
    return {
        "precision": len(found & true) / max(1, len(found)),
        "recall": len(found & true) / max(1, len(true)),
        "seconds": seconds,
        **{kind: 1 - missed[kind] / total[kind] for kind in sorted(total)},
        "clash_precision": right / max(1, len(told)),
        "clash_recall": sum(bool(pair & named) for pair in clashes) / max(1, len(clashes)),
    }


def freely() -> str:
    """How many of the free pairs are found, and how many of those that only look alike."""
    embedder, counts = open_embedder("static"), [0, 0]
    for number, row in enumerate(FREE.splitlines()):
        pair = [ToldLine(path="MEMORY.md", number=place, text=text) for place, text in enumerate(row.split("|"), 1)]
        vectors = (lambda texts: embedder.embed(texts, kind="document")) if embedder else None
        counts[number // 10] += bool(find_duplicates(read(pair), vectors=vectors))
    return f"free   words+meaning  found {counts[0]} of 10 that say the same, {counts[1]} of 10 that do not"


def wrong(number: int, style: int, seed: int) -> None:
    """Prints pairs that were found and are none, for whoever wants to know why."""
    lines, facts, _, _ = made(number, style, seed)
    place = {(line.path, line.number): n for n, line in enumerate(lines)}
    for group in find_duplicates(read(lines)):
        for twin in group.twins:
            if facts[place[group.keep.path, group.keep.number]] != facts[place[twin.line.path, twin.line.number]]:
                sys.stdout.write(f"{twin.how}: {group.keep.text} | {twin.line.text}\n")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--lines", type=int, default=20_000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--wrong", action="store_true", help="print what was found and is no twin")
    given = arguments.parse_args()
    if given.wrong:
        wrong(given.lines, 0, given.seed)
        return
    for style, name in enumerate(("near", "other")):
        for meaning in (False, True):
            figures = measured(given.lines, style, given.seed, meaning)
            told = "  ".join(f"{key}={value:.3f}" for key, value in figures.items())
            sys.stdout.write(f"{name:<6} {'words+meaning' if meaning else 'words':<14} {told}\n")
    sys.stdout.write(freely() + "\n")


if __name__ == "__main__":
    main()
