"""Write gate: whether a change may happen, must be asked, or is refused, and which rule says so.

Promise: `judge` is pure and total, the first rule that speaks wins, and every answer names its rule with a sentence.
Before everything stand denials that no rule opens; then the owner's rules; then the built-in ones of the preset. An
`allow` of the owner's opens only what it names, an `ask` never softens a denial, and neither holds the owner's hand.
Not here: scanning (scan), what each file is (layout), keeping proposals (memory), counting writes (sessions).
"""

from anima.gate.judge import flows_after, judge, judge_file, may, suggest_rule
from anima.gate.rules import (
    APPROVAL_PLACES,
    FLOWS,
    RATE_LIMIT,
    RULES,
    SIZE_LIMIT,
    Flow,
    FlowEvent,
    GatePolicy,
    Situation,
    check_rules,
)

__all__ = [
    "APPROVAL_PLACES",
    "FLOWS",
    "RATE_LIMIT",
    "RULES",
    "SIZE_LIMIT",
    "Flow",
    "FlowEvent",
    "GatePolicy",
    "Situation",
    "check_rules",
    "flows_after",
    "judge",
    "judge_file",
    "may",
    "suggest_rule",
]
