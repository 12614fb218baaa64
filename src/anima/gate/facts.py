"""Facts: one end of a change, with everything the rules ask about it worked out once; and the flow rules.

Promise: whatever the file table says, configuration and hidden names are closed, and a person's own USER.md is an
identity file. A flow rule becomes active by what a session takes in, and stays; reading the home's own files at start
activates none. Pure. Not here: any judgement, and keeping which flow rules are active (sessions).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from anima.config import FILE, Rule
from anima.layout.table import Policy, Row
from anima.model import UNTRUSTED, Actor, Answer, Change, DocPath, Finding, Kind, Origin, Severity, fold

Access = Literal["rw", "ro", "none"]
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
    layer: str = ""  # whose session it is: "" for the owner, else the folder under users/


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a change at one of its places. Lives as long as one judgement."""

    change: Change
    key: str
    file: Policy  # what the file table says of the place
    taint: frozenset[Origin]  # untrusted origins, the text's own among them
    size: int
    findings: Sequence[Finding]
    situation: Situation
    flows: Flows  # flow rules that are active and switched on

    @classmethod
    def of(
        cls, change: Change, place: DocPath, row: Row, findings: Sequence[Finding], now: Situation, flows: Flows
    ) -> Facts:
        return cls(
            change=change,
            key=key_of(place),
            file=file_policy(place, row),
            taint=untrusted(change),
            size=max(now.size, len(change.text)),
            findings=findings,
            situation=now,
            flows={name: answer for name, answer in flows.items() if name in now.flows},
        )

    @property
    def is_owners_hand(self) -> bool:
        return self.change.actor is Actor.OWNER and self.change.session is None

    @property
    def is_import(self) -> bool:
        return self.change.actor is Actor.IMPORTER and self.change.session is None

    @property
    def actor(self) -> Actor:
        """Who writes, in the eyes of a rule: what comes through a session is an agent's, whatever it calls itself."""
        return Actor.AGENT if self.change.actor is Actor.OWNER else self.change.actor

    @property
    def flow(self) -> Answer | None:
        """What an active flow rule says of writing memory, if this is memory."""
        return self.flows.get(MEMORY_FLOW) if self.file is Policy.MEMORY else None

    @property
    def secrets(self) -> list[Finding]:
        return [finding for finding in self.findings if is_secret(finding)]

    @property
    def dangers(self) -> list[Finding]:
        return [finding for finding in self.findings if is_danger(finding) and not is_secret(finding)]

    @property
    def takes_away(self) -> bool:
        """Whether the file is gone, or empty, afterwards."""
        emptied = self.change.kind is Kind.WRITE and not self.change.text.strip() and self.situation.exists
        return self.change.kind is Kind.DELETE or emptied

    @property
    def taint_words(self) -> str:
        return f" (from {', '.join(sorted(self.taint))})" if self.taint else ""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowEvent:
    """Something a session took in. What it reads of its home at start is a read that is not `by_tool`."""

    origin: Origin | None = None
    path: DocPath | None = None
    by_tool: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One flow rule: what it holds back, in which presets it is on by itself, and what makes it active."""

    action: str
    on: frozenset[str]
    becomes_active: Callable[[FlowEvent], bool]


def _reads_tools(event: FlowEvent) -> bool:
    return event.by_tool and event.path is not None and key_of(event.path) == "tools.md"


FLOWS: dict[str, Flow] = {
    MEMORY_FLOW: Flow(
        action="memory",
        on=frozenset({"guarded", "strict"}),
        becomes_active=lambda event: event.origin in UNTRUSTED,
    ),
    "ask-outbound-after-tools": Flow(action="outbound", on=frozenset(), becomes_active=_reads_tools),
}


def switched(preset: str, rules: Sequence[Rule]) -> dict[str, Answer]:
    """The flow rules that are on: a rule with a flow's id switches it, `allow` off and the others on."""
    answers = {name: Answer.ASK for name, flow in FLOWS.items() if preset in flow.on}
    answers |= {rule.id: Answer(rule.then) for rule in rules if rule.id in FLOWS}
    return {name: answer for name, answer in answers.items() if answer is not Answer.ALLOW}
