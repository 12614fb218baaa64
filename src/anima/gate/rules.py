"""The owner's rules: checked, made ready, and what each may open.

Promise: a policy that exists holds only rules that make sense. An `allow` speaks only where it names everything that
would otherwise hold the change back: nobody opens a door by accident. Not here: the built-in rules (judging).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from anima.config import FILE, PRESETS, GateConfig, Rule
from anima.errors import BadConfig, printable
from anima.gate.conditions import CONDITIONS, Entry, sees
from anima.gate.facts import Facts, is_secret
from anima.gate.flows import FLOWS, switched
from anima.gate.sentences import RATE_LIMIT, SIZE_LIMIT, no_such
from anima.layout.table import Policy
from anima.model import Answer, Finding, Scope, Verdict

Preset = Literal["open", "guarded", "strict"]


class ReadyRule(NamedTuple):
    """A rule of the owner's with its conditions read."""

    rule: Rule
    then: Answer
    when: tuple[tuple[str, Any], ...]

    def holds(self, facts: Facts) -> bool:
        return all(CONDITIONS[name].holds(value, facts) for name, value in self.when)

    def named(self, name: str) -> list[Any]:
        return [value for condition, value in self.when if condition == name]

    @property
    def shown(self) -> str:
        return f"gate.rule {printable(self.rule.id, 60)!r}"


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
        object.__setattr__(self, "ready", tuple(_ready(rule) for rule in self.rules if rule.id not in FLOWS))
        object.__setattr__(self, "flows", switched(self.preset, self.rules))

    @classmethod
    def of(cls, config: GateConfig, dialect: str) -> GatePolicy:
        """The policy of a configuration; without a preset, the dialect's own."""
        preset: Any = config.preset or ("strict" if dialect == "carapace" else "guarded")
        return cls(preset=preset, rules=config.rule, dialect=dialect)


def _ready(rule: Rule) -> ReadyRule:
    return ReadyRule(rule, Answer(rule.then), tuple((name, CONDITIONS[name].read(raw)) for name, raw in rule.when))


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
        elif problem := _bad_value(name, raw):
            yield f"{name}: {problem}"


def _bad_value(name: str, raw: Any) -> str | None:
    try:
        CONDITIONS[name].read(raw)
    except ValueError as error:
        return str(error)
    return None


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
    if facts.file is Policy.IDENTITY and not _names_exactly(ready, facts.key):
        return False
    entries = [entry for value in ready.named("findings") for entry in value]
    return all(_is_named(finding, entries) for finding in (*facts.secrets, *facts.dangers))


def _names_exactly(ready: ReadyRule, key: str) -> bool:
    return any("/".join(glob) == key for globs in ready.named("path") for glob in globs)


def _is_named(finding: Finding, entries: Sequence[Entry]) -> bool:
    """Whether a finding is spoken for. A secret is only by its own kind; "more" may be anything, so it never is."""
    if is_secret(finding):
        entries = [entry for entry in entries if isinstance(entry, str) and entry.startswith("secret:")]
    return finding.kind != "more" and any(sees(entry, finding) for entry in entries)
