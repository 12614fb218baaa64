"""Advice: which of the owner's rules never speak, and which rule would spare the next question.

Promise: what `unreachable` says is true, though it does not find every such rule. A suggested rule is the narrowest,
and there is none for identity files, secrets and dangers. Not here: writing `anima.toml`, which only the owner does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from anima.config import Rule
from anima.errors import printable
from anima.gate.conditions import CLEAN, CONDITIONS
from anima.gate.facts import file_policy, is_danger, is_secret, untrusted
from anima.gate.globs import Glob, covers, read_glob
from anima.gate.rules import GatePolicy, ReadyRule
from anima.layout.dialects import DIALECTS
from anima.layout.table import Policy, Row
from anima.model import UNTRUSTED, Actor, Answer, Change, DocPath, Finding, Verdict, digest_of, fold

_OPENING = ("path", "scope", "taint", "flow", "size", "rate", "findings")  # by these an `allow` gets its reach


def unreachable(policy: GatePolicy) -> tuple[str, ...]:
    """A sentence for each rule that can never match, or is shadowed by an earlier one."""
    notes = (_note(ready, policy.ready[:at], policy) for at, ready in enumerate(policy.ready))
    return tuple(note for note in notes if note)


def _note(ready: ReadyRule, earlier: Sequence[ReadyRule], policy: GatePolicy) -> str | None:
    if why := _never(ready, policy):
        return f"{ready.shown} can never match: {why}"
    shadows = [(one, whole) for one in earlier if (whole := _shadows(one, ready)) is not None]
    if not shadows:
        return None
    first, whole = next((pair for pair in shadows if pair[1]), shadows[0])
    rest = "" if whole else ", except for what an allow must name to open it"
    return f"{ready.shown} is shadowed by {printable(first.rule.id, 60)!r}, which speaks first{rest}"


def _never(ready: ReadyRule, policy: GatePolicy) -> str | None:
    """Why a rule can never match."""
    if any(names == {Actor.OWNER} for names in ready.named("actor")):
        return "no rule holds the owner's own hand"
    if any(names.isdisjoint(policy.flows) for names in ready.named("flow")):
        return "the flow rule it waits for is switched off"
    if any(wanted.low > wanted.high for wanted in ready.named("size")):
        return "no text has such a size"
    if any(wanted.low > wanted.high or wanted.high < 1 for wanted in ready.named("rate")):
        return "the write itself counts, so the rate is at least 1"
    if any(names == {CLEAN} for names in ready.named("taint")) and any(o <= UNTRUSTED for o in ready.named("origin")):
        return "text of such an origin is never untainted"
    closed = _closed(policy.dialect)
    if any(all(_is_unwritable(glob, closed) for glob in globs) for globs in ready.named("path")):
        return "no verb writes such a file"
    return None


def _closed(dialect: str) -> list[Glob]:
    layout = DIALECTS.get(dialect)
    rows = (*layout.rows, *layout.others) if layout else ()
    return [read_glob(row.path) for row in rows if row.policy is Policy.CLOSED and row.path]


def _is_unwritable(glob: Glob, closed: Sequence[Glob]) -> bool:
    """Whether all that a glob covers is closed, or is no Markdown."""
    tail = re.split(r"[*?]", glob[-1])[-1]
    if not (tail.endswith(".md") or ".md".endswith(tail)):
        return True
    return any(covers(folder, glob) for folder in closed)


def _shadows(earlier: ReadyRule, later: ReadyRule) -> bool | None:
    """None: it does not. True: wherever the later rule would speak. False: but for what only the later one opens."""
    for name, outer in earlier.when:
        if not any(CONDITIONS[name].within(inner, outer) for inner in later.named(name)):
            return None
    is_alike = later.then is Answer.ALLOW and all(earlier.named(name) == later.named(name) for name in _OPENING)
    return earlier.then is not Answer.ALLOW or is_alike


def suggest_rule(
    change: Change, verdict: Verdict, *, row: Row, findings: Sequence[Finding], to_row: Row | None = None
) -> Rule | None:
    """The narrowest rule that would allow such a change next time, put before all others; None where none should.

    None for identity files, for secrets and dangers, for what was not asked, and where no scope is known.
    """
    ends = [(change.path, row)] + ([(change.to, to_row)] if change.to and to_row else [])
    is_identity = any(file_policy(path, known) is Policy.IDENTITY for path, known in ends)
    is_dangerous = any(is_danger(finding) or is_secret(finding) for finding in findings)
    is_scopeless = change.scope is None and change.actor not in (Actor.DREAMER, Actor.IMPORTER)
    if verdict.answer is not Answer.ASK or is_identity or is_dangerous or is_scopeless:
        return None
    return _allowing(change, [path for path, _ in ends])


def _allowing(change: Change, paths: Sequence[DocPath]) -> Rule:
    taint = tuple(sorted(map(str, untrusted(change))))
    # From an untrusted session only the very file is opened that the owner looked at, not its folder.
    globs = [path.text if taint or not path.parent else f"{path.parent}/*.md" for path in paths]
    when: dict[str, Any] = {
        "actor": str(Actor.AGENT if change.actor is Actor.OWNER else change.actor),
        "kind": str(change.kind),
        "path": tuple(dict.fromkeys(globs)),
        "taint": taint or False,
    }
    when |= {"scope": str(change.scope)} if change.scope else {}
    conditions = tuple(sorted(when.items()))
    return Rule(
        id=_rule_id(conditions, globs), when=conditions, then="allow", reason="the owner allows this kind of change"
    )


def _rule_id(conditions: tuple[tuple[str, Any], ...], globs: Sequence[str]) -> str:
    """A name to read, with a mark that tells it from every other rule."""
    words = re.sub(r"[^a-z0-9]+", "-", fold(globs[0]).removesuffix("*.md")).strip("-")[:40].rstrip("-")
    return "-".join(filter(None, ["allow", words, digest_of(repr(conditions))[:8]]))
