"""What does keeping a home cost, and does it grow no faster than the home?

    python benchmarks/keeping.py [--lines 1000 10000 100000] [--parts forget snapshot tidying]

forget    phrases that stand in every hundredth document (the least of three), and a session that wrote some lines: planned, forgotten, and
          purged from a home of so many lines, with a tenth as many entries of transcripts and a history. No index: making
          one again is `benchmarks/search.py`'s to measure.
snapshot  taken and read back, verified, restored elsewhere and in place; beside `tar -czf` of the same files.
tidying   a home whose every twentieth line is said again elsewhere, half of it in old logs: what is old, said twice and
          contradicted is looked for, and all that was suggested is carried out as one change and taken back.

Each part is measured on homes of growing size. Exits with 1 when a line of the largest home costs more than 1.5 times one
of the home a tenth its size (beneath 10,000 lines the fixed cost is most of it, so those are only shown).
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

from anima import Home, Scope, restore

PER_DOCUMENT, EVERY = 200, 100
LIMIT, ENOUGH = 1.5, 10_000
PHRASES = [f"the lighthouse keeper hides the {which} lamp" for which in ("fifth", "sixth", "seventh")]
Figures = dict[str, float]


def sentences(seed: int) -> Iterator[str]:
    """Lines that differ, of words that repeat as words do."""
    dice = random.Random(seed)
    words = ["".join(dice.choices("aeioubcdfglmnprstv", k=dice.randint(3, 9))) for _ in range(5_000)]
    while True:
        yield " ".join(dice.choices(words, k=dice.randint(6, 16)))


def made(root: Path, lines: int) -> tuple[Home, str]:
    """A home of so many lines, and the session that wrote some of them."""
    source, said = root / "source", sentences(lines)
    for number in range(max(1, lines // PER_DOCUMENT)):
        text = "".join(f"- {next(said)}\n" for _ in range(PER_DOCUMENT))
        if number % EVERY == 0:
            text += "".join(f"- {phrase}, says document {number}\n" for phrase in PHRASES)
        path = source / f"notes/{number // 50:03}/n{number:05}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {number}\n\n{text}", encoding="utf-8")
    home = Home.create(root / "home", name="Aria")
    home.import_directory(source, mine=True)
    session = home.session(scope=Scope.MAIN)
    for _ in range(lines // 10):
        session.log("tool", next(said))
    for _ in range(20):
        session.call("memory_write", {"target": "memory", "content": next(said)})
    session.close()
    return home, session.id


def forgetting(root: Path, lines: int) -> Figures:
    home, session = made(root, lines)
    with home:
        return {
            "forget: plan": best(lambda phrase: home.forget(text=phrase, dry_run=True)),
            "forget: plan with history": best(lambda phrase: home.forget(text=phrase, purge=True, dry_run=True)),
            "forget: a text": best(lambda phrase: home.forget(text=phrase)),
            "forget: a text, purged": best(lambda phrase: home.forget(text=phrase, purge=True)),
            "forget: a session, purged": timed(lambda: home.forget(session=session, purge=True)),
        }


def best(work: Callable[[str], object]) -> float:
    """The least of three, one for each phrase: a busy machine only adds."""
    return min(timed(lambda phrase=phrase: work(phrase)) for phrase in PHRASES)  # type: ignore[misc]


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def keeping_safe(root: Path, lines: int) -> Figures:
    """The least of three of each; beside them plain tar of the same files."""
    home, _ = made(root, lines)
    with home:
        home.site.store.commit()
        taken = min(timed(lambda n=n: home.snapshots.take(to=root / f"{n}.tar.gz")) for n in range(3))  # type: ignore[misc]
        archive = root / "0.tar.gz"
        checked = min(timed(lambda: home.snapshots.verify(archive)) for _ in range(3))
        listed = [file.path for file in home.snapshots.verify(archive).files]
    (root / "list").write_text("".join(f"{path}\n" for path in listed), encoding="utf-8")
    tar = ["tar", "-czf", str(root / "plain.tar.gz"), "-C", home.name, "-T", str(root / "list")]
    plain = min(timed(lambda: subprocess.run(tar, check=True)) for _ in range(3))
    new = min(timed(lambda n=n: restore(archive, root / f"new{n}")) for n in range(3))  # type: ignore[misc]
    over = min(_restored_over(archive, home.name, number) for number in range(3))
    return {
        "snapshot: take and read back": taken,
        "snapshot: verify": checked,
        "snapshot: restore elsewhere": new,
        "snapshot: restore in place": over,
        "plain tar -czf": plain,
        "take / tar -czf, times": taken / plain,
    }


def _restored_over(archive: Path, root: str, number: int) -> float:
    """One document changed since; what is there becomes a snapshot first."""
    with Home.open(root) as home:
        home.write(f"notes/since{number}.md", "- since\n")
    return timed(lambda: restore(archive, root))


def logged(root: Path, lines: int) -> Home:
    """A home of daily logs and notes, in which every twentieth line is said again."""
    home, said, dice = Home.create(root / "home", name="Aria"), sentences(lines), random.Random(lines)
    source, had, first = root / "source", list[str](), date(2026, 1, 1)
    for number in range(max(2, lines // PER_DOCUMENT)):
        texts = [dice.choice(had) if had and dice.random() < 0.05 else f"Ana {next(said)}" for _ in range(PER_DOCUMENT)]
        had += texts[::7]
        name = (
            f"memory/{first - timedelta(days=number)}.md" if number % 2 else f"notes/{number // 50:03}/n{number:05}.md"
        )
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("".join(f"- {text}\n" for text in texts), encoding="utf-8")
    home.import_directory(source, mine=True)
    return home


def tidying(root: Path, lines: int) -> Figures:
    with logged(root, lines) as home:
        found = {
            "tidying: look": timed(home.upkeep.look),
            "tidying: look again": timed(home.upkeep.look),
        }
        agreed = [one for one in home.upkeep.look().suggestions if one.kind != "choose"]
        found["tidying: tidy all"] = timed(lambda: home.upkeep.tidy(agreed))
        return found | {"tidying: undo all": timed(home.undo)}


PARTS: dict[str, Callable[[Path, int], Figures]] = {
    "forget": forgetting,
    "snapshot": keeping_safe,
    "tidying": tidying,
}


def growth(found: dict[int, Figures], name: str) -> float | None:
    """How much dearer a line is in the largest home than in the one a tenth its size."""
    large = max(found)
    small = large // 10
    if small < ENOUGH or small not in found:
        return None
    return (found[large][name] / large) / (found[small][name] / small)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    asked = parser.parse_args()
    over = False
    for part in asked.parts:
        found: dict[int, Figures] = {}
        for lines in sorted(asked.lines):
            with tempfile.TemporaryDirectory() as folder:
                found[lines] = PARTS[part](Path(folder), lines)
        print(f"{'seconds':34}" + "".join(f"{lines:>12,}" for lines in found) + f"{'growth':>10}")
        for name in next(iter(found.values())):
            grown = growth(found, name) if not name.endswith("times") else None
            over |= grown is not None and grown > LIMIT
            shown = f"{grown:>9.2f}x" if grown is not None else f"{'':>10}"
            print(f"{name:34}" + "".join(f"{figures[name]:>12.3f}" for figures in found.values()) + shown)
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
