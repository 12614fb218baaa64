"""A Conversation: a person and a model, turn by turn, in one session.

Promise: the transcript is the record. Every request is made from entries, so that a conversation goes on after a kill as
it would have gone on without. Before a cut what matters is written down; without a summary nothing is cut; a request
that overflows is made again once, after a cut. Stopping a turn keeps what was said.
Not here: how it looks (cli), the hooks into pydantic-ai, and the wordings of what is cut (lodging).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Self

import pydantic_ai as ai
from pydantic_ai.direct import model_request
from pydantic_ai.models import Model as ChatModel
from pydantic_ai.toolsets import AbstractToolset

from anima.agent import WORDS, framed, lodging
from anima.agent.desk import Delegates, Desk, Purse
from anima.agent.desk import Happening as Happening
from anima.agent.lodging import Lodging
from anima.agent.schedule import news_for
from anima.errors import HomeError
from anima.home import Home
from anima.sessions.hand import OpenCall
from anima.sessions.replay import Turn, clean
from anima.sessions.session import Session

ai.BANNER_ENABLED = False

REQUESTS = 40  # to the model, in one turn
LEAST = 400  # tokens that are kept word for word, however small the window is
KEPT = 0.25  # of the window, for what is kept word for word after a cut
SHOWN = 0.4  # of the window, for what the summary is made from
SUMMARY = 8_000  # characters


class ModelDown(HomeError):
    """The model did not answer usably; what was said is kept. `final`: asking again will not go better (key, account)."""

    def __init__(self, message: str, *, hint: str | None = None, final: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.final = final


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What came of a turn. `early`: it ends before its end. `waiting`: it ends until the owner decided these cards; then `go_on`."""

    text: str
    calls: tuple[Mapping[str, Any], ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    early: bool = False
    waiting: tuple[str, ...] = ()


class _TooLong(Exception):
    """The context is near its limit, in the middle of a turn."""


class Conversation:
    """One conversation. Use it in an `async with`, which opens and closes the way to the model."""

    def __init__(
        self,
        session: Session,
        model: ChatModel,
        *,
        heard: Callable[[Happening], None] = lambda what: None,
        toolsets: Sequence[AbstractToolset[Any]] = (),
        only: Collection[str] | None = None,
        attended: bool = True,
        made: Callable[[str], ChatModel] | None = None,
        requests: int = REQUESTS,
        purse: Purse | None = None,
        line: tuple[str, ...] = (),
    ) -> None:
        """`toolsets` are tools beside the session's, whose results are text from outside; `only` names those of all others that
        there are; `purse` is how many tokens the whole conversation may use, with all it sets to work, and `requests` how
        often one turn asks the model. Where nobody is there to decide (not `attended`, and in cron, heartbeat and
        sub-agents' sessions) a call that would wait for the owner is refused, and told of as a `notice`. `made` gives a
        model by its name, for sub-agents that have one of their own; `line` is that of one whom another
        agent called."""
        self.session, self.model, self._heard, self._toolsets = session, model, heard, toolsets
        self.purse, self._requests = purse or Purse(), requests
        beside = session.site.beside
        delegates = Delegates(
            session=session,
            line=line or (session.site.agent,),
            only=only,
            purse=self.purse,
            model=model,
            made=made,
            begun=Conversation,
            opened=(lambda agent: Home(beside(agent=agent))) if beside is not None else None,
            notice=lambda text: heard(Happening(kind="notice", text=text)),
        )
        self._desk = Desk(session, heard=heard, attended=attended, delegates=delegates)
        session.news()  # is among the entries, and has to be taken in
        summary, turns = session.context()
        self._turns = list(turns)
        if turns or summary:  # what a model must know that takes a conversation up
            known = (framed("summary", summary) if summary else "", session.noted(), delegates.broke_off())
            self._told = "\n\n".join(filter(None, known))
        else:
            self._told = news_for(session)
        self._meanwhile = list[str]()
        self._lodging = Lodging(session, told=self._turns.append, before=self._look, used=self._counted, only=only)
        self._lodging.meanwhile, self._lodging.reach = self._said_meanwhile, self._desk.reached
        self._tokens, self._seen = 0, 0  # what the last request had, and how many entries it was made from
        self._is_cut = False  # in this turn
        self._limit = 0  # tokens: as configured, or less, where a service said that it was full; 0: not known
        self.usage, self._ways = ai.RunUsage(), AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._ways.enter_async_context(self.model)
        self._ways.push_async_callback(self._desk.close)
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self._ways.aclose()

    async def turn(self, text: str, **about: str) -> Answered:
        """What the model answers. Raises ModelDown; stopped from outside, what was said until then is kept. What the person
        says is a no to every call that still waits for the owner. `about` is its `message_id` and `sender_id`."""
        self._lodging.about = about
        self._turns += await asyncio.to_thread(self.session.news)
        async for answered in self._desk.settled(instead=bool(text)):
            self._turns.append(lodging.called(*answered))
        if not text and (waiting := await asyncio.to_thread(self.session.outside.open)):
            return _waits(waiting)
        if not text and (not self._turns or self._turns[-1].role == "assistant"):
            return Answered(text="")
        self._is_cut, said = False, clean(text) or None
        for is_again in (False, True):
            try:
                return await self._run(said)
            except _TooLong:
                why = "the context is nearly full"
            except ai.ModelAPIError as error:
                if is_again or not is_overflow(error):
                    raise _down(error) from error
                why = "the context was full"
                self._limit = min(self._limit, self._in_context() * 2 // 3)  # whatever the configuration says
            except (ai.AgentRunError, ai.UserError) as error:
                raise _down(error) from error
            said = None  # it is on record, and among the entries
            if not await self.compact(why):
                raise ModelDown("this does not fit into the model's context, and there is nothing left to cut")
        raise ModelDown("this does not fit into the model's context")

    async def go_on(self) -> Answered:
        """The answer still owed: after the owner decided the calls that waited, or to what was said when a turn was cut short."""
        return await self.turn("")

    def steer(self, text: str) -> None:
        """What the person says while a turn goes on: the model hears it with its next request, if there is one."""
        self._meanwhile.append(clean(text))

    def unheard(self) -> str:
        """What was said while a turn went on and came too late for it; it is the next one's, and given once."""
        said, self._meanwhile = "\n\n".join(self._meanwhile), []
        return said

    def _said_meanwhile(self) -> Sequence[str]:
        said, self._meanwhile = self._meanwhile, []
        for text in said:
            self._heard(Happening(kind="said", text=text))
        return said

    def bring(self, name: str, text: str) -> None:
        """Takes in text from outside that came with what the person says next, on record as said by this name. Blocks."""
        self._lodging.log("tool", clean(text), name=name)

    async def _run(self, said: str | None) -> Answered:
        self._lodging.outside = await self._desk.tools()
        history = lodging.messages_of(self._turns, self._told)
        self._lodging.heard |= lodging.marks(history)
        kinds: Any = [str, ai.DeferredToolRequests] if any(tool.asks for tool in self._lodging.outside) else str
        agent = ai.Agent(
            self.model, capabilities=[self._lodging], toolsets=self._toolsets, retries=3, output_type=kinds
        )
        limits = ai.UsageLimits(request_limit=self._requests)
        calls: list[Mapping[str, Any]] = []
        async with agent.run_stream_events(said, message_history=history, usage_limits=limits) as events:
            async for event in events:
                if (what := _happening(event)) is not None:
                    if what.kind == "tool":
                        calls.append({"name": what.name, "arguments": what.data})
                    self._heard(what)
            result = events.result
        assert result is not None
        self.usage += result.usage
        heard, spoken = result.usage.input_tokens, result.usage.output_tokens
        waits = Answered(text=result.output) if isinstance(result.output, str) else _waits(self.session.outside.open())
        text, early = _text_in(result.response) or waits.text, lodging.is_early(result.response)
        return replace(waits, text=text, calls=tuple(calls), input_tokens=heard, output_tokens=spoken, early=early)

    def _counted(self, tokens: int) -> None:
        self.purse.take(max(tokens, self._estimate()))  # what a server says of it may be nothing
        self._tokens, self._seen = tokens, len(self._turns)

    def _look(self) -> None:
        """Before each request: near the limit what matters is written down, and the run stops for a cut."""
        tokens = self._in_context()
        if most := self.purse.short_of(max(tokens, self._estimate())):
            raise ModelDown(f"the {most:,} tokens that this may use are used up")
        pressure = self.session.pressure(tokens)
        self._limit = min(self._limit or pressure.limit, pressure.limit)
        is_near = pressure.near or tokens >= self._limit
        if is_near and not self._is_cut and lodging.kept_from(self._turns, self._room()) > 0:
            raise _TooLong

    def _in_context(self) -> int:
        if self._tokens:
            return self._tokens + sum(map(lodging.weight, self._turns[self._seen :]))
        return self._estimate()

    def _estimate(self) -> int:
        return lodging.tokens_of(self.session.prompt.text, self._told) + sum(map(lodging.weight, self._turns))

    def _room(self) -> int:
        """How many tokens stay word for word after a cut: a share of the window, and half of what prompt and tools leave."""
        window = self.session.site.config.sessions.window
        prompt, said = lodging.tokens_of(self.session.prompt.text), sum(map(lodging.weight, self._turns))
        base = max(prompt, self._in_context() - said)
        return max(LEAST, min(int(window * KEPT), ((self._limit or window) - base) // 2))

    async def compact(self, why: str = "") -> bool:
        """Writes down what matters, has what goes summed up, and cuts: what fits stays, and by command, without a `why`, the
        last turn. False where there is nothing to cut. Raises ModelDown where there is no summary: then nothing is cut."""
        room = self._room()
        at = lodging.kept_from(self._turns, room if why else 0)
        gone, kept = self._turns[:at], self._turns[at:]
        if not gone and (len(kept) < 4 or sum(map(lodging.weight, kept)) <= room):
            return False
        self._is_cut, before = True, self._in_context()
        loop = asyncio.get_running_loop()

        def complete(prompt: str) -> str:
            return asyncio.run_coroutine_threadsafe(self._asked(prompt), loop).result()

        await asyncio.to_thread(self.session.flush, "compaction", complete=complete)
        room_shown = int((self._limit or self.session.site.config.sessions.window) * SHOWN) * 4
        try:
            asked = summary_wanted(gone or kept, told=self._told, room=room_shown)
            summary = (await self._asked(asked)).strip()[:SUMMARY]
        except (ai.AgentRunError, ai.UserError) as error:
            raise ModelDown(f"no summary could be made, so nothing was cut: {_down(error)}") from error
        if not summary:
            raise ModelDown("the model gave no summary, so nothing was cut")
        since = kept[0].number if kept[0].number >= 0 else None  # which nobody numbers where no transcript is kept
        told = await asyncio.to_thread(
            self.session.after_compaction, tokens=before, summary=summary, kept=len(kept), since=since
        )
        self._told = f"{told}\n\n{framed('summary', summary)}"
        self._turns[:] = kept if gone else lodging.thinned(kept, room)
        self._tokens = self._seen = 0
        self._heard(Happening(kind="compaction", text=why or "you asked for it", data={"tokens": before}))
        return True

    async def _asked(self, prompt: str) -> str:
        made = await _answer_to(self.model, prompt)
        heard, said = made.usage.input_tokens, made.usage.output_tokens
        self.purse.take(heard + said)
        self.usage += ai.RunUsage(requests=1, input_tokens=heard, output_tokens=said)
        return _text_in(made)


async def asked_once(model: ChatModel, prompt: str) -> str:
    """One answer of a model, to see whether it answers. Raises ModelDown."""
    try:
        async with model:
            return _text_in(await _answer_to(model, prompt))
    except (ai.AgentRunError, ai.UserError) as error:
        raise _down(error) from error


async def _answer_to(model: ChatModel, prompt: str) -> ai.ModelResponse:
    settings = ai.ModelSettings(timeout=lodging.SILENCE, request_timeout=lodging.REQUEST)
    return await model_request(model, [ai.ModelRequest.user_text_prompt(prompt)], model_settings=settings)


def _text_in(made: ai.ModelResponse) -> str:
    return "".join(part.content for part in made.parts if isinstance(part, ai.TextPart))


def _waits(waiting: Sequence[OpenCall]) -> Answered:
    names = ", ".join(each.name for each in waiting)
    return Answered(text=f"(This waits for your yes: {names}.)", waiting=tuple(each.id for each in waiting))


def _happening(event: object) -> Happening | None:
    match event:
        case (
            ai.PartStartEvent(part=ai.TextPart(content=text))
            | ai.PartDeltaEvent(delta=ai.TextPartDelta(content_delta=text))
        ):
            return Happening(kind="delta", text=text) if text else None
        case (
            ai.PartStartEvent(part=ai.ThinkingPart(content=thought))
            | ai.PartDeltaEvent(delta=ai.ThinkingPartDelta(content_delta=thought))
        ):
            return Happening(kind="thinking", text=thought or "")
        case ai.FunctionToolCallEvent(part=part):
            return Happening(kind="tool", name=part.tool_name, data=part.args_as_dict())
        case ai.FunctionToolResultEvent(part=part):
            data = part.content if isinstance(part.content, dict) else {"text": str(part.content)}
            return Happening(kind="tool_result", name=part.tool_name or "", data=data)
    return None


def summary_wanted(turns: Sequence[Turn], *, told: str, room: int) -> str:
    """What a model is asked before a cut: the task, and what was said, as data."""
    lines, left = list[str](), room
    for turn in reversed(turns):
        who = f"tool {turn.name} {turn.call.get('arguments')}" if turn.call is not None else turn.role
        line = f"{who}: {turn.content[:2_000]}"
        if (left := left - len(line)) < 0:
            lines.append("[what came before is left out]")
            break
        lines.append(line)
    return framed("conversation", "\n".join([*([told[-SUMMARY * 2 :]] if told else []), *reversed(lines)]))


_OVERFLOW = re.compile(
    r"exceed_context_size|context[_ ](?:length|size|window)|prompt is too long|maximum context|num_ctx|too many tokens",
    re.I,
)


def is_overflow(error: BaseException) -> bool:
    """Whether a service says that the context is full: OpenAI, Anthropic, llama.cpp and those that speak like them."""
    if not isinstance(error, ai.ModelHTTPError) or error.status_code not in (400, 413, 422, 500):
        return isinstance(error, ai.ModelContextWindowExceededError)
    return isinstance(error, ai.ModelContextWindowExceededError) or bool(_OVERFLOW.search(f"{error.body} {error}"))


def _down(error: BaseException) -> ModelDown:
    names = ((name, getattr(ai, name) if name != "Exception" else Exception) for name in WORDS["wrong"])
    said, hint = WORDS["wrong"][next(name for name, kind in names if isinstance(error, kind))]
    said = said.format(status=getattr(error, "status_code", ""), kind=type(error).__name__)
    return ModelDown(said, hint=hint, final=isinstance(error, ai.ModelAuthenticationError | ai.ModelQuotaExceededError))
