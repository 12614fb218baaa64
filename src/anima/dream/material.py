"""What a sweep looks at, what a line is worth, and what was decided: tallies of recalls, scores, junk, and the values
between gathering, planning and writing.

Promise: pure and frozen. Tallies fold the ledger's `recall` records one by one; only searches of the owner's own main
sessions count, and the same question on the same day counts once. `why_junk` names the sort by shape, in linear time.
Not here: which line a digest belongs to (sweep), how lasting a sentence is (text), what else keeps a line out (plan).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from typing import Literal, NamedTuple

from anima.errors import BadArguments
from anima.ledger import Record
from anima.text import DENSE, one_line, read_table
from anima.text.notes import core_of, is_stated, sentence

STRONG = 0.8  # of the best hit's score: a hit as high as this, or the first one, is strong
WEIGHTS = {"frequency": 0.24, "relevance": 0.30, "diversity": 0.15}
WEIGHTS |= {"recency": 0.15, "consolidation": 0.10, "conceptual": 0.06}
LIGHT_BOOST, REM_BOOST = 0.06, 0.09
HALF_LIFE = 14.0
HALF_LIVES = {"attribute": 90.0, "rule": 60.0, "decision": 60.0}  # by kind of line; else 14 days
DAILY_SCORE = 0.62  # what a mention in a daily log counts as, where mentions count at all


@dataclass(slots=True)
class Tally:
    """Of one line: every hit, and apart from that the strong ones by question and day."""

    hits: int = 0
    strong: set[tuple[str, str]] = field(default_factory=set)  # (day, question)
    questions: set[str] = field(default_factory=set)  # of any hit
    days: set[str] = field(default_factory=set)
    ranked: float = 0.0  # sum of 1 / rank
    scored: float = 0.0  # sum of the hits' own scores
    relative: float = 0.0  # sum of shares of the best hit's score
    first: str = ""
    last: str = ""

    def add(self, *, day: str, question: str, rank: int, score: float, relative: float) -> None:
        strong = {(day, question)} if rank == 1 or relative >= STRONG else set()
        self.join(Tally(1, strong, {question}, {day}, 1 / max(1, rank), score, relative, day, day))

    def join(self, other: Tally) -> None:
        """Takes another line's tally in: two lines that say the same share their recalls."""
        self.hits += other.hits
        self.strong |= other.strong
        self.questions |= other.questions
        self.days |= other.days
        self.ranked += other.ranked
        self.scored += other.scored
        self.relative += other.relative
        self.first = min(self.first or other.first, other.first or self.first)
        self.last = max(self.last, other.last)

    @property
    def strong_questions(self) -> set[str]:
        return {question for _, question in self.strong}


class Tallies:
    """The tallies of all lines. `through` is the number of the last record in them; `memory` is the path of what is kept
    already, which does not weigh against a note that says something like it."""

    def __init__(self, memory: str = "") -> None:
        self.through, self._memory = 0, memory
        self._lines: dict[tuple[str, str], Tally] = {}

    def fold(self, record: Record) -> None:
        self.through, fields = record.n, record.fields
        if record.kind != "recall" or fields.get("scope") != "main" or fields.get("layer"):
            return
        day, question, hits = str(fields.get("day", "")), str(fields.get("query", "")), fields.get("hits") or ()
        notes = [hit for hit in hits if hit.get("path") != self._memory] or hits
        best = max((float(hit.get("score", 0)) for hit in notes), default=0.0)
        for hit in hits:
            score = float(hit.get("score", 0))
            share = min(1.0, score / best) if best > 0 else 0.0
            path, rank = str(hit.get("path", "")), int(hit.get("rank", 99))
            for digest in hit.get("lines", ())[:4]:
                tally = self._lines.setdefault((path, digest), Tally())
                tally.add(day=day, question=question, rank=rank, score=score, relative=share)

    def of(self, path: str, digests: Iterable[str]) -> Tally | None:
        """The tally of the first of these lines that was ever found."""
        return next((found for digest in digests if digest and (found := self._lines.get((path, digest)))), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Whose rules: the least score, recalls, questions and days, and how many lines a night."""

    name: Literal["anima", "nexo", "openclaw"]
    score: float
    recalls: int
    questions: int
    days: int
    limit: int
    oldest: int | None = None  # days since the last recall
    careful: bool = False  # also weighs how lasting the line is, and replaces what is outdated

    @staticmethod
    def named(name: str) -> Preset:
        if name not in PRESETS:
            raise BadArguments(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
        return PRESETS[name]


PRESETS = {name: Preset(**{"name": name, **row}) for name, row in read_table("dream", "presets").items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What recalls say of a line and of those that say the same."""

    recalls: int  # as the preset counts them
    questions: int
    days: int
    relevance: float  # mean, 0 to 1
    first: date
    last: date
    mentions: int = 1  # days on which it was noted
    tags: int = 0
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The total, and each component before it is weighed."""

    total: float
    frequency: float
    relevance: float
    diversity: float
    recency: float
    consolidation: float
    conceptual: float
    boost: float = 0.0

    @property
    def weighed(self) -> dict[str, float]:
        """What each component adds to the total, before that is rounded."""
        return {name: weight * getattr(self, name) for name, weight in WEIGHTS.items()} | {"boost": self.boost}


def score(evidence: Evidence, *, today: date, rules: Preset) -> Score:
    e, boost = evidence, 0.0
    age, most = max(0, (today - e.last).days), max(e.questions, e.days)
    often, recalls = math.log1p(e.recalls) / math.log(7), e.recalls + e.mentions
    if rules.name == "anima":
        recency = 2 ** (-age / HALF_LIVES.get(e.kind, HALF_LIFE))
        values = often, e.relevance, e.questions / 3, recency, e.days / 3, e.tags / 6
    elif rules.name == "nexo":
        values = often, e.relevance, most / 5, 2 ** (-age / 90), e.days / 5, 0.0
    else:
        often, fade = math.log1p(recalls) / math.log(11), 2 ** (-age / HALF_LIFE)
        relevance = (e.relevance * e.recalls + DAILY_SCORE * e.mentions) / recalls
        spacing = 0.2 * e.days
        if e.days > 1:
            spacing = 0.55 * min(1.0, math.log(e.days) / math.log(5)) + 0.45 * min(1.0, (e.last - e.first).days / 7)
        values = often, relevance, most / 5, fade, spacing, e.tags / 6
        # What light and REM sleep add to a line they saw on several nights.
        light, rem = (min(1.0, math.log1p(nights) / math.log(7)) * fade for nights in (e.days, max(0, e.days - 1)))
        boost = LIGHT_BOOST * light + REM_BOOST * rem
    parts = {name: max(0.0, min(1.0, value)) for name, value in zip(WEIGHTS, values, strict=True)}
    total = sum(WEIGHTS[name] * value for name, value in parts.items()) + boost
    rounded = {name: round(value, 4) for name, value in parts.items()}
    return Score(total=round(min(1.0, total), 4), boost=round(boost, 4), **rounded)


# -- junk: what says something about a moment, a machine or the agent itself -----------------------------------------------

SHORTEST, LONGEST = 8, 400  # characters of a line worth keeping
_DENSE = re.compile(f"[{DENSE}]")
_SIGN = {name: re.compile(one_line(pattern)) for name, pattern in read_table("dream", "junk").items()}


def _greets(text: str) -> bool:
    """A greeting with a few words behind it; a longer sentence may begin with one and say something."""
    found = _SIGN["greeting"].match(text)
    return found is not None and len(text[found.end() :].split()) <= 6


def _times(name: str, text: str) -> int:
    return len(_SIGN[name].findall(text))


KINDS: tuple[tuple[str, Callable[[str], object]], ...] = (
    ("too short", lambda text: (len(text) < SHORTEST and not _DENSE.search(text)) or _times("words", text) < 2),
    ("too long", lambda text: len(text) > LONGEST),
    ("its own output", _SIGN["own"].search),
    ("a secret", _SIGN["secret"].search),
    ("a stack trace", _SIGN["trace"].search),
    ("a command", lambda text: _SIGN["command"].match(text) or _times("shell", text) >= 2),
    ("a log line", lambda text: _SIGN["log"].match(text) or _times("pairs", text) >= 2 or _SIGN["stamp"].search(text)),
    ("code", _SIGN["code"].search),
    ("data", _SIGN["data"].search),
    ("a list", lambda text: _SIGN["listed"].search(text) or (_times("things", text) and _times("first_of_list", text))),
    ("a link", lambda text: _times("link", text) and _times("words", _SIGN["link"].sub("", text)) < 4),
    ("an identifier", _SIGN["hexes"].search),
    ("a question", _SIGN["question"].search),
    ("a task", _SIGN["task"].match),
    ("a greeting", lambda text: _greets(text) or _SIGN["says_hi"].search(text)),
    ("boilerplate", _SIGN["empty"].match),
    ("a job's report", _SIGN["job"].search),
    ("a tool's output", _SIGN["tool"].search),
    ("a measurement", lambda text: _SIGN["measure"].search(text) and not is_stated(sentence(text))),  # nor a limit
    ("the agent talking", lambda text: _SIGN["chatter"].match(core_of(text))),
    ("the weather", _SIGN["weather"].search),
    # More signs and digits than a sentence has.
    ("mostly signs", lambda text: _times("letters", text) < 0.55 * len(text.replace(" ", ""))),
)


@lru_cache(maxsize=65_536)
def why_junk(text: str) -> str | None:
    """What sort of junk a note is; None when its shape says nothing against it."""
    return next((kind for kind, looks_so in KINDS if looks_so(text)), None)


# -- what a sweep looks at, and what it decided -------------------------------------------------------------------------

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


Doubt = Callable[[LogNote], str | None]  # why a note may not be built on, or None


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
    """Everything a plan is made of. `doubt` is asked for few notes."""

    now: datetime
    today: date
    rules: Preset
    notes: tuple[LogNote, ...]  # in order of time
    memory: str
    held: tuple[Held, ...]
    doubt: Doubt
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
    truths: tuple[tuple[LogNote, float], ...] = ()  # what seems to be so and is not kept yet, and how sure that is
    recalls: int = 0
    memory: str | None = None  # the new text; None: unchanged
    diary: str = ""

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
