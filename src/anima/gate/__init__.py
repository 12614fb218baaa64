"""Write gate: whether a change may happen, must be asked, or is refused, and which rule says so, built-in or the owner's.

Promise: `judge` is pure and total; the first rule that speaks wins, and says so in a sentence that holds no text of a document.
Denials that no rule opens come first, then the owner's rules, then the preset's, those that deny before those that ask: what
is worse never gets a milder answer. An `allow` opens only what it names, an `ask` never softens a denial, and neither holds
the owner's hand. The time of a glob grows with pattern times path, never faster.
Not here: scanning (scan), what each file is (layout), keeping proposals (memory), counting writes and flows (sessions).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from anima.config import FILE, PRESETS, GateConfig, Rule
from anima.errors import BadArguments, BadConfig, meant, printable
from anima.layout import Policy, Row, covers, folder_of, is_groups, read_glob, wild
from anima.model import (
    UNTRUSTED,
    Access,
    Actor,
    Answer,
    Change,
    DocPath,
    Finding,
    Kind,
    Origin,
    Scope,
    Severity,
    Verdict,
    digest_of,
    fold,
)
from anima.text import read_table

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
    if policy.dialect == "ironclaw" and facts.key in ("soul.md", "identity.md", "user.md", "agents.md"):
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


# -- what is known of a change ------------------------------------------------------------------------------------------------

Flows = Mapping[str, Answer]
MEMORY_FLOW = "no-write-after-web"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the gate must know beside the change: counters, session and owner, at this moment."""

    recent: int = 0  # writes of this session in the last minute, this one not counted
    approver: str | None = None  # where the owner approved it ("terminal", "page", …); None or "": nobody did
    flows: frozenset[str] = frozenset()  # flow rules that became active in the session
    access: Access = "rw"
    size: int = 0  # bytes of the text
    exists: bool = True
    layer: str = ""  # whose session it is: "" for the owner, else a person's or a group's
    workspace: str = ""  # a sub-agent's own folder
    # What a session handed in that does not see the whole document: all that is judged. None: it sees the whole.
    submitted: str | None = None
    wish: tuple[object, ...] = ()  # and what it asked for, word for word
    unseen: bool = False  # it sees nothing of the document, and learns nothing of what stands there


class Facts:
    """What is known of a change at one of its places. Lives as long as one judgement."""

    def __init__(
        self, change: Change, place: DocPath, row: Row, findings: Sequence[Finding], now: Situation, flows: Flows
    ) -> None:
        self.change, self.findings, self.situation = change, findings, now
        self.key, self.taint = key_of(place), untrusted(change)
        self.file = file_policy(place, row)  # what the file table says of the place
        parts = self.key.split("/")
        self.is_log = row.kind == "daily" or (len(parts) > 3 and parts[0] == "users" and parts[2] == "memory")
        self.size = max(now.size, len(change.text))
        self.flows = {name: answer for name, answer in flows.items() if name in now.flows}  # active and switched on
        self.is_import = change.actor is Actor.IMPORTER and change.session is None
        # Who writes, in the eyes of a rule: what comes through a session is an agent's, whatever it calls itself.
        self.actor = Actor.AGENT if change.actor is Actor.OWNER else change.actor
        # What an active flow rule says of writing memory, if this is memory.
        self.flow = self.flows.get(MEMORY_FLOW) if self.file is Policy.MEMORY else None
        # Whether it can be written down elsewhere until the owner looks: memory that is only added to.
        is_small = len(change.added or change.text) <= 32 * 1024  # characters; more is asked for
        self.can_be_noted = self.file is Policy.MEMORY and change.is_addition and is_small
        self.held_back = Answer.NOTE if self.can_be_noted else Answer.ASK
        self.secrets = [finding for finding in findings if is_secret(finding)]
        self.dangers = [finding for finding in findings if is_danger(finding) and not is_secret(finding)]
        # Whether the file is gone, or empty, afterwards; by whoever does not see it, nothing is taken away.
        is_emptied = change.kind is Kind.WRITE and not change.text.strip() and now.exists
        self.takes_away = now.submitted is None and (change.kind is Kind.DELETE or is_emptied)
        self.taint_words = f" (from {', '.join(sorted(self.taint))})" if self.taint else ""


def key_of(path: DocPath) -> str:
    return path.key or fold(path.text)


def file_policy(path: DocPath, row: Row) -> Policy:
    """What the file table says of a path, and where it says too little, what must hold all the same."""
    key = key_of(path)
    parts = key.split("/")
    if row.policy is Policy.CLOSED or key == FILE or any(part.startswith(".") for part in parts):
        return Policy.CLOSED
    # A layer's USER.md stands in for the owner's, so it is guarded as that one is.
    is_layers_user = len(parts) == 3 and parts[0] == "users" and parts[2] == "user.md"
    return Policy.IDENTITY if is_layers_user else row.policy


def untrusted(change: Change) -> frozenset[Origin]:
    """The untrusted origins that went into a change."""
    return (change.taint | {change.origin}) & UNTRUSTED


def is_secret(finding: Finding) -> bool:
    return fold(finding.kind).startswith("secret:")


def is_danger(finding: Finding) -> bool:
    return finding.severity >= Severity.DANGER


class FlowEvent(NamedTuple):
    """Something a session took in. What it reads of its home at start is a read that is not `by_tool`."""

    origin: Origin | None = None
    path: DocPath | None = None
    by_tool: bool = False


class Flow(NamedTuple):
    """One flow rule: what it holds back, in which presets it is on by itself, and what makes it active."""

    action: str
    on: tuple[str, ...]
    becomes_active: Callable[[FlowEvent], bool]


FLOWS: dict[str, Flow] = {
    MEMORY_FLOW: Flow("memory", ("guarded", "strict"), lambda event: event.origin in UNTRUSTED),
    "ask-outbound-after-tools": Flow(
        "outbound", (), lambda event: event.by_tool and event.path is not None and key_of(event.path) == "tools.md"
    ),
}


# -- what the built-in rules say ---------------------------------------------------------------------------------------------

SIZE_LIMIT = 256 * 1024  # bytes an agent may write at once
RATE_LIMIT = 600  # writes of one agent session in a minute
APPROVAL_PLACES = frozenset({"terminal", "page"})  # where identity files can be approved
CHANNEL = "channel"  # a button in the owner's own chat on a channel, which is enough for a call of a tool from outside


def said(answer: Answer, rule: str, **filled: object) -> Verdict:
    """The verdict of a built-in rule."""
    filled |= {"limit": SIZE_LIMIT, "rate": RATE_LIMIT}
    return Verdict(answer=answer, rule=rule, reason=read_table("gate", "rules")[rule].format(**filled))


def listed(names: Sequence[str]) -> str:
    """Names for a sentence: each once, three at most, safe to print."""
    shown = list(dict.fromkeys(printable(name, 40) for name in names))
    return ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")


def no_such(what: str, name: str, known: Sequence[str]) -> str:
    """The sentence for a name that is none, with the nearest one that is."""
    hint = meant(name, known, f"there are {', '.join(known)}")
    return f"there is no {what} {printable(name, 60)!r}; {hint}"


# -- the owner's rules ------------------------------------------------------------------------------------------------------

Preset = Literal["open", "guarded", "strict"]
Entry = Severity | str  # a least severity, or a glob over kinds of findings


class ReadyRule(NamedTuple):
    """A rule of the owner's with its conditions read."""

    rule: Rule
    then: Answer
    when: tuple[tuple[str, Any], ...]

    def holds(self, facts: Facts) -> bool:
        return all(CONDITIONS[name].holds(value, facts) for name, value in self.when)

    def named(self, name: str) -> list[Any]:
        return [value for condition, value in self.when if condition == name]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePolicy:
    """A preset with the owner's rules. Lives as long as the configuration. Raises BadConfig for a rule that is wrong."""

    preset: Preset = "guarded"
    rules: tuple[Rule, ...] = ()
    dialect: str = "anima"
    ready: tuple[ReadyRule, ...] = field(init=False, repr=False, compare=False, default=())
    flows: Mapping[str, Answer] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise BadConfig(no_such("preset", str(self.preset), PRESETS), where=FILE)
        if problems := check_rules(self.rules):
            raise BadConfig(problems[0], where=FILE, hint="docs/gate.md lists the conditions of a rule")
        ready = tuple(
            ReadyRule(rule, Answer(rule.then), tuple((name, CONDITIONS[name].read(raw)) for name, raw in rule.when))
            for rule in self.rules
            if rule.id not in FLOWS
        )
        # A rule with a flow's id switches it: `allow` off, the others on.
        answers = {name: Answer.NOTE for name, flow in FLOWS.items() if self.preset in flow.on}
        answers |= {rule.id: Answer(rule.then) for rule in self.rules if rule.id in FLOWS}
        flows = {name: answer for name, answer in answers.items() if answer is not Answer.ALLOW}
        object.__setattr__(self, "ready", ready)
        object.__setattr__(self, "flows", flows)

    @classmethod
    def of(cls, config: GateConfig, dialect: str) -> GatePolicy:
        """The policy of a configuration; without a preset, the dialect's own."""
        preset: Any = config.preset or ("strict" if dialect == "carapace" else "guarded")
        return cls(preset=preset, rules=config.rule, dialect=dialect)


def check_rules(rules: Sequence[Rule]) -> list[str]:
    """What is wrong with the owner's rules, a sentence each; an unknown name comes with the nearest known one."""
    problems: list[str] = []
    seen: set[str] = set()
    for rule in rules:
        shown = f"gate.rule {printable(rule.id, 60)!r}"
        problems += [f"{shown}: {problem}" for problem in _problems(rule)]
        problems += [f"{shown}: another rule has this id already"] if rule.id in seen else []
        seen.add(rule.id)
    return problems


def _problems(rule: Rule) -> Iterator[str]:
    if not rule.id or len(rule.id) > 80 or not rule.id.isprintable():
        yield "an id has 1 to 80 printable characters"
    if rule.then not in tuple(Answer):
        yield no_such("answer", str(rule.then), tuple(Answer))
    if rule.id in FLOWS and rule.when:
        yield "this is a flow rule; it takes no conditions, only `then`"
    for name, raw in rule.when:
        if name not in CONDITIONS:
            yield no_such("condition", str(name), tuple(CONDITIONS))
            continue
        try:
            CONDITIONS[name].read(raw)
        except ValueError as error:
            yield f"{name}: {error}"


def by_owners_rules(rules: Sequence[ReadyRule], facts: Facts, *, is_free: bool) -> Verdict | None:
    """What the first rule that speaks says, if one does. `is_free`: without the rules, nothing would hold it back."""
    for ready in rules:
        if ready.holds(facts) and (is_free or ready.then is not Answer.ALLOW or _opens(ready, facts)):
            reason = ready.rule.reason or f"a rule of the owner's says {ready.then}"
            return Verdict(answer=ready.then, rule=ready.rule.id, reason=printable(reason, 300))
    return None


def _opens(ready: ReadyRule, facts: Facts) -> bool:
    """Whether an `allow` names everything that would otherwise hold the change back."""
    obstacles = {
        "scope": facts.change.scope is Scope.SUBAGENT,
        "taint": bool(facts.taint),
        "flow": facts.flow is not None and not facts.taint,
        "size": facts.size > SIZE_LIMIT,
        "rate": facts.situation.recent >= RATE_LIMIT,
    }
    if any(stands and not ready.named(name) for name, stands in obstacles.items()):
        return False
    # A session that read the web and a peer is not opened by a rule about the web.
    if facts.taint and not all(facts.taint <= names for names in ready.named("taint")):
        return False
    if facts.file is Policy.IDENTITY and not any(
        "/".join(glob) == facts.key for globs in ready.named("path") for glob in globs
    ):
        return False
    entries = [entry for value in ready.named("findings") for entry in value]
    return all(_is_named(finding, entries) for finding in (*facts.secrets, *facts.dangers))


def _is_named(finding: Finding, entries: Sequence[Entry]) -> bool:
    """Whether a finding is spoken for. A secret is only by its own kind; "more" may be anything, so it never is."""
    if is_secret(finding):
        entries = [entry for entry in entries if isinstance(entry, str) and entry.startswith("secret:")]
    return finding.kind != "more" and any(_sees(entry, finding) for entry in entries)


# -- conditions ------------------------------------------------------------------------------------------------------------

_SEVERITIES: dict[str, Entry] = {severity.name.lower(): severity for severity in Severity}
_CLEAN = "clean"  # stands for no taint at all, which an owner writes as false
_MOST = 10**12


class Condition(NamedTuple):
    """How a condition is read, which raises ValueError with a sentence, and when it holds, which never raises."""

    read: Callable[[Any], Any]
    holds: Callable[[Any, Facts], bool]


def _sees(entry: Entry, finding: Finding) -> bool:
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
    )


def _read_taint(raw: Any) -> frozenset[str]:
    if isinstance(raw, bool):
        return frozenset(UNTRUSTED) if raw else frozenset({_CLEAN})
    return frozenset(_name(sorted(UNTRUSTED), text) for text in _texts(raw))


def _read_range(raw: Any) -> tuple[int, int]:
    """The lowest and the highest number that meet a comparison."""
    if not isinstance(raw, str) or not (found := re.fullmatch(r" *(<=|>=|==|<|>|=) *([0-9]{1,12}) *", raw)):
        raise ValueError(f'this must be a comparison such as ">10000" or "<=200", not {repr(raw)[:60]}')
    sign, number = found[1], int(found[2])
    low = {">": number + 1, ">=": number, "=": number, "==": number}.get(sign, 0)
    return low, {"<": number - 1, "<=": number, "=": number, "==": number}.get(sign, _MOST)


def _compared(number: Callable[[Facts], int]) -> Condition:
    return Condition(_read_range, lambda wanted, facts: wanted[0] <= min(max(number(facts), 0), _MOST) <= wanted[1])


CONDITIONS: dict[str, Condition] = {
    "actor": _any_of(tuple(Actor), lambda facts: frozenset({facts.actor})),
    "path": Condition(
        lambda raw: tuple(read_glob(text) for text in _texts(raw)),
        lambda globs, facts: any(covers(glob, facts.key.split("/")) for glob in globs),
    ),
    "kind": _any_of(tuple(Kind), lambda facts: frozenset({facts.change.kind})),
    "scope": _any_of(tuple(Scope), lambda facts: frozenset({facts.change.scope or ""})),
    "taint": Condition(_read_taint, lambda names, facts: not names.isdisjoint(facts.taint or {_CLEAN})),
    "origin": _any_of(tuple(Origin), lambda facts: frozenset({facts.change.origin})),
    "findings": Condition(
        lambda raw: tuple(_SEVERITIES.get(fold(text), fold(text)) for text in _texts(raw)),
        lambda entries, facts: any(_sees(entry, finding) for finding in facts.findings for entry in entries),
    ),
    "size": _compared(lambda facts: facts.size),
    "rate": _compared(lambda facts: facts.situation.recent + 1),
    "flow": _any_of(tuple(FLOWS), lambda facts: frozenset(facts.flows)),
}
