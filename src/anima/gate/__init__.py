"""Write gate: whether a change may happen, must be asked, or is refused, and which rule says so.

Promise: `judge` is pure and total, the first rule that speaks wins, and every answer names its rule with a sentence.
Before everything stand denials that no rule opens; then the owner's rules; then the built-in ones of the preset. An
`allow` of the owner's opens only what it names, an `ask` never softens a denial, and neither holds the owner's hand.
Not here: scanning (scan), what each file is (layout), keeping proposals (memory), counting writes (sessions).
"""

from anima.gate.judge import flows_after as flows_after
from anima.gate.judge import judge as judge
from anima.gate.judge import judge_file as judge_file
from anima.gate.judge import may as may
from anima.gate.judge import suggest_rule as suggest_rule
from anima.gate.rules import APPROVAL_PLACES as APPROVAL_PLACES
from anima.gate.rules import CHANNEL as CHANNEL
from anima.gate.rules import FLOWS as FLOWS
from anima.gate.rules import RATE_LIMIT as RATE_LIMIT
from anima.gate.rules import RULES as RULES
from anima.gate.rules import SIZE_LIMIT as SIZE_LIMIT
from anima.gate.rules import Flow as Flow
from anima.gate.rules import FlowEvent as FlowEvent
from anima.gate.rules import GatePolicy as GatePolicy
from anima.gate.rules import Situation as Situation
from anima.gate.rules import check_rules as check_rules
