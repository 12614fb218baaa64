"""Flow rules: those that become active by what a session takes in, and stay.

Promise: pure; a session keeps the set of names, and only whoever keeps it can clear it. Reading the home's own files
at start activates none. Not here: that state, what a policy has switched on (rules), and asking (judge).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anima.config import Rule
from anima.gate.facts import MEMORY_FLOW, key_of
from anima.model import UNTRUSTED, Answer, DocPath, Origin


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
