"""Advice: the rule that would spare the next question.

Promise: a suggested rule is the narrowest, and there is none for identity files, secrets and dangers.
Not here: writing `anima.toml`, which only the owner does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from anima.config import Rule
from anima.gate.facts import file_policy, is_danger, is_secret, untrusted
from anima.layout.table import Policy, Row
from anima.model import Actor, Answer, Change, DocPath, Finding, Verdict, digest_of, fold


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
