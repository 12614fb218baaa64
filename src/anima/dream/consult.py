"""Asking a model about a sweep: it proposes operations on lines, and code decides whether any of it may stand.

Promise: the model sees candidates and prior lines as data and gives operations back. The deterministic plan stands unless
every operation passes; then its promotions, retirements and page follow the operations, with the evidence and the sources
of all lines that went in. The owner's lines, and what the plan itself retires or moves, are never a model's to touch.
Nothing a model does (silence, nonsense, deleting everything, raising) changes memory, and nothing is locked or written
here. Not here: what an operation may do (operations), the deterministic plan (plan), writing (sweep).
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any

from anima.dream.diary import dreamed_page, fact_of, without
from anima.dream.material import Figures, Held, Material, Promotion, Retirement, Rewording, SweepPlan
from anima.dream.operations import Offer, Operation, Outcome, Prior, Refusal, Unsafe, Verb, validate
from anima.dream.plan import ROOM, key_of
from anima.errors import BadText, printable
from anima.model import Complete
from anima.text import read_table
from anima.text.changes import Relation, relation
from anima.text.markdown import evidence_of
from anima.text.notes import sentence

TIMEOUT = 60.0  # seconds for one answer
TOKENS = 32_000  # for questions and answers together
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Consultation:
    """What came of asking. `said` is for the diary; `heard` is whether the model gave an answer that could stand."""

    plan: SweepPlan
    said: str
    heard: bool = False


def consult(
    made: SweepPlan,
    material: Material,
    complete: Complete,
    *,
    unsafe: Unsafe,
    shown: Callable[[Held], bool],
    timeout: float = TIMEOUT,
    tokens: int = TOKENS,
) -> Consultation:
    """The plan as a model would have it, or the plan as it was. `shown` says which lines of memory a model may see."""
    if not made.promotions:
        return Consultation(plan=made, said=NOTHING_TO_ASK)
    night = _Night(made, material, unsafe=unsafe, shown=shown)
    question = ask(night.candidates, night.prior, night.budget)
    outcome, why_not = consulted(complete, question, check=night.check, timeout=timeout, tokens=tokens)
    if outcome is None or night.plan is None:
        return Consultation(plan=made, said=why_not)
    return Consultation(plan=night.plan, said=_helped(night.plan, made), heard=True)


def _helped(plan: SweepPlan, made: SweepPlan) -> str:
    own = {p.line for p in made.promotions}
    counts = (
        (sum(p.line not in own and not p.also and not p.held for p in plan.promotions), "put into other words"),
        (sum(bool(p.also or p.held) for p in plan.promotions), "merged"),
        (len(plan.reworded), "of memory's own said anew"),
        (len(plan.retirements) - len(made.retirements), "let go"),
    )
    told = ", ".join(f"{count} {what}" for count, what in counts if count)
    return f"A model helped: {told}." if told else "A model was asked and left every line as it was."


# -- operations on a plan -----------------------------------------------------------------------------------------------


class _Night:
    """One plan while a model's operations are tried on it. `plan` is what the accepted ones come to."""

    def __init__(self, made: SweepPlan, material: Material, *, unsafe: Unsafe, shown: Callable[[Held], bool]) -> None:
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
            return Outcome(lines=tuple(line.text for line in self.prior), refusals=(late,))
        self.plan = plan
        return outcome

    def _unsafe(self, text: str) -> str | None:
        return "it is no plain line" if "```" in text or "~~~" in text or "_(" in text else self.unsafe(text)

    def _updates(self, new: str, old: str) -> bool:
        """Whether a candidate may make a line untrue: it was said later, and is not a second one beside the first."""
        fact, since = fact_of(old)
        held = next((h for h in self.held if h.raw == old), None)
        told = max(self._days(held.fact if held else fact), default=since or (held and held.night) or date.min)
        said = max(self._days(new), default=date.min)
        beside = relation(sentence(fact), sentence(new)) in (Relation.ADDS, Relation.SAME)
        return said > told and not beside

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
                anew.append(Rewording(line=self.m.line(text, begun, _figures(old)), fact=text, held=tuple(old)))
        return self._made(kept, retired, anew)

    def _made(self, kept: list[Promotion], retired: list[Retirement], anew: list[Rewording]) -> SweepPlan:
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
        told = [*(p.candidate.figures for p in new), *_figures(old)]
        return Promotion(
            line=self.m.line(text, min(dates, default=None), told),
            fact=text,
            candidate=first.candidate,
            also=tuple(p.candidate for p in others),
            held=tuple(old),
        )


def _figures(old: Sequence[Held]) -> list[Figures]:
    return [found for held in old if (found := evidence_of(held.raw))]


# -- the diary ------------------------------------------------------------------------------------------------------------


def narrated(entry: str, complete: Complete, *, unsafe: Unsafe, timeout: float = TIMEOUT) -> str:
    """A night in the model's own words, or "" when it has none that may stand. `entry` is what the templates say of it."""
    if unsafe(entry) is not None:
        return ""  # a line of the owner's may be quoted in it
    dashes = "-" * 40
    answer, failure = answered(
        complete, f"{_SAID['prose_task']}\n{dashes}\n{entry.strip()}\n{dashes}\n", timeout=timeout
    )
    parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n", answer[: 4 * PROSE].strip())]
    prose = "\n\n".join(filter(None, parts))
    fits = not failure and len(answer) <= 4 * PROSE and 20 <= len(prose) <= PROSE and prose.count("\n\n") < 4
    if not fits or any(_MARKED.match(part) or not part.isprintable() for part in prose.split("\n\n")):
        return ""
    if any(sign in prose for sign in ("<", "`", "](", "://", "[[", "_(")) or unsafe(prose) is not None:
        return ""
    return prose if set(_NUMBER.findall(prose)) <= set(_NUMBER.findall(entry)) else ""


# -- the question ------------------------------------------------------------------------------------------------------


def ask(candidates: Sequence[Offer], prior: Sequence[Prior], budget: int) -> str:
    """The question: what to do, and both lists as JSON, one line each, so that no line can pose as part of the task."""
    offers = [json.dumps(asdict(one), ensure_ascii=False) for one in candidates]
    stands = [{"line": one.text, **({"owner": True} if one.owner else {})} for one in prior]
    rows = [*offers, "PRIOR", *(json.dumps(row, ensure_ascii=False) for row in stands)]
    # Line separators other than \n are escaped, too: some readers of text take them for line ends.
    rows = [re.sub(r"[\x7f-\x9f\u2028\u2029]", lambda m: f"\\u{ord(m[0]):04x}", row) for row in rows]
    return "\n".join([_SAID["task"].format(budget=budget), "CANDIDATES", *rows]) + "\n"


# -- the answer --------------------------------------------------------------------------------------------------------

_FENCE = re.compile(r"\A```[a-zA-Z]{0,12}[ \t]*\r?\n(.*)\n[ \t]*```\Z", re.DOTALL)
_KEYS = {"do", "candidate", "candidates", "prior", "text"}


def read(answer: str) -> tuple[Operation, ...]:
    """The operations of an answer: one JSON object, bare or in a code fence. Raises BadText with what is wrong."""
    try:
        return tuple(_operations(answer))
    except ValueError as error:
        raise BadText("the model's answer", str(error)) from None


def _operations(answer: str) -> Iterator[Operation]:
    if not isinstance(answer, str):
        raise ValueError("it is not a text")
    if len(answer) > MAX_ANSWER:
        raise ValueError(f"it is longer than {MAX_ANSWER:,} characters")
    bare = answer.strip()
    if fenced := _FENCE.match(bare):
        bare = fenced[1].strip()
    try:
        value = json.loads(bare, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise ValueError("it is not one JSON object") from None
    if not isinstance(value, dict) or set(value) != {"operations"} or not isinstance(value["operations"], list):
        raise ValueError('it is not an object with one key, "operations", that holds a list')
    if len(value["operations"]) > MAX_OPERATIONS:
        raise ValueError(f"it has more than {MAX_OPERATIONS} operations")
    for number, raw in enumerate(value["operations"], start=1):
        if not isinstance(raw, dict):
            raise ValueError(f"operation {number} is no object")
        if unknown := set(raw) - _KEYS:
            raise ValueError(f"operation {number} has an unknown key {printable(min(unknown), 40)!r}")
        if raw.get("do") not in list(Verb):
            raise ValueError(f"operation {number} does none of {', '.join(Verb)}")
        if "candidate" in raw and "candidates" in raw:
            raise ValueError(f'operation {number} has both "candidate" and "candidates"')
        names, prior, text = raw.get("candidates", [raw.get("candidate")]), raw.get("prior", []), raw.get("text", "")
        names = names if "candidates" in raw or "candidate" in raw else []
        if not isinstance(text, str):
            raise ValueError(f"the text of operation {number} is no text")
        for key, texts in (("candidates", names), ("prior", prior)):
            if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
                raise ValueError(f'"{key}" of operation {number} is no list of texts')
        yield Operation(verb=Verb(raw["do"]), candidates=tuple(names), prior=tuple(prior), text=text.strip())


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is given twice")
    return dict(pairs)


# -- asking ------------------------------------------------------------------------------------------------------------

Check = Callable[[tuple[Operation, ...]], Outcome]


def consulted(
    complete: Complete, question: str, *, check: Check, timeout: float = TIMEOUT, tokens: int = TOKENS
) -> tuple[Outcome | None, str]:
    """What a model's operations come to, or why the sweep's own plan is used. Asks once more, with the reasons, when an
    answer may not stand, and never waits longer than told.

    `tokens` counts questions and answers together, at four characters each. A model that does not answer in time is left
    to itself in a thread that ends with the process; what it says later is not heard.
    """
    spent, told, prompt = 0, "", question
    for _ in range(ATTEMPTS):
        if spent + _tokens(prompt) > tokens:
            why = "there was more to ask than the budget for tokens allows"
            return _alone(f"the model's answer could not stand ({told}), and {why}" if told else why)
        answer, failure = answered(complete, prompt, timeout=timeout)
        spent += _tokens(prompt) + _tokens(answer)
        if failure:
            return _alone(failure)
        if spent > tokens:
            return _alone("the model answered with more than the budget for tokens allows")
        try:
            outcome = check(read(answer))
            if outcome.accepted:
                return outcome, ""
            more = f", and {len(outcome.refusals) - 3} more" if len(outcome.refusals) > 3 else ""
            reasons = "; ".join(f"{one.rule}: {one.reason}" for one in outcome.refusals[:3]) + more
            rules = dict.fromkeys(one.rule for one in outcome.refusals)
            told = "; ".join(_REFUSED.get(rule, rule) for rule in [*rules][:3])
        except BadText as error:
            reasons, told = error.why, "it was not one JSON object of operations"
        shown = json.dumps(answer[:4_000], ensure_ascii=False)
        prompt = f"{question}\nYour last answer was {shown}\nIt cannot be used: {reasons}\n"
        prompt += "Give the whole JSON object again.\n"
    return _alone(f"the model's answer could not stand ({told})")


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


def _alone(why: str) -> tuple[None, str]:
    return None, f"{why[:1].upper()}{why[1:]}, so the night's own plan was used."


def _tokens(text: str) -> int:
    return -(-len(text) // 4)
