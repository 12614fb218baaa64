"""The owner's conversations over HTTP: begun, taken up, followed, stopped.

Promise: a turn is asked for by one request and told by another, as server-sent events that can be taken up where they broke
off, by any number of listeners; nobody but the owner is here. Not here: how a turn runs (chats), cards (api: pending, noted).
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from anima.agent.chats import cards
from anima.web import bodies
from anima.web.problems import problem
from anima.web.served import Here, Me

router = APIRouter(prefix="/api/v1/chat", tags=["chat"])
MOST_TURNS = 400  # of a conversation that is opened


@router.get("", response_model=bodies.Items[bodies.ChatRow])
def chats(here: Here, limit: Annotated[int, Query(ge=1, le=1_000)] = 100) -> object:
    """The owner's own conversations, the latest first."""
    return {"items": here.chats.rows(limit)}


@router.post("", status_code=201)
async def begin(here: Here, wish: bodies.Telling) -> bodies.SaidIn:
    """Begins a conversation with what the owner says first."""
    chat = await here.chats.do(here.chats.begin())
    turn, after = await here.chats.do(chat.say(wish.text))
    return bodies.SaidIn(id=chat.id, turn=turn, after=after)


@router.post("/{id}", status_code=201)
async def say(here: Here, id: str, wish: bodies.Telling) -> bodies.SaidIn:
    """Says something in a conversation. While a turn runs, it is heard at its next step, or right after it."""
    chat = await here.chats.do(here.chats.get(id))
    turn, after = await here.chats.do(chat.say(wish.text))
    return bodies.SaidIn(id=chat.id, turn=turn, after=after)


@router.get("/{id}", response_model=bodies.ChatOut)
async def chat(here: Here, id: str) -> object:
    """A conversation as it stands. Of a turn that runs nothing is told here: its events begin after `after`."""
    found = await here.chats.do(here.chats.get(id))
    entries, after = await here.chats.do(found.snapshot())
    start = max(0, entries - MOST_TURNS)

    def told() -> dict[str, object]:
        turns = here.home.sessions.read(id, start=start, limit=entries - start).entries if entries else ()
        return {"turns": turns, "total": entries, "cards": cards(here.home, id)}

    about = {"id": id, "after": after, "running": found.is_running, "model": found.model, "used": found.used}
    return about | await run_in_threadpool(told)


@router.get("/{id}/events", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}})
async def events(
    here: Here,
    me: Me,
    id: str,
    after: Annotated[int | None, Query(ge=0, le=10**18)] = None,
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> Response:
    """What happens in a conversation, as server-sent events: turn, delta, thinking, tool, tool_result, steer, said, card,
    compaction, notice, done, stopped, error, resync (open it again). `Last-Event-ID`, or `after`, says what is known."""
    if here.bulletin.listeners + here.chats.listeners() >= here.limits.streams:
        return problem(429, "too many listeners", headers={"Retry-After": "5"})
    found = await here.chats.do(here.chats.get(id))
    known = last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit()
    start = int(last_event_id or 0) if known else after if after is not None else found.feed.last
    stream = found.feed.stream(start, still=lambda: here.keyring.named(me.id) is not None)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


@router.post("/{id}/stop", status_code=204)
async def stop(here: Here, id: str) -> None:
    """Stops the turn that runs. What was said until then is kept."""
    found = await here.chats.do(here.chats.get(id))
    await here.chats.do(found.stop())
