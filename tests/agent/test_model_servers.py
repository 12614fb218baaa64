"""The scripted model servers speak so that the real clients of the services understand them, faults included."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent, Tool
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelRateLimitError,
    ModelServerError,
)
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from anima.testing.models import ModelServer, Spoken

Made = Callable[..., Model]


def chat(server: ModelServer, key: str = "") -> Model:
    return OpenAIChatModel("m", provider=OpenAIProvider(base_url=server.url, api_key=key or server.key))


def responses(server: ModelServer, key: str = "") -> Model:
    return OpenAIResponsesModel("m", provider=OpenAIProvider(base_url=server.url, api_key=key or server.key))


def anthropic(server: ModelServer, key: str = "") -> Model:
    url = server.url.removesuffix("/v1")
    return AnthropicModel("m", provider=AnthropicProvider(base_url=url, api_key=key or server.key))


THREE = pytest.mark.parametrize("made", [chat, responses, anthropic])


async def whole(agent: Agent[None, str], text: str) -> str:
    async with agent:
        return (await agent.run(text)).output


async def streamed(agent: Agent[None, str], text: str) -> str:
    async with agent, agent.run_stream_events(text) as events:
        async for _ in events:
            pass
        return str(events.result.output)


@THREE
@pytest.mark.parametrize("how", ["whole", "streamed"])
def test_text_and_parallel_calls_arrive(made: Made, how: str) -> None:
    seen: list[tuple[str, str]] = []

    def look(**given: Any) -> str:
        seen.append(("look", given["at"]))
        return f"{given['at']} is there"

    schema = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
    tool = Tool.from_schema(look, name="look", description="Looks.", json_schema=schema)
    script = [
        Spoken("One moment.", calls=[("look", {"at": "boat"}), ("look", {"at": "dog"})]),
        Spoken("Both are there."),
    ]
    with ModelServer(script) as server:
        agent = Agent(made(server), instructions="You are a test.", tools=[tool])
        answer = asyncio.run((whole if how == "whole" else streamed)(agent, "Are they?"))

    assert answer == "Both are there."
    assert sorted(seen) == [("look", "boat"), ("look", "dog")]
    assert len(server.requests) == 2
    assert all("You are a test." in asked.prompt for asked in server.requests)
    assert "boat is there" in server.requests[1].said and "dog is there" in server.requests[1].said


@THREE
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("429", ModelRateLimitError),
        ("500", ModelServerError),
        ("malformed", Exception),
        ("overflow", ModelContextWindowExceededError),
        ("llama.cpp", ModelAPIError),
    ],
)
def test_a_fault_is_the_error_the_service_would_give(made: Made, fault: Any, error: type[Exception]) -> None:
    with ModelServer([Spoken(fault=fault)]) as server:
        with pytest.raises(error):
            asyncio.run(streamed(Agent(made(server)), "Hello"))

    assert len(server.requests) == 1


@THREE
def test_a_wrong_key_is_refused(made: Made) -> None:
    with ModelServer() as server:
        with pytest.raises(ModelAuthenticationError):
            asyncio.run(streamed(Agent(made(server, "stolen")), "Hello"))


@THREE
def test_a_silent_server_is_given_up(made: Made) -> None:
    with ModelServer([Spoken(fault="silent")]) as server:
        agent = Agent(made(server), model_settings={"first_event_timeout": 0.2})
        with pytest.raises((AgentRunError, TimeoutError)):
            asyncio.run(streamed(agent, "Hello"))


def test_a_window_overflows_by_size() -> None:
    with ModelServer([Spoken("short")], window=2_000) as server:
        assert asyncio.run(streamed(Agent(chat(server)), "Hello")) == "short"
        with pytest.raises(ModelContextWindowExceededError):
            asyncio.run(streamed(Agent(chat(server)), "Hello " * 1_000))
