"""Write gate: whether a change may happen, must be asked, or is refused, and which rule says so.

Promise: `judge` is pure and total, the first rule that speaks wins, and every answer names its rule with a sentence.
Before everything stand denials that no rule opens; then the owner's rules; then the built-in ones of the preset. An
`allow` of the owner's opens only what it names, an `ask` never softens a denial, and neither holds the owner's hand. A
change that is worse in any way never gets a milder answer for it, because those rules that deny are asked before those that
ask. A file that is no document comes in only by the owner's import, and only where no machinery of the home's stands. A
suggested rule is the narrowest, and there is none for identity files, secrets and dangers.
Not here: the owner's rules and the sentences (rules), scanning (scan), what each file is (layout), keeping proposals
(memory), counting writes (sessions), that nothing is overwritten (store).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from anima.config import Rule
from anima.errors import BadArguments, printable
from anima.gate.rules import (
    APPROVAL_PLACES,
    FLOWS,
    RATE_LIMIT,
    SIZE_LIMIT,
    Facts,
    FlowEvent,
    GatePolicy,
    Situation,
    by_owners_rules,
    file_policy,
    is_danger,
    is_secret,
    listed,
    no_such,
    said,
    untrusted,
)
from anima.layout import Policy, Row, folder_of, is_groups
from anima.model import Actor, Answer, Change, DocPath, Finding, Kind, Origin, Scope, Verdict, digest_of, fold

_IRONCLAW_PROTECTED = frozenset({"soul.md", "identity.md", "user.md", "agents.md"})

# Which rule asks about which danger; one that stands in neither list is asked about as "danger".
_HIDDEN = (
    "tag-characters bidi variation-selectors zero-width control invisible html-comment markdown-comment hidden-html "
    "base64 hex escapes unread"
)
_DANGERS = dict.fromkeys(_HIDDEN.split(), "hidden-text") | {
    "special-token": "special-token",
    "frame-marker": "frame-marker",
    "forgotten": "forgotten",
}
_NOT_UNSEEN = ("unreviewed", "instruction")  # no dangers, but not kept before the owner looked
_DANGEROUS = ("hidden-text", "special-token", "frame-marker", "danger", "forgotten")


def judge(
    change: Change,
    *,
    row: Row,
    policy: GatePolicy,
    findings: Sequence[Finding],
    situation: Situation,
    to_row: Row | None = None,
) -> Verdict:
    """Whether a change may happen. A move is judged at both its ends and gets the stricter answer."""
    first = _judge_place(Facts(change, change.path, row, findings, situation, policy.flows), policy)
    if change.kind is not Kind.MOVE:
        return first
    if change.to is None or to_row is None:
        return said(Answer.DENY, "no-target")
    second = _judge_place(Facts(change, change.to, to_row, findings, situation, policy.flows), policy)
    return max(first, second, key=lambda verdict: verdict.answer.strictness)


def judge_file(path: DocPath, row: Row, actor: Actor) -> Verdict:
    """Whether a file that is no document may come into the home."""
    theirs = row.role == "agent-state"  # AgentScope's folder of other agents: closed to tools, and no document of ours
    if actor is not Actor.IMPORTER or (path.is_markdown and not theirs):
        return Verdict(answer=Answer.DENY, rule="not-markdown", reason="only .md files are written, and as documents")
    if row.policy is Policy.CLOSED and not theirs:
        return Verdict(answer=Answer.DENY, rule="closed", reason="it belongs to the home's own machinery")
    return Verdict(answer=Answer.ALLOW, rule="import", reason="the owner imports a file that is no document")


def flows_after(active: frozenset[str], event: FlowEvent, policy: GatePolicy) -> frozenset[str]:
    """The active flow rules of a session after it took something in. None is ever taken away here."""
    return active | {name for name in policy.flows if FLOWS[name].becomes_active(event)}


def may(action: str, active: frozenset[str], policy: GatePolicy) -> Verdict:
    """Whether a session may do a kind of thing now. Raises BadArguments for an action no flow rule is about."""
    actions = sorted({flow.action for flow in FLOWS.values()})
    if action not in actions:
        raise BadArguments(no_such("action", str(action), actions))
    for name, answer in policy.flows.items():
        if name in active and FLOWS[name].action == action:
            return said(answer, name, taint="")
    if action == "memory" and policy.preset == "strict":
        return said(Answer.ASK, "memory-write", taint="")
    return said(Answer.ALLOW, "default")


def _judge_place(facts: Facts, policy: GatePolicy) -> Verdict:
    if facts.file is Policy.CLOSED:
        return said(Answer.DENY, "closed")
    if not facts.key.endswith(".md"):
        return said(Answer.DENY, "not-markdown")
    if facts.change.actor is Actor.OWNER and facts.change.session is None:
        return said(Answer.ALLOW, "owner")
    if place := facts.situation.approver:
        if facts.file is Policy.IDENTITY and place not in APPROVAL_PLACES:
            return said(Answer.ASK, "identity-file")
        return said(Answer.ALLOW, "approved", place=printable(place, 40))
    if verdict := _denied_in_every_preset(facts):
        return verdict
    built_in = _built_in(facts, policy)
    ruled = by_owners_rules(policy.ready, facts, is_free=built_in.answer is Answer.ALLOW or policy.preset == "open")
    if ruled is None:
        return built_in
    if ruled.answer is Answer.NOTE and not facts.can_be_noted:
        ruled = replace(ruled, answer=Answer.ASK)
    # A question is no way round a denial: in a home that is not trusted, rules that ask are kept.
    softens = ruled.answer is not Answer.ALLOW and ruled.answer.strictness < built_in.answer.strictness
    return built_in if softens else ruled


def _denied_in_every_preset(facts: Facts) -> Verdict | None:
    """What is denied to everybody but the owner, and no rule opens."""
    access, layer = facts.situation.access, facts.situation.layer
    if facts.file is Policy.REVIEW and not facts.is_import:
        return said(Answer.DENY, "unreviewed")
    if access != "rw":
        return said(Answer.DENY, "read-only", access=printable(access, 40))
    if layer and not facts.key.startswith(f"{fold(folder_of(layer))}/"):
        return said(Answer.DENY, "layer", layer=printable(folder_of(layer), 80))
    if not facts.is_import and any(finding.kind == "placeholder" for finding in facts.findings):
        return said(Answer.DENY, "placeholder")
    if facts.change.actor is not Actor.DREAMER:
        return None
    # Dreaming promotes no secret, nothing forgotten, and no line that is untrusted or not yet reviewed.
    if facts.file is not Policy.MEMORY:
        return said(Answer.DENY, "dreamer")
    if facts.taint or Origin.OUTSIDE in (facts.change.origin, *facts.change.taint):
        return said(Answer.DENY, "tainted", taint=facts.taint_words)
    if any(finding.kind == "forgotten" for finding in facts.findings):
        return said(Answer.DENY, "forgotten")
    return _secret(facts)


def _built_in(facts: Facts, policy: GatePolicy) -> Verdict:
    if facts.is_import:
        return said(Answer.ALLOW, "import")
    if policy.preset != "open":
        return _denied(facts, policy) or _dangerous(facts) or _by_file(facts, policy)
    if verdict := _flow(facts):
        return verdict
    # Nothing is held back; what was added after outside text was read is only written down elsewhere.
    if facts.can_be_noted and (rule := "tainted" if facts.taint else _not_unseen(facts)):
        return said(Answer.NOTE, rule, taint=facts.taint_words)
    return said(Answer.ALLOW, "open")


def _denied(facts: Facts, policy: GatePolicy) -> Verdict | None:
    if policy.dialect == "ironclaw" and facts.key in _IRONCLAW_PROTECTED:
        return said(Answer.DENY, "protected")
    if facts.size > SIZE_LIMIT:
        return said(Answer.DENY, "size", size=facts.size)
    if facts.situation.recent >= RATE_LIMIT:
        return said(Answer.DENY, "rate")
    if verdict := _secret(facts):
        return verdict
    if facts.file is Policy.MEMORY and facts.change.scope is Scope.SUBAGENT:
        return said(Answer.DENY, "subagent")
    return _flow(facts) if facts.flow is Answer.DENY else None


def _secret(facts: Facts) -> Verdict | None:
    kinds = [finding.kind.partition(":")[2] for finding in facts.secrets]
    return said(Answer.DENY, "secret", kinds=listed(kinds)) if kinds else None


def _dangerous(facts: Facts) -> Verdict | None:
    """Asked when the scan found a danger. Phrasing alone is no danger: it only marks."""
    kinds: dict[str, list[str]] = {}
    for finding in facts.dangers:
        kinds.setdefault(_DANGERS.get(finding.kind, "danger"), []).append(finding.kind)
    rule = next((rule for rule in _DANGEROUS if rule in kinds), None)
    return said(Answer.ASK, rule, kinds=listed(kinds[rule])) if rule else None


def _by_file(facts: Facts, policy: GatePolicy) -> Verdict:
    """The last column of the file table; but a sub-agent's own folder is its own."""
    if facts.situation.workspace and facts.key.startswith(f"{fold(facts.situation.workspace)}/"):
        return said(Answer.ALLOW, "own-folder")
    if facts.file is Policy.IDENTITY:
        return said(Answer.ASK, "identity-file")
    if facts.file is Policy.RITUAL and facts.takes_away:
        return said(Answer.ALLOW, "bootstrap-done")
    if facts.file is not Policy.MEMORY:
        return said(Answer.ASK, "ask-file")
    if policy.preset == "strict":
        return said(Answer.ASK, "memory-write", taint=facts.taint_words)
    if verdict := _flow(facts):
        return verdict
    if facts.taint:
        return said(facts.held_back, "tainted", taint=facts.taint_words)
    if facts.change.actor is Actor.DREAMER:
        return said(Answer.ALLOW, "dream")
    if rule := _not_unseen(facts):
        return said(facts.held_back, rule)
    own = facts.change.scope is Scope.GROUP and is_groups(facts.situation.layer)  # what is a group's is for that group
    if not (facts.change.scope is Scope.MAIN or own) or facts.change.actor is Actor.OUTSIDE:
        return said(facts.held_back, "scope")
    is_changed = facts.is_log and facts.change.kind is not Kind.APPEND and facts.situation.exists
    return said(Answer.ASK, "log") if is_changed else said(Answer.ALLOW, "clean-session")


def _not_unseen(facts: Facts) -> str | None:
    return next((rule for rule in _NOT_UNSEEN if any(finding.kind == rule for finding in facts.findings)), None)


def _flow(facts: Facts) -> Verdict | None:
    answer = facts.flow
    if answer is Answer.NOTE:
        answer = facts.held_back
    return said(answer, "no-write-after-web", taint=facts.taint_words) if answer else None


def suggest_rule(change: Change, *, row: Row, findings: Sequence[Finding], to_row: Row | None = None) -> Rule | None:
    """The narrowest rule that would allow such a change, which was asked about, next time, put before all others; None where
    none should: for identity files, for secrets and dangers, and where no scope is known."""
    ends = [(change.path, row)] + ([(change.to, to_row)] if change.to and to_row else [])
    is_identity = any(file_policy(path, known) is Policy.IDENTITY for path, known in ends)
    is_dangerous = any(is_danger(finding) or is_secret(finding) for finding in findings)
    is_scopeless = change.scope is None and change.actor not in (Actor.DREAMER, Actor.IMPORTER)
    is_wild = any(set("*?") & set(path.key) for path, _ in ends)  # the name itself would open other files
    if is_identity or is_dangerous or is_scopeless or is_wild:
        return None
    taint = tuple(sorted(map(str, untrusted(change))))
    # From an untrusted session only the very file is opened that the owner looked at, not its folder.
    globs = [path.text if taint or not path.parent else f"{path.parent}/*.md" for path, _ in ends]
    when: dict[str, Any] = {
        "actor": str(Actor.AGENT if change.actor is Actor.OWNER else change.actor),
        "kind": str(change.kind),
        "path": tuple(dict.fromkeys(globs)),
        "taint": taint or False,
    }
    when |= {"scope": str(change.scope)} if change.scope else {}
    conditions = tuple(sorted(when.items()))
    # A name to read, with a mark that tells it from every other rule.
    words = re.sub(r"[^a-z0-9]+", "-", fold(globs[0]).removesuffix("*.md")).strip("-")[:40].rstrip("-")
    name = "-".join(filter(None, ["allow", words, digest_of(repr(conditions))[:8]]))
    return Rule(id=name, when=conditions, then="allow", reason="the owner allows this kind of change")
