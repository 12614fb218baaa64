"""Cards on a channel: what waits for somebody, as a message with two buttons, and what pressing one does.

Promise: a yes is bound to what the card showed, and the card showed all of it. Identity files, forgetting, whatever the scan
warns of and what does not fit into one message have no buttons: the card says where that is decided, and no press decides it.
Blocks. Not here: whether whoever pressed is the owner, alone with the agent (presence).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from anima import ForReview, Home, Proposal, Receipt, Severity
from anima.connect.channels import Button
from anima.errors import NoSuchProposal, Refused, printable

YES, NO = "k", "d"
ELSEWHERE = "Decide it at a terminal (anima review) or on the page."
_WHY = {
    "identity": "It says who the agent is and whom it serves.",
    "danger": "The scan warns of it.",
    "forget": "It forgets something.",
}


class Card(NamedTuple):
    """A message for somebody to decide. `mark` tells it from every other."""

    mark: str
    text: str
    buttons: tuple[Button, ...]


def of_proposal(home: Home, waiting: Proposal, fits: Callable[[str], bool]) -> Card:
    asks = "calls a tool" if waiting.call else f"changes {waiting.path.text}"
    text = f"{waiting.id} {asks}: {waiting.why}\n\n{waiting.diff}"
    return _card(waiting.id, waiting.content, text, _alone(home, waiting), fits, call=waiting.call is not None)


def of_noted(waiting: ForReview, fits: Callable[[str], bool]) -> Card:
    entry = waiting.entry
    read = f" It had read: {', '.join(sorted(entry.origins))}." if entry.origins else ""
    section = f" under “{entry.section}”" if entry.section else ""
    text = f"{entry.id} was noted for {entry.to.text}{section}.{read}\n\n{entry.text}"
    return _card(entry.id, entry.id, text, "danger" if waiting.findings else "", fits)


def _card(id: str, mark: str, text: str, alone: str, fits: Callable[[str], bool], *, call: bool = False) -> Card:
    text = "\n".join(printable(line, len(line)) for line in text.rstrip("\n").split("\n"))  # nothing in it is hidden
    if not fits(text):
        text, alone = f"{text.partition(chr(10))[0]}\n\nIt is too long to be shown here.", alone or "long"
    if alone:
        return Card(mark, f"{text}\n\n{_WHY.get(alone, '')} {ELSEWHERE}", ())
    yes = Button("Yes, call it" if call else "Keep", f"{YES} {id} {mark[:16]}")
    return Card(mark, text, (yes, Button("No" if call else "Drop", f"{NO} {id} {mark[:16]}")))


def _alone(home: Home, waiting: Proposal) -> str:
    alone = home.inbox.alone(waiting)
    is_danger = any(finding.severity >= Severity.DANGER for finding in waiting.findings)
    return "danger" if is_danger and alone in ("", "call") else "" if alone == "call" else alone


def decided(home: Home, data: str, fits: Callable[[str], bool]) -> tuple[str, str]:
    """What a press did, in words, and the session that goes on now. Raises NoSuchProposal for what waits no longer, and
    Refused for what is not what the card showed, or what no press decides."""
    verb, _, id = data.rpartition(" ")[0].partition(" ")
    asked = next((each for each in home.inbox.all() if each.id == id), None)
    noted = next((each for each in home.inbox.noted() if each.entry.id == id), None)
    if asked is None and noted is None:
        raise NoSuchProposal("this was decided already, or waits no longer")
    card = of_proposal(home, asked, fits) if asked else of_noted(noted, fits) if noted else None
    if card is None or data not in (button.data for button in card.buttons):
        raise Refused(f"{id} is not what it was, or is not decided here. {ELSEWHERE}", rule="card")
    receipts: Sequence[Receipt] = ()
    if asked is None:
        receipts = home.inbox.keep(id, approver="channel") if verb == YES else home.inbox.drop(id)
    elif verb == YES:
        receipts = home.inbox.approve(id, approver="channel", content=asked.content)
    else:
        home.inbox.deny(id)
    if wrong := [each for each in receipts if each.status not in ("written", "approved")]:
        raise Refused(wrong[0].reason or "that could not be done", rule=wrong[0].rule)
    word = ("called" if asked and asked.call else "kept") if verb == YES else "dropped"
    return word, (asked.session or "") if asked and asked.call else ""
