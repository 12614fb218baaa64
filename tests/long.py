"""The suites that take longer than `make test` may: `make test-long PART=kills`, or all parts one after the other.

Promise: a part takes at most an hour on two cores and is a list of steps in a fixed order; every choice of a step that
is left to chance hangs on the seed. A part that was stopped goes on with `FROM=step` and the same `SEED`, and the line
to say so is printed when a step fails. Not here: what the steps check (benchmarks, and tests marked `long`).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROPERTIES = "backup dream forget gate layout ledger memory prompt search sessions store text upkeep web".split()


@dataclass(frozen=True, kw_only=True)
class Step:
    """One command of a part."""

    name: str
    command: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)


def _tests(*arguments: str) -> tuple[str, ...]:
    return ("-m", "pytest", "-p", "no:cacheprovider", *arguments)


def kills(seed: str) -> Iterator[Step]:
    """Every operation killed, torn and failed at every call that touches a file."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from faults import OPERATIONS

    for operation in OPERATIONS:
        yield Step(name=operation.name, command=("benchmarks/faults.py", "--only", operation.name))


def power(seed: str) -> Iterator[Step]:
    """The power cut after every call, with every set of lost writes that a disk may choose."""
    yield Step(name="cuts", command=("benchmarks/powercut.py",))


def crowd(seed: str) -> Iterator[Step]:
    """Sixteen processes in one home, killed at random, ten minutes each time."""
    for n in range(4):
        one = str(int(seed) + n)
        yield Step(name=f"seed-{one}", command=("benchmarks/crowd.py", "--seconds", "600", "--seed", one))


def conversations(seed: str) -> Iterator[Step]:
    """Conversations killed in every phase; and the protocol's own conformance scenarios."""
    yield Step(name="killed", command=_tests("-m", "long", "tests/sessions"), variables={"ANIMA_SEED": seed})
    yield Step(name="conformance", command=_tests("-m", "long", "tests/mcp"))


def spoken(seed: str) -> Iterator[Step]:
    """A hundred conversations of 300 turns with a model, cut five times and killed in every phase."""
    for number in range(10):
        variables = {"ANIMA_SEED": f"{seed}-{number}", "ANIMA_RUNS": "10"}
        yield Step(name=f"ten-{number}", command=_tests("-m", "long", "tests/agent"), variables=variables)


def examples(seed: str) -> Iterator[Step]:
    """Two thousand new examples for every property, in the place of the forty that `make test` always tries."""
    for room in PROPERTIES:
        command = _tests("-m", "hypothesis and not long", f"--hypothesis-seed={seed}", f"tests/{room}")
        yield Step(name=room, command=command, variables={"HYPOTHESIS_PROFILE": "explore"})


def blind(seed: str) -> Iterator[Step]:
    """Ten thousand sequences of an agent's requests in pairs of homes that its listener cannot tell apart."""
    yield Step(name="doors", command=_tests("-m", "long", "tests/net"))
    for n in range(20):
        one = str(int(seed) + n)
        command = _tests("tests/sessions/test_noninterference.py")
        yield Step(name=f"seed-{one}", command=command, variables={"ANIMA_SEED": one, "ANIMA_SEQUENCES": "500"})


def trust(seed: str) -> Iterator[Step]:
    """Five thousand sequences of sessions, doors, nights and moves, with foreign text entering at any step; a hundred on a
    channel."""
    for n in range(10):
        one = str(int(seed) + n)
        command = _tests("tests/sessions/test_trust.py", "-n", "2")
        yield Step(name=f"seed-{one}", command=command, variables={"ANIMA_SEED": one, "ANIMA_SEQUENCES": "500"})
    command = _tests("tests/connect/test_channel_properties.py", "-n", "2")
    yield Step(name="channel", command=command, variables={"ANIMA_SEED": seed, "ANIMA_SEQUENCES": "100"})


def page(seed: str) -> Iterator[Step]:
    """Every page of a home in which much has piled up, in a browser, by axe-core too."""
    yield Step(name="rich", command=_tests("-m", "long", "tests/web"))


def docs(seed: str) -> Iterator[Step]:
    """Every command of the manual and of the longer pages of the reference."""
    yield Step(name="reference", command=_tests("-m", "long", "tests/test_docs.py"))


PARTS = {
    part.__name__: part for part in (kills, power, crowd, conversations, spoken, examples, blind, trust, page, docs)
}


def run(part: str, seed: str, start: str | None) -> int:
    """Runs the steps of a part, from one of them on; stops at the first that fails, with its exit code."""
    steps = list(PARTS[part](seed))
    names = [step.name for step in steps]
    if start is not None and start not in names:
        sys.exit(f"{part} has no step {start!r}; it has {', '.join(names)}")
    for n, step in enumerate(steps[names.index(start) if start else 0 :], 1 + (names.index(start) if start else 0)):
        print(f"== {part} {n}/{len(steps)}: {step.name} (seed {seed})", flush=True)
        begun = time.monotonic()
        code = subprocess.run(
            [sys.executable, *step.command], cwd=ROOT, env={**os.environ, **step.variables}, check=False
        ).returncode
        print(f"== {step.name}: {time.monotonic() - begun:.0f} s, exit code {code}", flush=True)
        if code:
            print(f"go on with: make test-long PART={part} SEED={seed} FROM={step.name}", file=sys.stderr)
            return code
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", nargs="?", default="", help=f"one of {', '.join(PARTS)}; all of them when left out")
    parser.add_argument("--seed", default="", help="a number; drawn and printed when left out")
    parser.add_argument("--start", default="", help="the step of the part to begin with")
    given = parser.parse_args()
    if given.part and given.part not in PARTS:
        parser.error(f"there is no part {given.part!r}; there are {', '.join(PARTS)}")
    seed = given.seed or str(int.from_bytes(os.urandom(3)))
    return next(
        (code for part in ([given.part] if given.part else PARTS) if (code := run(part, seed, given.start or None))), 0
    )


if __name__ == "__main__":
    sys.exit(main())
