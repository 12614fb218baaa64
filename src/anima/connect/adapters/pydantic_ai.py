"""pydantic-ai: a home's session as one capability, the one with which the runtime itself speaks.

Promise: that of `Lodging`. What the run is asked is the owner's; what other tools of the agent say, files, and what the
service looks up are from outside before the model hears of them.

    home = opened.session(scope="main")
    agent = Agent("openai:gpt-5", capabilities=[Lodging(home)])
    agent.run_sync("Where is the boat?", message_history=past(home))
"""

from __future__ import annotations

from anima import Session
from anima.connect.adapters import needed

with needed("pydantic-ai", "pydantic-ai"):
    from pydantic_ai.messages import ModelMessage

    from anima.agent.lodging import Lodging as Lodging
    from anima.agent.lodging import messages_of


def past(session: Session) -> list[ModelMessage]:
    """The conversation so far, for an agent that takes it up."""
    summary, turns = session.context()
    return messages_of(turns, summary)
