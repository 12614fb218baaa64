"""What the gate says of a file that is no document: a picture, a script, what another agent keeps for itself.

Promise: only an import by the owner brings one, and only where no machinery of the home's stands; every other writer is told
that only Markdown is written. Not here: documents (judging), and that nothing is overwritten (store.hand). Pure.
"""

from __future__ import annotations

from anima.layout.table import Policy, Row
from anima.model import Actor, Answer, DocPath, Verdict


def judge_file(path: DocPath, row: Row, actor: Actor) -> Verdict:
    """Whether a file that is no document may come into the home."""
    theirs = row.role == "agent-state"  # AgentScope's folder of other agents: closed to tools, and no document of ours
    if actor is not Actor.IMPORTER or (path.is_markdown and not theirs):
        return Verdict(answer=Answer.DENY, rule="not-markdown", reason="only .md files are written, and as documents")
    if row.policy is Policy.CLOSED and not theirs:
        return Verdict(answer=Answer.DENY, rule="closed", reason="it belongs to the home's own machinery")
    return Verdict(answer=Answer.ALLOW, rule="import", reason="the owner imports a file that is no document")
