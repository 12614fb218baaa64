"""Adapters: a home for agents that other libraries run. One module a library, each an extra of its own.

Promise: what a library hands over is one of three things: the owner's words, where it truly tells so; the model's; or text
from outside, which is all the rest. Each is on record once, under the library's own id for it, and outside text taints the
session before the model goes on. Calls of the home's tools go through the session, and an error is an answer.
Not here: what a library calls all this (one module each), trust and records (sessions).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

from anima import Session, Turn
from anima.errors import MissingExtra
from anima.model import Origin

_ALL = 1_000_000


@contextmanager
def needed(extra: str, what: str) -> Iterator[None]:
    """Around the imports of a library. Raises MissingExtra where it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(extra, what) from error


class Lodger:
    """One conversation that a library holds, and the session that keeps it."""

    def __init__(self, session: Session) -> None:
        self.session, talks = session, session.rooms
        self.tools = session.tools() if session.access != "none" else ()
        self._kept_of = talks.kept_of
        past = talks.read(session.id, limit=_ALL).entries if talks.kept and talks.has(session.id) else ()
        self._known = {turn.message_id for turn in past if turn.call is None}
        self._texts = {turn.content for turn in past if turn.call is None}
        answers = ((turn.name, turn.content) for turn in past if turn.call is not None)
        self.calls = Counter[tuple[str | None, str | None]](answers)

    def is_new(self, id: str | None) -> bool:
        """Whether something with this id was not handed over before; what has none always is."""
        is_known = id is not None and id in self._known
        self._known.add(id)
        return not is_known

    def knows(self, text: str, id: str | None = None) -> bool:
        """Whether these words are on record; with an id, also where nothing else has it."""
        return not text.strip() or text in self._texts or (id is not None and id not in self._known)

    def owner(self, text: str, id: str | None = None) -> None:
        """What the owner, or whoever the session is with, says."""
        self._said("user", text, id)

    def model(self, text: str, id: str | None = None) -> None:
        self._said("assistant", text, id)

    def _said(self, role: Literal["user", "assistant"], text: str, id: str | None) -> None:
        if self.is_new(id) and text.strip():
            self._texts.add(text)
            self.session.log(role, text, message_id=id)

    def other(self, name: str, text: str, id: str | None = None) -> None:
        """What somebody else says in the conversation: another agent, a program, a file that was handed over."""
        if self.is_new(id) and text.strip():
            self.session.log("user", text, message_id=id, name=name or "outside")

    def outside(self, name: str, given: object, text: str, id: str | None = None, *, early: bool = False) -> None:
        """What a tool says that is not the home's; what was told `early`, by a hook, is claimed when it comes by again."""
        if early or not self.claimed(name, id, text):
            asked = parsed(given)
            self.session.outside.heard(name, asked if isinstance(asked, Mapping) else {}, text, id)
            self.calls[name, id] += early

    def attached(self) -> None:
        """Something came in that is no words: a picture, a file, an answer of the service's own tools."""
        self.session.taint(Origin.TOOL)

    def call(self, name: str, given: object, id: str | None = None) -> str:
        """What a tool of the home's answers, as JSON; an error is an answer too."""
        asked = {"type": "function_call", "name": name, "call_id": id, "arguments": given}
        text = str(self.session.run([asked])[0]["output"])
        self.calls[name, self._kept_of(name, parsed(text))] += 1
        return text

    def claimed(self, name: str, id: str | None, text: str) -> bool:
        """Whether the result of this call is on record: told by a hook under this id, or in these words. Each is claimed
        once; an id alone says nothing, since ids of calls come again and anybody can give one."""
        answer = parsed(text)
        words = [{"outside": text}, *([answer] if isinstance(answer, dict) else [])]
        for key in ((name, id), *((name, self._kept_of(name, each)) for each in words)):
            if self.calls[key] > 0:
                self.calls[key] -= 1
                return True
        return False

    def past(self) -> list[tuple[str, str, Turn]]:
        """What a model that takes the conversation up is shown: (who, id of a call, entry); who is owner, model, call or other.
        The words of somebody else have their name before them; the summary of what was cut comes first, as such an entry."""
        summary, turns = self.session.context()
        first = [Turn(timestamp="", role="user", content=summary, name="summary")] if summary else []
        found = list[tuple[str, str, Turn]]()
        for number, turn in enumerate([*first, *turns]):
            who = "call" if turn.call is not None else "other" if turn.name or turn.role == "tool" else turn.role
            who = {"user": "owner", "assistant": "model"}.get(who, who)
            if who not in ("owner", "model", "call"):
                turn = replace(turn, content=f"[{turn.name or turn.role}]\n{turn.content}")
            found.append((who, turn.message_id or f"call_{number}", turn))
        return found


def arguments_of(turn: Turn) -> str:
    return json.dumps((turn.call or {}).get("arguments") or {}, ensure_ascii=False)


def parsed(text: object) -> Any:
    """What a text of JSON says; the text where it is none."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text
