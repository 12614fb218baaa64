"""OpenAI's chat format over the home, for programs that speak it: `/v1/models` and `/v1/chat/completions`.

Promise: the token fixes scope and sender, and nothing in a request widens them: `user` and headers only keep conversations
apart. The last message of the user's is the turn; whatever else a client sends is text from outside, unless it is what was
said here. One request is one turn; a client that leaves a stream stops it, and what was said is kept.
Not here: how a turn runs (chats), the envelope of errors (problems).
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response, StreamingResponse

from anima.agent import Event
from anima.agent.chats import Chat
from anima.errors import BadArguments, printable
from anima.web.problems import of_openai, openai_error
from anima.web.served import Here, Me, Served

router = APIRouter(prefix="/v1", include_in_schema=False)
Short = Annotated[str, Field(max_length=200)]
Named = Annotated[str, Header(max_length=200)]
PIECES = frozenset({"text", "input_text"})
OVER = Event(kind="stopped", n=0)


class ContentPart(BaseModel):
    """A piece of a message."""

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


@router.get("/models")
def models(here: Here) -> dict[str, Any]:
    """The one that there is: the agent who lives here."""
    about = {"id": here.home.agent, "object": "model", "created": 0, "owned_by": "anima"}
    return {"object": "list", "data": [about]}


@router.post("/chat/completions")
async def complete(
    here: Here,
    me: Me,
    asked: Completion,
    x_anima_conversation: Named = "",
    x_openwebui_chat_id: Named = "",
    x_openwebui_user_id: Named = "",
) -> Response:
    """One turn."""
    if asked.model not in ("", "anima", here.home.agent):
        return of_openai(404, f"there is no model {printable(asked.model, 80)!r} here; ask for {here.home.agent}")
    said, first = asked.turn()
    name = x_anima_conversation or x_openwebui_chat_id or f"begins {first}"
    names = json.dumps([me.credential, asked.user or "", x_openwebui_user_id, name])
    id = str(uuid.UUID(bytes=hashlib.sha256(names.encode()).digest()[:16], version=5))
    begin = partial(
        here.home.sessions.begin,
        scope=here.scope_of(me),
        sender=me.sender,
        channel="http" if me.sender is None else None,  # a sender says their channel themselves
        access=me.access,
        guest=(me.credential, me.name),
        id=id,
    )
    brought = [(one.role, one.text) for one in asked.messages if one is not said and one.text.strip()]
    chat = await here.chats.do(here.chats.guest(id, me.credential, begin))
    number, after = await here.chats.do(chat.say(said.text, apart=True, brought=brought))
    answer = _Answer(here, chat, number, after, asked)
    return await (answer.streamed() if asked.stream else answer.whole())


class _Answer:
    """A turn as it is told to a client."""

    def __init__(self, here: Served, chat: Chat, turn: int, after: int, asked: Completion) -> None:
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
        head = {"X-Accel-Buffering": "no"}
        return StreamingResponse(self._chunks(first, events), media_type="text/event-stream", headers=head)

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
