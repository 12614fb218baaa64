"""What a page was asked for: the parameters of its address, checked.

Promise: whatever stands in an address gives a value or a BadArguments that says what may stand there; never a trace.
Not here: the API's own parameters, which FastAPI checks.
"""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request

from anima.errors import BadArguments, printable
from anima.model import Scope

MOST_CHARS = 4_000


class Listening(NamedTuple):
    """A scope as pages call it: its name, who that is, and the words of a choice."""

    scope: Scope
    name: str
    who: str
    choice: str


SCOPES = (
    Listening(Scope.MAIN, "You", "you, alone", "you, alone"),
    Listening(Scope.GROUP, "Group", "anybody else in the room", "a group"),
    Listening(Scope.SUBAGENT, "Sub-agent", "a helper the agent starts", "a sub-agent"),
    Listening(Scope.CRON, "Cron", "a task that runs by the clock", "a scheduled task"),
    Listening(Scope.HEARTBEAT, "Heartbeat", "the agent alone, looking around", "the heartbeat"),
)


def text(request: Request, name: str, *, most: int = MOST_CHARS) -> str:
    """A text, without blanks at its ends."""
    found = request.query_params.get(name, "").strip()
    if len(found) > most:
        raise BadArguments(f"{name} has at most {most:,} characters, and this has {len(found):,}", hint="shorten it")
    return found


def number(request: Request, name: str, *, default: int, least: int, most: int) -> int:
    """A whole number between two others."""
    raw = request.query_params.get(name, "").strip()
    if not raw:
        return default
    if not raw.isascii() or not raw.isdigit() or len(raw) > 9 or not least <= int(raw) <= most:
        raise BadArguments(f"{name} is a number from {least} to {most:,}, not {printable(raw, 40)}")
    return int(raw)


def scope(request: Request, *, unsaid: Scope | None) -> Scope | None:
    """The scope that was chosen; `unsaid` where none was."""
    raw = request.query_params.get("scope", "").strip()
    if len(raw) > 40:
        raise BadArguments(f"the scopes are {', '.join(Scope)}")
    return Scope.parse(raw) if raw else unsaid


def ticked(request: Request, name: str) -> bool:
    return request.query_params.get(name, "") not in ("", "0")
