"""Asking a model about a sweep: it proposes operations on lines, and code decides whether any of it may stand.

Promise: one refusal refuses all operations, and then the deterministic plan stands. The owner's lines, and what the plan
retires or moves, are never a model's to touch. No line a model writes is kept unless all its words, names, numbers and
negations come from lines it was shown, and none that matters is left out. Nothing a model does (silence, nonsense,
raising) changes memory; nothing is locked or written here. Not here: the plan (plan), writing (sweep).
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from enum import StrEnum
from typing import Any, NamedTuple

from anima.dream.material import Figures, Held, Material, Promotion, Retirement, Rewording, SweepPlan
from anima.dream.pages import dreamed_page, fact_of, without
from anima.dream.plan import ROOM, key_of
from anima.errors import printable
from anima.model import Complete
from anima.text import bullet_text, read_table
from anima.text.markdown import evidence_of, without_tail
from anima.text.notes import Relation, relation, sentence
from anima.text.reading import LIMITS, Read, ToldLine, canonical
from anima.text.reading import read as read_lines

TIMEOUT = 60.0  # seconds for one answer
ATTEMPTS = 2
PROSE = 1_200  # characters of the diary in a model's words
NOTHING_TO_ASK = "No model was asked: there was nothing new to keep."
CHANGED_MEANWHILE = "A model was asked, but the home changed while it thought, so the night's own plan was used."
NO_PROSE = "Its words for this diary could not be used."
_NUMBER = re.compile(r"\d+")
_MARKED = re.compile(r"\s*(?:[#>|`~+*-]|\d+[.)]\s)")
_SAID = read_table("dream", "sentences")
_REFUSED = _SAID["answer_refused"]  # without a word of the answer: what a model says may hold anything
MAX_OPERATIONS = 400
MAX_ANSWER = 200_000
MAX_LOST = 0.25  # of the prior lines
MAX_LINE = 400
Unsafe = Callable[[str], str | None]  # why a line may not be added, or None
Shown = Callable[[Held], bool]  # whether a model may see a line of memory
Updates = Callable[[str, str], bool]  # whether a new line makes an old one untrue


def consult(
    made: SweepPlan, material: Material, complete: Complete, *, unsafe: Unsafe, shown: Shown, timeout: float = TIMEOUT
) -> tuple[SweepPlan, str]:
    """The plan as a model would have it, or the plan as it was, and what the diary says of asking."""
    if not made.promotions:
        return made, NOTHING_TO_ASK
    night = _Night(made, material, unsafe=unsafe, shown=shown)
    question = ask(night.candidates, night.prior, night.budget)
    why_not = consulted(complete, question, check=night.check, timeout=timeout)
    if why_not or night.plan is None:
        return made, f"{why_not[:1].upper()}{why_not[1:]}, so the night's own plan was used."
    plan, own = night.plan, {p.line for p in made.promotions}
    counts = (
        (sum(p.line not in own and not p.also and not p.held for p in plan.promotions), "put into other words"),
        (sum(bool(p.also or p.held) for p in plan.promotions), "merged"),
        (len(plan.reworded), "of memory's own said anew"),
        (len(plan.retirements) - len(made.retirements), "let go"),
    )
    told = ", ".join(f"{count} {what}" for count, what in counts if count)
    return plan, f"A model helped: {told}." if told else "A model was asked and left every line as it was."


class _Night:
    """One plan while a model's operations are tried on it. `plan` is what the accepted ones come to."""

    def __init__(self, made: SweepPlan, material: Material, *, unsafe: Unsafe, shown: Shown) -> None:
        self.made, self.m, self.unsafe = made, material, unsafe
        self.plan: SweepPlan | None = None
        self.gone = {r.held.number for r in made.retirements} | {held.number for held in made.moves}
        self.held = [held for held in material.held if held.number not in self.gone and shown(held)]
        self.named = {f"c{n}": p for n, p in enumerate(made.promotions, start=1)}
        self.candidates = [
            Offer(id=name, text=p.fact, source=f"{p.candidate.note.path}#L{p.candidate.note.line}")
            for name, p in self.named.items()
        ]
        self.prior = [Prior(text=h.raw, owner=not h.machine) for h in self.held]
        # Bytes equal to the plan's own page as long as nothing is asked for but to add.
        self.fold = dreamed_page(material, made.promotions, gone=self.gone, fold=False) != made.memory
        self.most = max(material.budget - ROOM, len(made.memory or ""))
        around = len(without(material.memory, self.gone)) - sum(len(line.text) + 1 for line in self.prior)
        self.budget = self.most - around  # for the lines alone

    def check(self, operations: tuple[Operation, ...]) -> Outcome:
        outcome = validate(
            operations,
            candidates=self.candidates,
            prior=self.prior,
            budget=self.budget,
            unsafe=self._unsafe,
            updates=self._updates,
        )
        if not outcome.accepted:
            return outcome
        plan = self._applied(operations, outcome.added)
        if len(plan.memory or "") > self.most:
            late = Refusal(rule="budget", reason=f"memory would have more than {self.most:,} characters")
            return Outcome(refusals=(late,))
        self.plan = plan
        return outcome

    def _unsafe(self, text: str) -> str | None:
        return "it is no plain line" if "```" in text or "~~~" in text or "_(" in text else self.unsafe(text)

    def _updates(self, new: str, old: str) -> bool:
        """Whether a candidate may make a line untrue: it was said later."""
        fact, since = fact_of(old)
        held = next((h for h in self.held if h.raw == old), None)
        told = max(self._days(held.fact if held else fact), default=since or (held and held.night) or date.min)
        return max(self._days(new), default=date.min) > told

    def _days(self, fact: str) -> list[date]:
        """The days on which logs say a fact."""
        key = key_of(fact)
        return [note.day for note in self.m.notes if key_of(note.text) == key]

    def _applied(self, operations: Sequence[Operation], texts: Sequence[str]) -> SweepPlan:
        """The plan that the operations make. Each gives one line, in their order."""
        free: dict[str, list[Held]] = {}
        for held in reversed(self.held):
            if held.machine:
                free.setdefault(held.raw, []).append(held)
        kept, retired, anew = list[Promotion](), list(self.made.retirements), list[Rewording]()
        for one, text in zip(operations, texts, strict=True):
            new, old = [self.named[name] for name in one.candidates], [free[raw].pop() for raw in one.prior]
            if one.verb is Verb.SUPERSEDE:  # a line that takes another's place says since when it is so
                chosen = new[0].candidate
                since = chosen.since or chosen.note.day
                kept.append(replace(new[0], fact=text, line=self.m.line(text, since, [chosen.figures])))
                for held in old:
                    begun = held.since or min(self._days(held.fact), default=None)
                    retired.append(Retirement(held=held, by=chosen.note, since=begun, until=since))
            elif new:
                kept.append(self._joined(new, old, text) if one.verb is not Verb.ADD else new[0])
            else:
                begun = min((held.since for held in old if held.since), default=None)
                anew.append(Rewording(line=self.m.line(text, begun, _evidence(old)), fact=text, held=tuple(old)))
        order = {id(p.candidate): n for n, p in enumerate(self.made.promotions)}
        kept.sort(key=lambda p: order[id(p.candidate)])
        late = retired[len(self.made.retirements) :]
        gone = self.gone | {held.number for p in kept for held in p.held} | {r.held.number for r in late}
        gone |= {held.number for one in anew for held in one.held[1:]}
        instead = {one.held[0].number: one.line for one in anew}
        page = dreamed_page(self.m, kept, gone=gone, instead=instead, fold=self.fold)
        if len(page) > self.most and not self.fold:
            page = dreamed_page(self.m, kept, gone=gone, instead=instead, fold=True)
        made = replace(self.made, promotions=tuple(kept), retirements=tuple(retired))
        return replace(made, reworded=tuple(anew), memory=page)

    def _joined(self, new: Sequence[Promotion], old: Sequence[Held], text: str) -> Promotion:
        """One line for all of them, in the place of the candidate that weighs most."""
        first, *others = sorted(new, key=lambda p: -p.candidate.score.total)
        dates = [day for day in (*(p.candidate.since for p in new), *(held.since for held in old)) if day]
        told = [*(p.candidate.figures for p in new), *_evidence(old)]
        line, also = self.m.line(text, min(dates, default=None), told), tuple(p.candidate for p in others)
        return Promotion(line=line, fact=text, candidate=first.candidate, also=also, held=tuple(old))


def _evidence(old: Sequence[Held]) -> list[Figures]:
    return [found for held in old if (found := evidence_of(held.raw))]


def narrated(entry: str, complete: Complete, *, unsafe: Unsafe, timeout: float = TIMEOUT) -> str:
    """A night in the model's own words, or "" when it has none that may stand. `entry` is what the templates say of it."""
    if unsafe(entry) is not None:
        return ""  # a line of the owner's may be quoted in it
    dashes = "-" * 40
    question = f"{_SAID['prose_task']}\n{dashes}\n{entry.strip()}\n{dashes}\n"
    answer, failure = answered(complete, question, timeout=timeout)
    parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n", answer[: 4 * PROSE].strip())]
    prose = "\n\n".join(filter(None, parts))
    fits = not failure and len(answer) <= 4 * PROSE and 20 <= len(prose) <= PROSE and prose.count("\n\n") < 4
    if not fits or any(_MARKED.match(part) or not part.isprintable() for part in prose.split("\n\n")):
        return ""
    if any(sign in prose for sign in ("<", "`", "](", "://", "[[", "_(")) or unsafe(prose) is not None:
        return ""
    return prose if set(_NUMBER.findall(prose)) <= set(_NUMBER.findall(entry)) else ""


class Verb(StrEnum):
    ADD = "add"
    MERGE = "merge"
    SUPERSEDE = "supersede"
    REWORD = "reword"


class Offer(NamedTuple):
    """A line that passed every gate, with where it stands."""

    id: str
    text: str
    source: str  # such as memory/2026-05-08.md#L7


class Prior(NamedTuple):
    """A line of memory as it stands. The owner's own are shown, and never touched."""

    text: str
    owner: bool = False


class Operation(NamedTuple):
    """One thing a model wants done. `prior` are exact lines; an empty `text` means the candidate's own words."""

    verb: Verb
    candidates: tuple[str, ...]
    prior: tuple[str, ...]
    text: str = ""


class Refusal(NamedTuple):
    """Why the operations may not stand: the rule, and a sentence."""

    rule: str
    reason: str


class Outcome(NamedTuple):
    """What the operations come to. With any refusal nothing is added or removed."""

    added: tuple[str, ...] = ()
    removed: tuple[Prior, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @property
    def accepted(self) -> bool:
        return not self.refusals


def ask(candidates: Sequence[Offer], prior: Sequence[Prior], budget: int) -> str:
    """The question: what to do, and both lists as JSON, one line each, so that no line can pose as part of the task."""
    offers = [json.dumps(one._asdict(), ensure_ascii=False) for one in candidates]
    stands = [{"line": one.text, **({"owner": True} if one.owner else {})} for one in prior]
    rows = [*offers, "PRIOR", *(json.dumps(row, ensure_ascii=False) for row in stands)]
    # Line separators other than \n are escaped, too: some readers of text take them for line ends.
    rows = [re.sub(r"[\x7f-\x9f\u2028\u2029]", lambda m: f"\\u{ord(m[0]):04x}", row) for row in rows]
    return "\n".join([_SAID["task"].format(budget=budget), "CANDIDATES", *rows]) + "\n"


# -- the answer --------------------------------------------------------------------------------------------------------

_FENCE = re.compile(r"\A```[a-zA-Z]{0,12}[ \t]*\r?\n(.*)\n[ \t]*```\Z", re.DOTALL)
_KEYS = {"do", "candidate", "candidates", "prior", "text"}


def read(answer: str) -> Iterator[Operation]:
    """The operations of an answer: one JSON object, bare or in a code fence. Raises ValueError with what is wrong."""
    _insist(isinstance(answer, str), "it is not a text")
    _insist(len(answer) <= MAX_ANSWER, f"it is longer than {MAX_ANSWER:,} characters")
    bare = answer.strip()
    if fenced := _FENCE.match(bare):
        bare = fenced[1].strip()
    try:
        value = json.loads(bare, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise ValueError("it is not one JSON object") from None
    fits = isinstance(value, dict) and set(value) == {"operations"} and isinstance(value["operations"], list)
    _insist(fits, 'it is not an object with one key, "operations", that holds a list')
    _insist(len(value["operations"]) <= MAX_OPERATIONS, f"it has more than {MAX_OPERATIONS} operations")
    for number, raw in enumerate(value["operations"], start=1):
        _insist(isinstance(raw, dict), f"operation {number} is no object")
        unknown = min(set(raw) - _KEYS, default="")
        _insist(set(raw) <= _KEYS, f"operation {number} has an unknown key {printable(unknown, 40)!r}")
        _insist(raw.get("do") in list(Verb), f"operation {number} does none of {', '.join(Verb)}")
        is_one = not {"candidate", "candidates"} <= set(raw)
        _insist(is_one, f'operation {number} has both "candidate" and "candidates"')
        names = [raw["candidate"]] if "candidate" in raw else raw.get("candidates", [])
        prior, text = raw.get("prior", []), raw.get("text", "")
        _insist(isinstance(text, str), f"the text of operation {number} is no text")
        for key, texts in (("candidates", names), ("prior", prior)):
            fits = isinstance(texts, list) and all(isinstance(each, str) for each in texts)
            _insist(fits, f'"{key}" of operation {number} is no list of texts')
        yield Operation(verb=Verb(raw["do"]), candidates=tuple(names), prior=tuple(prior), text=text.strip())


def _insist(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is given twice")
    return dict(pairs)


# -- judging -----------------------------------------------------------------------------------------------------------


def validate(
    operations: Sequence[Operation],
    *,
    candidates: Sequence[Offer],
    prior: Sequence[Prior],
    budget: int,
    unsafe: Unsafe,
    updates: Updates = lambda new, old: True,
) -> Outcome:
    """What the operations come to, or every reason why they may not stand. `budget` is in characters, for all resulting
    lines with their ends; `unsafe` says why a line may not be added; `updates` must agree that a candidate makes a line
    untrue, beside our own rule. Added lines are bare words, without a list's sign, scores or dates; lines that stay are
    exact."""
    known = {one.id: one for one in candidates}
    left: dict[str, list[Prior]] = {}  # each line as often as it stands, the owner's first
    for line in sorted(prior, key=lambda line: not line.owner):
        left.setdefault(line.text, []).append(line)
    shown = [*(one.text for one in operations), *(one.text for one in candidates), *(one.text for one in prior)]
    facts = _Facts([*shown, *map(_bare, shown)])
    refusals, added, removed = list[Refusal](), list[str](), list[Prior]()
    for one in operations:
        found = [*_malformed(one, known, left)]
        if not found:
            new = [known[name].text for name in one.candidates]
            # Without words of its own a merge keeps the fullest line.
            own = new if one.verb is Verb.SUPERSEDE else [*new, *one.prior]
            added.append(_bare(one.text or facts.fullest(own)))
            judged = _judged(one, added[-1], new, facts, unsafe=unsafe, updates=updates)
            found = [*_taken(one, left, removed), *judged]
        refusals += found
    used = Counter(name for one in operations for name in one.candidates)
    if twice := [name for name, count in used.items() if count > 1 and name in known]:
        refusals.append(Refusal("candidate", f"candidate {twice[0]!r} is used more than once"))
    if unused := [name for name in known if name not in used]:
        refusals.append(Refusal("candidate", f"{len(unused)} of {len(known)} candidates are left out: {unused[0]!r}"))
    refusals += _result(prior, added, removed, budget, facts)
    return Outcome(refusals=tuple(refusals)) if refusals else Outcome(tuple(added), tuple(removed))


Found = Iterator[Refusal]
_ARITY = {  # how many candidates, how many prior lines
    Verb.ADD: ((1, 1), (0, 0)),
    Verb.REWORD: ((0, 1), (0, 1)),
    Verb.MERGE: ((0, 50), (0, 50)),
    Verb.SUPERSEDE: ((1, 1), (1, 50)),
}


def _malformed(one: Operation, known: Mapping[str, Offer], standing: Mapping[str, object]) -> Found:
    (least, most), (few, many) = _ARITY[one.verb]
    if not one.candidates and not one.prior:
        yield Refusal("source", f"a line of {one.verb} comes from nowhere")
    elif not (least <= len(one.candidates) <= most and few <= len(one.prior) <= many):
        took = f"{len(one.candidates)} candidates and {len(one.prior)} prior lines"
        yield Refusal("shape", f"{one.verb} does not take {took}")
    elif one.verb is Verb.MERGE and len(one.candidates) + len(one.prior) < 2:
        yield Refusal("shape", "a merge takes at least two lines")
    elif one.verb is Verb.REWORD and (len(one.candidates) + len(one.prior) > 1 or not one.text):
        yield Refusal("shape", "a reword takes one line and gives its new text")
    elif one.verb is Verb.ADD and one.text:
        yield Refusal("shape", "an add keeps the candidate's own words")
    for name in one.candidates:
        if name not in known:
            yield Refusal("candidate", f"there is no candidate {printable(name, 40)!r}")
        elif not known[name].source.strip():
            yield Refusal("source", f"candidate {printable(name, 40)!r} has no source")
    for text in one.prior:
        if text not in standing:
            yield Refusal("prior", f"memory has no line {printable(text, 60)!r}")


def _taken(one: Operation, left: Mapping[str, list[Prior]], removed: list[Prior]) -> Found:
    """Takes the prior lines away, each as often as it stands."""
    for text in one.prior:
        if not left[text]:
            yield Refusal("prior", f"a line of memory is removed twice: {printable(text, 60)!r}")
            continue
        removed.append(left[text].pop())
        if removed[-1].owner:
            yield Refusal("owner", f"the owner's own line would be touched: {printable(text, 60)!r}")


def _judged(one: Operation, text: str, new: Sequence[str], facts: _Facts, *, unsafe: Unsafe, updates: Updates) -> Found:
    told, sources = printable(text, 60), [*new, *one.prior]
    if not text or len(text) > MAX_LINE or not text.isprintable() or text.startswith("#") or "<!--" in text:
        yield Refusal("shape", f"this is no single line of at most {MAX_LINE} characters: {told!r}")
        return
    if one.verb is Verb.SUPERSEDE:
        untouched = (old for old in one.prior if not (facts.replaces(new[0], old) and updates(new[0], old)))
        if (old := next(untouched, None)) is not None:
            yield Refusal("unrelated", f"{told!r} does not make {printable(old, 60)!r} untrue")
        sources = [*new]
    if one.verb is Verb.MERGE and (pair := facts.differing(sources)):
        one_fact, other = (printable(line, 60) for line in pair)
        yield Refusal("merge", f"different facts would become one: {one_fact!r} and {other!r}")
    elif why := facts.unfaithful(text, sources):
        yield Refusal("source", f"{told!r} {why}")
    if reason := unsafe(text):
        yield Refusal("unsafe", f"{reason}: a line like that never enters memory")


def _result(prior: Sequence[Prior], added: Sequence[str], gone: Sequence[Prior], budget: int, facts: _Facts) -> Found:
    removed = {id(line) for line in gone}
    lines = [*(line.text for line in prior if id(line) not in removed), *added]
    if len(gone) > MAX_LOST * len(prior):
        share = 100 * len(gone) / max(1, len(prior))
        yield Refusal("lost", f"{share:.0f} % of the lines of memory would go, and 25 % is the most")
    size = sum(len(line) + 1 for line in lines)
    if size > budget:
        yield Refusal("budget", f"the lines would have {size:,} characters of {budget:,}")
    counts, before = Counter(map(facts.words, lines)), Counter(facts.words(line.text) for line in prior)
    twice = (line for line in added if counts[facts.words(line)] > max(1, before[facts.words(line)]))
    if repeated := next(twice, None):
        yield Refusal("duplicate", f"memory would say twice: {printable(repeated, 60)!r}")


class _Facts:
    """Lines as they are compared, read together: a capital makes a name only where no line has the word without one."""

    def __init__(self, lines: Iterable[str]) -> None:
        texts = list(dict.fromkeys(lines))
        found = read_lines([ToldLine(path="", number=0, text=_bare(text)) for text in texts])
        self._read = dict(zip(texts, found, strict=True))

    def words(self, line: str) -> tuple[str, ...]:
        return self._read[line].plain

    def fullest(self, lines: Sequence[str]) -> str:
        return max(lines, key=lambda line: (len(self._read[line].bag), len(line)))

    def differing(self, lines: Sequence[str]) -> tuple[str, str] | None:
        """The first line that states another fact than the fullest one: each must be that one with words left out."""
        fullest = self.fullest(lines)
        whole = self._read[fullest]
        for line in lines:
            mine = self._read[line]
            if _figures(mine) != _figures(whole) or mine.names != whole.names or mine.bag - whole.bag:
                return line, fullest
        return None

    def replaces(self, new: str, old: str) -> bool:
        """Whether two lines may tell the same thing of the same: each one's first word is in the other, and one more. Where
        one may have several (allergies, dogs, languages), a second makes nothing untrue, nor does what says the same."""
        mine, theirs, told = self._read[new], self._read[old], sentence(_bare(new))
        firsts = {
            next((root for word in one.words if (root := canonical(word)) in one.bag), "") for one in (mine, theirs)
        }
        stays = told.adds or relation(sentence(_bare(old)), told) in (Relation.ADDS, Relation.SAME)
        shared = mine.bag & theirs.bag
        return not stays and len(shared) > 1 and firsts <= shared

    def unfaithful(self, text: str, sources: Sequence[str]) -> str:
        """What a text says that its sources do not, or leaves out of them; empty when it is true to them."""
        told = [self._read[source] for source in sources]
        mine, fullest = self._read[text], max(told, key=lambda one: len(one.bag))
        said = frozenset[str]().union(*(one.bag | one.names for one in told))
        if invented := (mine.bag | mine.names) - said:
            return f"says {printable(min(invented), 30)!r}, which no source says"
        if _figures(mine)[:2] != _figures(fullest)[:2]:
            return "has other numbers than its source"
        if mine.denied != fullest.denied:
            return "denies what its source says, or the other way about"
        if lost := fullest.names - mine.names:
            return f"leaves out {printable(min(lost), 30)!r}"
        missing = fullest.bag - mine.bag
        too_much = len(missing) > 0.2 * len(fullest.bag) or missing & LIMITS
        return "leaves out too much of its source" if too_much else ""


def _figures(one: Read) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    return one.numbers, one.dates, one.denied


def _bare(text: str) -> str:
    """A line without its sign and its tail of dates or scores: what it states."""
    return without_tail(bullet_text(text), loose=True)


Check = Callable[[tuple[Operation, ...]], Outcome]


def consulted(complete: Complete, asked: str, *, check: Check, timeout: float = TIMEOUT, tokens: int = 32_000) -> str:
    """Why no answer of the model's can stand; "" when one passed the check. Asks once more, with the reasons, when one
    may not, and never waits longer than told. `tokens` counts questions and answers together, at four characters each.
    A model that does not answer in time is left to itself in a thread that ends with the process; what it says later is
    not heard."""
    spent, most, told, prompt = 0, 4 * tokens, "", asked
    for _ in range(ATTEMPTS):
        if spent + len(prompt) > most:
            why = "there was more to ask than the budget for tokens allows"
            return f"the model's answer could not stand ({told}), and {why}" if told else why
        answer, failure = answered(complete, prompt, timeout=timeout)
        spent += len(prompt) + len(answer)
        if failure:
            return failure
        if spent > most:
            return "the model answered with more than the budget for tokens allows"
        try:
            operations = tuple(read(answer))
        except ValueError as error:
            reasons, told = str(error), "it was not one JSON object of operations"
        else:
            outcome = check(operations)
            if outcome.accepted:
                return ""
            more = f", and {len(outcome.refusals) - 3} more" if len(outcome.refusals) > 3 else ""
            reasons = "; ".join(f"{one.rule}: {one.reason}" for one in outcome.refusals[:3]) + more
            rules = dict.fromkeys(one.rule for one in outcome.refusals)
            told = "; ".join(_REFUSED.get(rule, rule) for rule in [*rules][:3])
        shown = json.dumps(answer[:4_000], ensure_ascii=False)
        prompt = f"{asked}\nYour last answer was {shown}\nIt cannot be used: {reasons}\n"
        prompt += "Give the whole JSON object again.\n"
    return f"the model's answer could not stand ({told})"


def answered(complete: Complete, prompt: str, *, timeout: float) -> tuple[str, str]:
    """What the model says, or why it says nothing. Never waits longer than told."""
    heard: list[str] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            heard.append(complete(prompt))
        except BaseException as error:  # a host's function may raise anything, and none of it may end the night
            failed.append(error)

    thread = threading.Thread(target=run, name="anima-model", daemon=True)
    thread.start()
    thread.join(timeout)
    if failed:
        # The kind of an error and never its words, which may hold an address with a key in it.
        error = failed[0]
        status = getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)
        if status == 429 or re.search(r"\b429\b", str(error)):
            return "", "the model is asked too often just now (429)"
        return "", f"the model could not be asked ({type(error).__name__})"
    if not heard:
        return "", f"the model did not answer within {timeout:g} seconds"
    return (heard[0], "") if isinstance(heard[0], str) else ("", "the model gave something that is no text")
