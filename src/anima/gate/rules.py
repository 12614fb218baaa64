"""Rules: the facts of a change that they ask, flow rules, the sentences of the built-in ones, and the owner's own.

Promise: whatever the file table says, configuration and hidden names are closed, and a person's own USER.md is an
identity file. A flow rule becomes active by what a session takes in, and stays. A policy that exists holds only rules
that make sense; an `allow` speaks only where it names everything that would otherwise hold the change back. A glob has
`*` and `?` inside a name and `**` for any number of folders; its time grows with pattern times path, never faster. No
sentence holds text of a document. Pure. Not here: when a built-in rule speaks (gate), which flows are active (sessions).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, NamedTuple

from anima.config import FILE, PRESETS, GateConfig, Rule
from anima.errors import BadConfig, BadPath, meant, printable
from anima.layout import Policy, Row
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
    fold,
)
from anima.text import read_table

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
        is_small = len(change.added or change.text) <= NOTE_LIMIT
        self.can_be_noted = self.file is Policy.MEMORY and change.is_addition and is_small
        self.held_back = Answer.NOTE if self.can_be_noted else Answer.ASK
        self.secrets = [finding for finding in findings if is_secret(finding)]
        self.dangers = [finding for finding in findings if is_danger(finding) and not is_secret(finding)]
        self.taint_words = f" (from {', '.join(sorted(self.taint))})" if self.taint else ""

    @property
    def takes_away(self) -> bool:
        """Whether the file is gone, or empty, afterwards; by whoever does not see it, nothing is taken away."""
        if self.situation.submitted is not None:
            return False
        emptied = self.change.kind is Kind.WRITE and not self.change.text.strip() and self.situation.exists
        return self.change.kind is Kind.DELETE or emptied


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
NOTE_LIMIT = 32 * 1024  # characters that are noted; more is asked for
RATE_LIMIT = 600  # writes of one agent session in a minute
APPROVAL_PLACES = frozenset({"terminal", "page"})  # where identity files can be approved
CHANNEL = "channel"  # a button in the owner's own chat on a channel, which is enough for a call of a tool from outside


def said(answer: Answer, rule: str, **filled: object) -> Verdict:
    """The verdict of a built-in rule."""
    filled |= {"limit": SIZE_LIMIT, "rate": RATE_LIMIT}
    return Verdict(answer=answer, rule=rule, reason=sentences()[rule].format(**filled))


@cache
def sentences() -> dict[str, str]:
    """What the built-in rules say, by their names."""
    return read_table("gate", "rules")


def listed(names: Sequence[str]) -> str:
    """Names for a sentence: each once, three at most, safe to print."""
    shown = list(dict.fromkeys(printable(name, 40) for name in names))
    return ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")


def no_such(what: str, name: str, known: Sequence[str]) -> str:
    """The sentence for a name that is none, with the nearest one that is."""
    hint = meant(name, known, f"there are {', '.join(known)}")
    return f"there is no {what} {printable(name, 60)!r}; {hint}"


Preset = Literal["open", "guarded", "strict"]
# -- the owner's rules ------------------------------------------------------------------------------------------------------

Glob = tuple[str, ...]  # the folded parts between slashes
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

_CLEAN = "clean"  # stands for no taint at all, which an owner writes as false
_MOST = 10**12


class Condition(NamedTuple):
    """How a condition is read, which raises ValueError with a sentence, and when it holds, which never raises."""

    read: Callable[[Any], Any]
    holds: Callable[[Any, Facts], bool]


def _sees(entry: Entry, finding: Finding) -> bool:
    return finding.severity >= entry if isinstance(entry, Severity) else _wild(entry, fold(finding.kind))


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


def _read_findings(raw: Any) -> tuple[Entry, ...]:
    severities = {severity.name.lower(): severity for severity in Severity}
    return tuple(severities.get(fold(text), fold(text)) for text in _texts(raw))


_COMPARISON = re.compile(r" *(<=|>=|==|<|>|=) *([0-9]{1,12}) *")


def _read_range(raw: Any) -> tuple[int, int]:
    """The lowest and the highest number that meet a comparison."""
    if not isinstance(raw, str) or not (found := _COMPARISON.fullmatch(raw)):
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
        _read_findings,
        lambda entries, facts: any(_sees(entry, finding) for finding in facts.findings for entry in entries),
    ),
    "size": _compared(lambda facts: facts.size),
    "rate": _compared(lambda facts: facts.situation.recent + 1),
    "flow": _any_of(tuple(FLOWS), lambda facts: frozenset(facts.flows)),
}


# -- globs -----------------------------------------------------------------------------------------------------------------


def read_glob(text: str) -> Glob:
    """A glob from an owner's text; a slash at its end means all that is in the folder. Raises ValueError."""
    if any(fold(sign) != sign and set(fold(sign)) & set("*?") for sign in text):
        raise ValueError(f"{printable(text)}: it holds a sign that looks like * or ? and is none")
    folded = fold(text + "**" if text.endswith("/") else text)
    parts = tuple(folded.split("/"))
    if any("**" in part and part != "**" for part in parts):
        raise ValueError(f"{printable(text)}: ** stands alone between slashes")
    try:
        DocPath.parse(folded.replace("*", "x").replace("?", "x"))
    except BadPath as error:
        raise ValueError(f"{printable(text)}: {error.why}") from None
    return parts


def covers(glob: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether a glob covers a folded path, given by its parts."""
    return _matches(glob, parts, "**", _wild)


def _wild(pattern: str, text: str) -> bool:
    """Whether `*` and `?` in a pattern cover a text."""
    return _matches(pattern, text, "*", lambda p, char: p in ("?", char))


def _matches(pattern: Sequence[str], items: Sequence[str], star: str, fits: Callable[[str, str], bool]) -> bool:
    """The leftmost fit after each star is the best one, so only the last star is ever taken up again: no blow-up."""
    p = i = taken = 0
    last_star = -1
    while i < len(items):
        if p < len(pattern) and pattern[p] == star:
            last_star, taken, p = p, i, p + 1
        elif p < len(pattern) and fits(pattern[p], items[i]):
            p, i = p + 1, i + 1
        elif last_star >= 0:
            taken += 1
            p, i = last_star + 1, taken
        else:
            return False
    return all(part == star for part in pattern[p:])
