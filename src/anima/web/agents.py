"""What an agent's token reaches: its tools, its prompt and its conversation, in the scope the token was made for.

Promise: scope and sender are the token's and can be asked for by no request. Tools are called in the token's standing
conversation, so that reading untrusted text taints later writes; a host begins a new one when its own conversation
begins anew. Not here: what a tool does (sessions), the owner's verbs (api).
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body

from anima import Prompt
from anima.web import bodies
from anima.web.served import Here, Me

router = APIRouter(prefix="/api/v1", tags=["agents"])


@router.get("/tools")
def tools(here: Here, me: Me) -> bodies.Items[bodies.ToolOut]:
    """The tools there are in this token's scope."""
    rows = here.home.sessions.tools(here.scope_of(me))
    told = ("name", "about", "read_only", "destructive", "idempotent")
    found = [{name: getattr(tool, name) for name in told} | {"arguments": tool.schema()} for tool in rows]
    return bodies.Items[bodies.ToolOut].model_validate({"items": found})


@router.post("/tools/{name}")
def call(here: Here, me: Me, name: str, arguments: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
    """Calls a tool. A refused write is an answer; a wrong argument is a problem that says which."""
    found = here.session_of(me).call(name, arguments)
    if found.get("proposal"):
        here.bulletin.look_soon()
    return found


@router.get("/agent/prompt", response_model=bodies.PromptOut)
def prompt(here: Here, me: Me) -> Prompt:
    """The system prompt of the conversation that goes on; frozen when it began."""
    return here.session_of(me).prompt


@router.post("/agent/session", status_code=201, response_model=bodies.AgentSession)
def begin(here: Here, me: Me) -> object:
    """Begins a new conversation with a new prompt. What the one before had read no longer counts."""
    session = here.new_session(me)
    return {"id": session.id, "scope": session.listener.scope, "prompt": session.prompt}


@router.post("/agent/log")
def log(here: Here, me: Me, wish: bodies.Saying) -> bodies.AgentState:
    """Records one line of the conversation in its transcript, secrets struck out."""
    session = here.session_of(me)
    session.log(wish.role, wish.content)
    return bodies.AgentState(id=session.id, tainted=sorted(session.tainted))


@router.post("/agent/taint")
def taint(here: Here, me: Me, wish: bodies.Tainting) -> bodies.AgentState:
    """Says that untrusted text came into the conversation: web, tool, skill or peer."""
    session = here.session_of(me)
    session.taint(wish.origin)
    return bodies.AgentState(id=session.id, tainted=sorted(session.tainted))
