"""The room of the agent that speaks: models, conversations, compaction. It needs the extra `anima-home[chat]`.

Promise: what a model is told and does goes through a `Session` alone. Only the modules of this room import pydantic-ai,
and whoever imports them does so inside a function. Not here: the faces that talk with a person (cli).
"""

from __future__ import annotations

from anima.errors import MissingExtra

PRACTICE = "practice"  # the model that is always there
STOPPED = " […]"  # behind what an agent had said when it was stopped, or when its server broke off


def need_chat() -> None:
    """Raises MissingExtra where the extra is not installed."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("pydantic_ai", "openai", "anthropic", "prompt_toolkit")):
        raise MissingExtra("chat", "talking with a model")
