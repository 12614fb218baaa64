"""What a sweep looks at, and what it decided: the values between gathering, planning and writing.

Promise: frozen. A SweepPlan says for each line where it came from and why it is there; a model's operations could take the
place of `promotions`, `retirements` and `moves`, and everything after them stays the same. Not here: any decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NamedTuple

from anima.dream.worth import Evidence, Preset, Score, Tally

Figures = tuple[float, int, int]  # score, recalls, days
BUDGET = 10_000  # characters of MEMORY.md, below what a prompt shows of it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogNote:
    """One note of a daily log, as it stands there now."""

    path: str
    line: int
    raws: tuple[str, ...]  # its lines
    text: str
    day: date
    tally: Tally | None = None

    @property
    def fact(self) -> str:
        """Its words on one line."""
        return " ".join(self.text.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One line of MEMORY.md. `machine` is whether a dream wrote it; only those are ever taken out."""

    number: int
    raw: str
    fact: str
    since: date | None
    machine: bool
    night: date | None = None
    tally: Tally | None = None

    @property
    def hits(self) -> int:
        """How often a question found this line for certain."""
        return len(self.tally.strong) if self.tally else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Everything a plan is made of. `doubt` says why a note may not be built on, or None; it is asked for few."""

    now: datetime
    today: date
    rules: Preset
    notes: tuple[LogNote, ...]  # in order of time
    memory: str
    held: tuple[Held, ...]
    doubt: Callable[[LogNote], str | None]
    promoted: Mapping[str, date] = field(default_factory=dict)  # facts of earlier sweeps, by their words, and when
    recalls: int = 0  # new since the last sweep
    budget: int = BUDGET
    seed_form: bool = False  # whether lines carry their figures and a night has a heading, as one dialect has it

    def line(self, fact: str, since: date | None, told: Iterable[Figures]) -> str:
        """A line for MEMORY.md; in the form of the seed with the best evidence of any line that went into it. Not their
        sum: one search may have found several of them."""
        line = f"- {fact} (since {since})" if since else f"- {fact}"
        if not self.seed_form:
            return line
        score, hits, days = (max(each) for each in zip((0.0, 0, 0), *told, strict=True))
        return f"{line} _(score={score:.2f}, hits={hits}, days={days})_"


class Gate(NamedTuple):
    """One condition, whether it was met, and in words."""

    name: str
    passed: bool
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A line that recalls speak for, with everything that was weighed."""

    note: LogNote
    evidence: Evidence
    score: Score
    lasting: float
    reasons: tuple[str, ...]
    gates: tuple[Gate, ...]
    since: date | None = None
    replaces: tuple[Held, ...] = ()

    @property
    def figures(self) -> Figures:
        return round(self.score.total, 2), self.evidence.recalls, self.evidence.days

    @property
    def passed(self) -> bool:
        return all(gate.passed for gate in self.gates)

    @property
    def refusal(self) -> Gate | None:
        return next((gate for gate in self.gates if not gate.passed), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """A line for MEMORY.md, and the note it was taken from; with a model, also what was merged into it."""

    line: str
    fact: str
    candidate: Candidate
    also: tuple[Candidate, ...] = ()
    held: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewording:
    """Lines of dreams that a model put into one line of their own words."""

    line: str
    fact: str
    held: tuple[Held, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """A line of MEMORY.md that a newer note made untrue. The owner's own are only proposed."""

    held: Held
    by: LogNote
    since: date | None
    until: date

    @property
    def line(self) -> str:
        """What the page of what is past says of it."""
        start = f"{self.since} to " if self.since else "until "
        return f"- {self.held.fact} _({start}{self.until}; then: {self.by.fact})_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """What many recalls of the week were about."""

    tag: str
    strength: float
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What seems to be so, and is not promoted yet."""

    fact: str
    confidence: float
    note: LogNote


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """What one sweep would do."""

    now: datetime
    today: date  # where the user lives
    rules: Preset
    promotions: tuple[Promotion, ...] = ()
    retirements: tuple[Retirement, ...] = ()
    moves: tuple[Held, ...] = ()
    reworded: tuple[Rewording, ...] = ()
    wishes: tuple[Retirement, ...] = ()  # changes of the owner's own lines, for the owner to decide
    considered: tuple[Candidate, ...] = ()
    themes: tuple[Theme, ...] = ()
    truths: tuple[Truth, ...] = ()
    recalls: int = 0
    memory: str | None = None  # the new text; None: unchanged
    diary: str = ""

    @property
    def changes_memory(self) -> bool:
        return self.memory is not None

    @property
    def past(self) -> str:
        """What the page of what is past gets."""
        return "".join(f"{gone.line}\n" for gone in self.retirements)

    @property
    def moved(self) -> str:
        """What the page of lines that found no room gets."""
        return "".join(f"{self.moved_line(held)}\n" for held in self.moves)

    def moved_line(self, held: Held) -> str:
        return f"- {held.fact} _(moved here on {self.today}, hits={held.hits})_"
