"""What a session asks of tools from outside, and what they answer.

Promise: an answer is text from outside by the one rule (`Hand.take_in`) before anybody hears it; every call is on record
with its answer, one that got a no with the reason. A call that waits for the owner is kept outside of the transcript
until it is answered, so that no call stands there without its result, whatever happens meanwhile.
Not here: reaching the tools (agent), the owner's yes (memory).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from anima.config import FILE
from anima.model import DocPath, Kind, Origin
from anima.sessions.replay import Turn

if TYPE_CHECKING:
    from anima.memory import Proposal, WaitingCalls
    from anima.sessions.hand import Hand

MOST = 65_536  # characters of the arguments of a call that waits
NO = "the owner said no"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A call that has no answer yet, by the id of its card in the inbox."""

    id: str
    name: str  # by which a model calls it
    server: str
    tool: str
    given: dict[str, Any]
    card: Proposal

    @classmethod
    def of(cls, card: Proposal) -> OpenCall:
        call = dict(card.call or {})
        given = json.loads(call.pop("text"))
        return cls(id=card.id, card=card, given=given if isinstance(given, dict) else {}, **call)


class Records(Protocol):
    """How a session records a call with its answer; one that was `denied` was never made."""

    def __call__(
        self, name: str, given: object, answer: Mapping[str, Any], id: str | None, *, denied: bool = False
    ) -> None: ...


class OutsideCalls:
    """The calls of one session."""

    def __init__(self, hand: Hand, record: Records, turns: Callable[[], Iterable[Turn]]) -> None:
        self._hand, self._record, self._turns = hand, record, turns

    def heard(
        self, name: str, given: Mapping[str, Any], text: str, id: str | None, *, agent: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The answer of a tool from outside, taken in and on record; with `agent`, of another agent, and who that is."""
        answer = {**(agent or {}), "outside": text}
        said = Turn(timestamp="", role="tool", content=text, name=name)
        self._hand.take_in(text, turn=None if agent else said, origins={Origin.PEER} if agent else ())
        return self.told(name, given, answer, id)

    def told(self, name: str, given: Mapping[str, Any], answer: dict[str, Any], id: str | None) -> dict[str, Any]:
        """What the runtime itself answers to a call, on record."""
        self._record(name, given, answer, id)
        return answer

    def refused(self, name: str, given: Mapping[str, Any], reason: str, id: str | None) -> dict[str, Any]:
        """A call that was not made, on record with the reason."""
        answer = no(reason)
        self._record(name, given, answer, id, denied=True)
        return answer

    def ask(self, name: str, server: str, tool: str, given: Mapping[str, Any]) -> OpenCall | str:
        """A call that waits for the owner from now on; or why it cannot."""
        text = json.dumps(given, ensure_ascii=False)
        if len(text) > MOST:
            return f"its arguments are longer than {MOST:,} characters, which nobody would read before a yes"
        change = self._hand.wish(DocPath.parse(FILE), Kind.APPEND)  # says who asks; no tool writes this file
        card = self._waiting.ask(change, {"name": name, "server": server, "tool": tool, "text": text})
        return OpenCall.of(card) if card else "enough of this conversation waits for the owner already"

    def open(self) -> list[OpenCall]:
        """The calls of this session that have no answer yet. One whose answer is on record was only not put away."""
        found = [OpenCall.of(card) for card in self._waiting.of(self._hand.id)]
        on_record = {turn.message_id for turn in self._turns()} if found else set()
        for each in found:
            if each.id in on_record:
                self.put_away(each)
        return [each for each in found if each.id not in on_record]

    def is_decided(self, call: OpenCall) -> bool:
        """Whether the owner said yes to it."""
        return self._waiting.step(call.card) != "waits"

    def claimed(self, call: OpenCall) -> AbstractContextManager[bool]:
        """Whoever is inside carries it out; False where somebody began before. Raises HomeBusy while somebody does."""
        return self._waiting.claimed(call.card)

    def put_away(self, call: OpenCall) -> None:
        """Takes the card of a call that has its answer out of the inbox."""
        self._waiting.answered(call.card)

    @property
    def _waiting(self) -> WaitingCalls:
        return self._hand.rooms.writer().calls


def no(reason: str) -> dict[str, Any]:
    """What a model hears of a call that was not made."""
    return {"denied": reason or NO, "done": False}
