"""A model that does what it is told, word for word: what a session lets a model see and do is then seen over any door.

A turn is a list in JSON: `["call", tool, arguments]`, `["prompt"]`, or anything else, which is answered with its own words.
"""

from __future__ import annotations

import json
from typing import Any

from anima.testing.models import Received, Spoken


def parrot(asked: Received) -> Spoken:
    """What was told last: a call, the prompt, or, after a call, everything that the model got to see of it."""
    last = asked.body["messages"][-1]
    if last["role"] == "tool":
        return Spoken(f"got {last['content']}")
    wished = str(last["content"])
    if "do it" in wished:  # whatever was asked for before
        wished = next((each for m in reversed(asked.body["messages"][1:-1]) if '["' in (each := str(m["content"]))), "")
    match _wish(wished):
        case ["call", str(tool), dict(arguments)]:
            return Spoken(calls=[(tool, arguments)])
        case ["prompt"]:
            return Spoken(asked.prompt)
    return Spoken("NO_REPLY")


def _wish(text: str) -> Any:
    try:
        return json.JSONDecoder().raw_decode(text, max(0, text.find('["')))[0]  # whatever stands around it
    except ValueError:
        return None
