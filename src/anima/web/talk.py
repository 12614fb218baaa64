"""Conversations over HTTP: the owner's own, an agent's, and both in OpenAI's chat format (`/v1`) for programs that speak it.

Promise: a turn is asked for by one request and told by another, as events that can be taken up where they broke off. An agent's
token fixes scope and sender, and nothing in a request widens them. Under /v1 one request is one turn: the last message of the
user's is what is said, whatever else is sent is text from outside, unless it was said here; a client that leaves a stream stops
it, and what was said is kept. Not here: how a turn runs (chats), cards (api), the envelope of errors (guard).
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import partial, wraps
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, cast

from anyio import to_thread
from fastapi import APIRouter, Body, Header, Query
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from anima import Prompt
from anima.agent import Event
from anima.errors import BadArguments, printable
from anima.web.bodies import given, items, takes
from anima.web.guard import Problem, of_openai, openai_error
from anima.web.served import STREAM, Here, LastEvent, LiveChat, Me, Served, known_of, told_live

owners = APIRouter(prefix="/api/v1/chat", tags=["chat"])
agents = APIRouter(prefix="/api/v1", tags=["agents"])
openai = APIRouter(prefix="/v1", include_in_schema=False)
P = ParamSpec("P")
T = TypeVar("T")
Short = Annotated[str, Field(max_length=200)]
Named = Annotated[str, Header(max_length=200)]
After = Annotated[int | None, Query(ge=0, le=10**18)]
PIECES = frozenset({"text", "input_text"})
OVER = Event(kind="stopped", n=0)
MOST_TURNS = 400  # of a conversation that is opened


@owners.get("", response_model=items("ChatRow"))
def chats(here: Here, limit: Annotated[int, Query(ge=1, le=1_000)] = 100) -> object:
    """The owner's own conversations, the latest first."""
    return {"items": here.chats.rows(limit)}


@owners.post("", status_code=201, response_model=given("SaidIn"))
@takes("Telling")
async def begin(here: Here, wish: BaseModel) -> object:
    """Begins a conversation with what the owner says first."""
    return await _said(here, await here.chats.do(here.chats.begin()), wish)


@owners.post("/{id}", status_code=201, response_model=given("SaidIn"))
@takes("Telling")
async def say(here: Here, id: str, wish: BaseModel) -> object:
    """Says something in a conversation. While a turn runs, it is heard at its next step, or right after it."""
    return await _said(here, await here.chats.do(here.chats.get(id)), wish)


async def _said(here: Served, chat: LiveChat, wish: BaseModel) -> dict[str, object]:
    turn, after = await here.chats.do(chat.say(**wish.model_dump()))
    return {"id": chat.id, "turn": turn, "after": after}


@owners.get("/{id}", response_model=given("Chat"))
async def chat(here: Here, id: str) -> object:
    """A conversation as it stands. Of a turn that runs nothing is told here: its events begin after `after`."""
    found = await here.chats.do(here.chats.get(id))
    entries, after = await here.chats.do(found.snapshot())
    start = max(0, entries - MOST_TURNS)

    def told() -> dict[str, object]:
        turns = here.home.sessions.read(id, start=start, limit=entries - start).entries if entries else ()
        return {"turns": turns, "total": entries, "cards": found.cards()}

    about = {"id": id, "after": after, "running": found.is_running, "model": found.model, "used": found.used}
    return about | await run_in_threadpool(told)


@owners.get("/{id}/events", **STREAM)
async def events(here: Here, me: Me, id: str, after: After = None, last_event_id: LastEvent = None) -> Response:
    """What happens in a conversation, as server-sent events: turn, delta, thinking, tool, tool_result, steer, said, card,
    compaction, notice, done, stopped, error, resync (open it again). `Last-Event-ID`, or `after`, says what is known."""
    if here.bulletin.listeners + here.chats.listeners() >= here.limits.streams:
        return Problem(429, "too many listeners", headers={"Retry-After": "5"})
    found = await here.chats.do(here.chats.get(id))
    start = next(each for each in (known_of(last_event_id), after, found.feed.last) if each is not None)
    return told_live(found.feed.stream(start, still=lambda: here.keyring.named(me.id) is not None))


@owners.post("/{id}/stop", status_code=204)
async def stop(here: Here, id: str) -> None:
    """Stops the turn that runs. What was said until then is kept."""
    found = await here.chats.do(here.chats.get(id))
    await here.chats.do(found.stop())


# -- what an agent's token reaches ------------------------------------------------------------------------------------------
#
# Scope and sender are the token's and can be asked for by no request. Tools are called in the token's standing
# conversation, so that reading untrusted text taints later writes; a host begins a new one when its own begins anew.


def aside(work: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """An agent's route, which takes `here`: done in the threads that are kept for agents."""

    @wraps(work)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        here = cast(Served, kwargs["here"])
        return await to_thread.run_sync(partial(work, *args, **kwargs), limiter=here.agents)

    return run


@agents.get("/tools", response_model=items("Tool"))
@aside
def tools(here: Here, me: Me) -> object:
    """The tools there are in this token's scope."""
    rows = here.home.sessions.tools(here.scope_of(me))
    told = ("name", "about", "read_only", "destructive", "idempotent")
    return {"items": [{name: getattr(tool, name) for name in told} | {"arguments": tool.schema()} for tool in rows]}


@agents.post("/tools/{name}")
@aside
def call(here: Here, me: Me, name: str, arguments: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
    """Calls a tool. A refused write is an answer; a wrong argument is a problem that says which."""
    found = here.session_of(me).call(name, arguments)
    if found.get("proposal"):
        here.bulletin.look_soon()
    return found


@agents.get("/agent/prompt", name="prompt", response_model=given("Prompt"))
@aside
def agent_prompt(here: Here, me: Me) -> Prompt:
    """The system prompt of the conversation that goes on; frozen when it began."""
    return here.session_of(me).prompt


@agents.post("/agent/session", name="begin", status_code=201, response_model=given("AgentSession"))
@aside
def begin_anew(here: Here, me: Me) -> object:
    """Begins a new conversation with a new prompt. What came in with this token before still counts as read."""
    session = here.new_session(me)
    return {"id": session.id, "scope": session.listener.scope, "prompt": session.prompt}


@agents.post("/agent/log", response_model=given("AgentState"))
@aside
@takes("Saying")
def log(here: Here, me: Me, wish: BaseModel) -> object:
    """Records one line of the conversation in its transcript, secrets struck out."""
    session = here.session_of(me)
    session.log(**wish.model_dump())
    return {"id": session.id, "tainted": sorted(session.tainted)}


@agents.post("/agent/taint", response_model=given("AgentState"))
@aside
@takes("Tainting")
def taint(here: Here, me: Me, wish: BaseModel) -> object:
    """Says that untrusted text came into the conversation: web, tool, skill or peer."""
    session = here.session_of(me)
    session.taint(**wish.model_dump())
    return {"id": session.id, "tainted": sorted(session.tainted)}


# -- OpenAI's chat format -------------------------------------------------------------------------------------------------


class ContentPart(BaseModel):
    type: Short
    text: str = ""


class Message(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[ContentPart], Field(max_length=1_000)] | None = None

    @property
    def parts(self) -> list[ContentPart]:
        return self.content if isinstance(self.content, list) else [ContentPart(type="text", text=self.content or "")]

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if part.type in PIECES)


class Completion(BaseModel):
    """What is asked for. Fields that are not named here are ignored."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=5_000)]
    model: Short = ""
    stream: bool = False
    stream_options: dict[str, Any] | None = None
    user: Short | None = None
    n: Annotated[int, Field(ge=1, le=1)] | None = 1

    def turn(self) -> tuple[Message, str]:
        """What is said, and what the client says was said first. Raises BadArguments."""
        users = [message for message in self.messages if message.role == "user"]
        if not users or not users[-1].text.strip():
            raise BadArguments("the last message of the user's is what is said, and there is none with words in it")
        if other := [part.type for part in users[-1].parts if part.type not in PIECES]:
            raise BadArguments(f"this agent reads text alone, and the message holds {printable(other[0], 40)}")
        return users[-1], users[0].text


@openai.get("/models")
def models(here: Here) -> dict[str, Any]:
    """The one that there is: the agent who lives here."""
    about = {"id": here.home.agent, "object": "model", "created": 0, "owned_by": "anima"}
    return {"object": "list", "data": [about]}


@openai.post("/chat/completions")
async def complete(
    here: Here,
    me: Me,
    asked: Completion,
    x_anima_conversation: Named = "",
    x_openwebui_chat_id: Named = "",
    x_openwebui_user_id: Named = "",
) -> Response:
    if asked.model not in ("", "anima", here.home.agent):
        return of_openai(404, f"there is no model {printable(asked.model, 80)!r} here; ask for {here.home.agent}")
    said, first = asked.turn()
    name = x_anima_conversation or x_openwebui_chat_id or f"begins {first}"
    names = json.dumps([me.credential, asked.user or "", x_openwebui_user_id, name])
    id = str(uuid.UUID(bytes=hashlib.sha256(names.encode()).digest()[:16], version=5))
    brought = [(one.role, one.text) for one in asked.messages if one is not said and one.text.strip()]
    chat = await here.chats.do(here.chats.guest(id, me.credential, here.begin_for(me, id=id)))
    number, after = await here.chats.do(chat.say(said.text, apart=True, brought=brought))
    answer = _Answer(here, chat, number, after, asked)
    return await (answer.streamed() if asked.stream else answer.whole())


class _Answer:
    def __init__(self, here: Served, chat: LiveChat, turn: int, after: int, asked: Completion) -> None:
        self._here, self._chat, self._turn, self._after, self._asked = here, chat, turn, after, asked
        self._base = {
            "id": f"chatcmpl-{chat.id}-{turn}-{after}",
            "created": int(here.home.clock().timestamp()),
            "model": here.home.agent,
        }
        self._is_over = False

    async def whole(self) -> Response:
        text, last = "", OVER
        async for last in self._events():
            text += last.data["text"] if last.kind == "delta" else ""
        if last.kind != "done":
            return of_openai(*_wrong(last))
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(last)}
        about = {"object": "chat.completion", "system_fingerprint": self._chat.model, "usage": _usage(last)}
        return JSONResponse({**self._base, **about, "choices": [choice]})

    async def streamed(self) -> Response:
        """A stream once there is something to tell; an error before that is one with its status."""
        events = self._events()
        first = await anext(events, OVER)
        if first.kind not in ("delta", "done"):
            return of_openai(*_wrong(first))
        return told_live(self._chunks(first, events))

    async def _chunks(self, first: Event, events: AsyncIterator[Event]) -> AsyncIterator[str]:
        try:
            yield self._chunk({"role": "assistant", "content": ""})
            event: Event | None = first
            while event is not None:
                if event.kind == "delta":
                    yield self._chunk({"content": event.data["text"]})
                elif event.kind == "done":
                    yield self._chunk({}, _finish(event))
                    if (self._asked.stream_options or {}).get("include_usage"):
                        yield self._data({"choices": [], "usage": _usage(event)})
                    yield "data: [DONE]\n\n"
                else:
                    yield f"data: {json.dumps(openai_error(*_wrong(event)))}\n\n"
                event = await anext(events, None)
        finally:
            if not self._is_over:  # whoever listened has gone
                self._here.chats.soon(self._chat.stop(self._turn))

    async def _events(self) -> AsyncIterator[Event]:
        """The words of the turn, a blank line between answers of one turn, and its end."""
        between = ""
        async for events in self._chat.feed.follow(self._after):
            for event in events:
                if event.data.get("turn", self._turn) != self._turn:
                    continue
                if event.kind in ("tool", "waits"):
                    between = between and "\n\n"
                if event.kind in ("delta", "waits"):
                    between, text = " ", between.strip(" ") + event.data["text"]
                    yield Event(kind="delta", n=event.n, data={"text": text})
                if event.kind in ("done", "error", "stopped", "resync"):
                    self._is_over = True
                    yield event
                    return

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> str:
        return self._data({"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]})

    def _data(self, more: Mapping[str, Any]) -> str:
        about = {"object": "chat.completion.chunk", "system_fingerprint": self._chat.model}
        return f"data: {json.dumps({**self._base, **about, **more})}\n\n"


def _wrong(event: Event) -> tuple[int, str]:
    """The status and the sentence of a turn that came to no good end."""
    said = (event.data.get("text") or "the turn was stopped", event.data.get("hint"))
    return event.data.get("status", 500), "; ".join(filter(None, said))


def _finish(event: Event) -> str:
    return "length" if event.data["early"] else "stop"


def _usage(event: Event) -> dict[str, int]:
    tokens = event.data["tokens"]
    total = tokens["input"] + tokens["output"]
    return {"prompt_tokens": tokens["input"], "completion_tokens": tokens["output"], "total_tokens": total}
