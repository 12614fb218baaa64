"""Conditions of the owner's rules: how each is read, when it holds, and when one lies within another.

Promise: a value that makes no sense is a ValueError with a sentence; a value that was read never raises again.
Not here: what a rule with conditions may open (rules).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from anima.gate.facts import Facts
from anima.gate.flows import FLOWS
from anima.gate.globs import Glob, covers, read_glob, wild
from anima.gate.sentences import no_such
from anima.model import UNTRUSTED, Actor, Finding, Kind, Origin, Scope, Severity, fold

CLEAN = "clean"  # stands for no taint at all, which an owner writes as false
MOST = 10**12


class Condition(NamedTuple):
    read: Callable[[Any], Any]
    holds: Callable[[Any, Facts], bool]
    within: Callable[[Any, Any], bool]  # whatever meets the first meets the second


class Range(NamedTuple):
    """Numbers from `low` to `high`, both counted."""

    low: int
    high: int


Entry = Severity | str  # a least severity, or a glob over kinds of findings


def sees(entry: Entry, finding: Finding) -> bool:
    return finding.severity >= entry if isinstance(entry, Severity) else wild(entry, fold(finding.kind))


def _texts(raw: Any) -> tuple[str, ...]:
    texts = (raw,) if isinstance(raw, str) else raw
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) and text for text in texts):
        raise ValueError(f"this must be a text or a list of texts, not {repr(raw)[:60]}")
    if not texts:
        raise ValueError("an empty list is never met; name something, or leave the condition out")
    return tuple(texts)


def _name(known: Sequence[str], text: str) -> str:
    if (name := fold(text)) in known:
        return name
    raise ValueError(no_such("value", text, known))


def _any_of(known: Sequence[str], seen: Callable[[Facts], frozenset[str]]) -> Condition:
    return Condition(
        lambda raw: frozenset(_name(known, text) for text in _texts(raw)),
        lambda names, facts: not names.isdisjoint(seen(facts)),
        frozenset.issubset,
    )


def _read_taint(raw: Any) -> frozenset[str]:
    if isinstance(raw, bool):
        return frozenset(UNTRUSTED) if raw else frozenset({CLEAN})
    return frozenset(_name(sorted(UNTRUSTED), text) for text in _texts(raw))


def _read_paths(raw: Any) -> tuple[Glob, ...]:
    return tuple(read_glob(text) for text in _texts(raw))


def _read_findings(raw: Any) -> tuple[Entry, ...]:
    severities = {severity.name.lower(): severity for severity in Severity}
    return tuple(severities.get(fold(text), fold(text)) for text in _texts(raw))


def _entry_within(inner: Entry, outer: Entry) -> bool:
    if outer in (Severity.NOTE, "*"):  # any finding at all
        return True
    if isinstance(inner, Severity) or isinstance(outer, Severity):
        return isinstance(inner, Severity) and isinstance(outer, Severity) and inner >= outer
    return wild(outer, inner)


_COMPARISON = re.compile(r" *(<=|>=|==|<|>|=) *([0-9]{1,12}) *")


def _read_range(raw: Any) -> Range:
    if not isinstance(raw, str) or not (found := _COMPARISON.fullmatch(raw)):
        raise ValueError(f'this must be a comparison such as ">10000" or "<=200", not {repr(raw)[:60]}')
    sign, number = found[1], int(found[2])
    low = {">": number + 1, ">=": number, "=": number, "==": number}.get(sign, 0)
    return Range(low, {"<": number - 1, "<=": number, "=": number, "==": number}.get(sign, MOST))


def _compared(number: Callable[[Facts], int]) -> Condition:
    return Condition(
        _read_range,
        lambda wanted, facts: wanted.low <= min(max(number(facts), 0), MOST) <= wanted.high,
        lambda inner, outer: outer.low <= inner.low and inner.high <= outer.high,
    )


def _each_within(within: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda inner, outer: all(any(within(one, other) for other in outer) for one in inner)


CONDITIONS: dict[str, Condition] = {
    "actor": _any_of(tuple(Actor), lambda facts: frozenset({facts.actor})),
    "path": Condition(
        _read_paths,
        lambda globs, facts: any(covers(glob, facts.key.split("/")) for glob in globs),
        _each_within(lambda inner, outer: covers(outer, inner)),
    ),
    "kind": _any_of(tuple(Kind), lambda facts: frozenset({facts.change.kind})),
    "scope": _any_of(tuple(Scope), lambda facts: frozenset({facts.change.scope or ""})),
    "taint": Condition(
        _read_taint,
        lambda names, facts: not names.isdisjoint(facts.taint or {CLEAN}),
        frozenset.issubset,
    ),
    "origin": _any_of(tuple(Origin), lambda facts: frozenset({facts.change.origin})),
    "findings": Condition(
        _read_findings,
        lambda entries, facts: any(sees(entry, finding) for finding in facts.findings for entry in entries),
        _each_within(_entry_within),
    ),
    "size": _compared(lambda facts: facts.size),
    "rate": _compared(lambda facts: facts.situation.recent + 1),
    "flow": _any_of(tuple(FLOWS), lambda facts: frozenset(facts.flows)),
}
