"""One conversation in each library that there is an adapter for, against a scripted model server on loopback.

Promise: the library runs as it does for anybody; only its model stands on loopback. `lookup` is a tool that is not the home's.
Not here: what must hold (connect/test_adapters).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from anima import Session
from anima.testing.models import ModelServer, Spoken

PAGE = "The page says that the moon is made of cheese."
Answered = list[str]


class Lodged:
    """How one library is used. `says` holds the person's turns, in one conversation."""

    needs: str
    quotes = True  # whether its tools can quote what the owner typed
    own_tools: tuple[str, ...] = ()  # tools of the app's that only reach into the home

    def write(self, text: str) -> Spoken:
        return Spoken(calls=[("memory_write", {"target": "memory", "content": text})])

    def quote(self, text: str) -> Spoken:
        return Spoken(calls=[("memory_write", {"target": "memory", "quote": text})])

    def recall(self, words: str) -> Spoken:
        return Spoken(calls=[("memory_search", {"query": words})])

    def lookup(self) -> Spoken:
        return Spoken(calls=[("lookup", {"topic": "moon"})])

    def talk(self, session: Session, server: ModelServer, *says: str) -> Answered:
        return asyncio.run(self.converse(session, server, says))

    async def converse(self, session: Session, server: ModelServer, says: tuple[str, ...]) -> Answered:
        raise NotImplementedError


def lookup(topic: str) -> str:
    """Look something up on the web."""
    return PAGE


class PydanticAI(Lodged):
    needs = "pydantic_ai"

    async def converse(self, session: Session, server: ModelServer, says: tuple[str, ...]) -> Answered:
        from openai import AsyncOpenAI
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        from anima.connect.adapters.pydantic_ai import Lodging, past

        async with AsyncOpenAI(base_url=server.url, api_key=server.key) as client:
            model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
            agent = Agent(model, capabilities=[Lodging(session)], tools=[lookup])
            history, answers = past(session), []
            for text in says:
                done = await agent.run(text, message_history=history)
                history = done.all_messages()
                answers.append(str(done.output))
            return answers


class Anthropic(Lodged):
    needs, quotes = "anthropic", False

    def write(self, text: str) -> Spoken:
        given = {"command": "insert", "path": "/memories/MEMORY.md", "insert_line": 15, "insert_text": f"- {text}"}
        return Spoken(calls=[("memory", given)])

    def recall(self, words: str) -> Spoken:
        return Spoken(calls=[("memory", {"command": "view", "path": "/memories/MEMORY.md"})])

    def talk(self, session: Session, server: ModelServer, *says: str) -> Answered:
        from anthropic import Anthropic as Client
        from anthropic import beta_tool

        from anima.connect.adapters.anthropic import LodgedMemory

        memory, answers = LodgedMemory(session), []
        with Client(base_url=server.url.removesuffix("/v1"), api_key=server.key) as client:
            for text in says:
                runner = client.beta.messages.tool_runner(
                    model="claude-sonnet-5",
                    max_tokens=500,
                    system=memory.prompt,
                    tools=[memory, beta_tool(lookup)],
                    messages=memory.asked(text),
                )
                for message in runner:
                    memory.record(message)
                answers.append("".join(block.text for block in message.content if block.type == "text"))
        return answers


class OpenAIAgents(Lodged):
    needs = "agents"

    async def converse(self, session: Session, server: ModelServer, says: tuple[str, ...]) -> Answered:
        from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
        from openai import AsyncOpenAI

        from anima.connect.adapters.openai_agents import LodgedSession

        set_tracing_disabled(True)
        home = LodgedSession(session)
        tools = [*home.tools, function_tool(lookup)]
        async with AsyncOpenAI(base_url=server.url, api_key=server.key) as client:
            model = OpenAIResponsesModel("m", client)
            agent = Agent(name="Aria", instructions=home.prompt, tools=tools, model=model)
            return [str((await Runner.run(agent, text, session=home, hooks=home)).final_output) for text in says]


class LangGraph(Lodged):
    needs, quotes = "langgraph", True
    own_tools = ("remember", "recall")

    def write(self, text: str) -> Spoken:
        return Spoken(calls=[("remember", {"name": "Boat & moon", "text": text})])

    def recall(self, words: str) -> Spoken:
        return Spoken(calls=[("recall", {"words": words})])

    async def converse(self, session: Session, server: ModelServer, says: tuple[str, ...]) -> Answered:
        from langchain_openai import ChatOpenAI
        from langgraph.graph import START, MessagesState, StateGraph
        from langgraph.prebuilt import ToolNode, tools_condition

        from anima.connect.adapters.langgraph import LodgedStore

        home = LodgedStore(session)
        tools = [*home.tools, lookup, *_store_tools()]
        model = ChatOpenAI(model="m", base_url=server.url, api_key=server.key).bind_tools(tools)

        async def answer(state: MessagesState) -> dict[str, Any]:
            return {"messages": [home.heard(await model.ainvoke(home.shown(state["messages"])))]}

        graph = StateGraph(MessagesState)
        graph.add_node("model", answer)
        graph.add_node("tools", ToolNode(tools, handle_tool_errors=True))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        built, messages, answers = graph.compile(store=home), home.past(), []
        for text in says:
            messages = (await built.ainvoke({"messages": [*messages, ("user", text)]}))["messages"]
            answers.append(str(messages[-1].content))
        return answers


def _store_tools() -> list[Callable[..., Any]]:
    """Tools of an app's own, over the graph's store as any tool has it."""
    from langgraph.config import get_store

    async def remember(name: str, text: str) -> str:
        """Keep something under a name."""
        await get_store().aput(("notes", "Ana"), name, {"text": text})
        return "kept"

    async def recall(words: str) -> str:
        """Find something that was kept."""
        return "\n".join(item.value["text"] for item in await get_store().asearch(("notes",), query=words))

    return [remember, recall]


class AgentScope(Lodged):
    needs = "agentscope"

    async def converse(self, session: Session, server: ModelServer, says: tuple[str, ...]) -> Answered:
        from agentscope.agent import Agent
        from agentscope.credential import OpenAICredential
        from agentscope.message import UserMsg
        from agentscope.model import OpenAIChatModel
        from agentscope.permission import PermissionBehavior, PermissionDecision
        from agentscope.state import AgentState
        from agentscope.tool import FunctionTool, Toolkit

        from anima.connect.adapters.agentscope import LodgedMiddleware

        home = LodgedMiddleware(session)
        may = PermissionDecision(behavior=PermissionBehavior.ALLOW, message="")
        agent = Agent(
            name="Aria",
            system_prompt="Answer in one sentence.",
            model=OpenAIChatModel(OpenAICredential(api_key=server.key, base_url=server.url), "m"),
            toolkit=Toolkit(tools=[*home.tools, FunctionTool(lookup, permission=may)]),
            middlewares=[home],
            state=AgentState(context=home.past()),
        )
        return [(await agent.reply(UserMsg(name="Ana", content=text))).get_text_content() or "" for text in says]


class ClaudeSDK(Lodged):
    needs = "claude_agent_sdk"
    _tools: Mapping[str, str] = {}

    def write(self, text: str) -> Spoken:
        return _over_mcp(super().write(text))

    def quote(self, text: str) -> Spoken:
        return _over_mcp(super().quote(text))

    def recall(self, words: str) -> Spoken:
        return _over_mcp(super().recall(words))

    def lookup(self) -> Spoken:
        return _over_mcp(super().lookup(), "web")

    async def converse(self, session: Session, server: ModelServer, says: tuple[str, ...]) -> Answered:
        from claude_agent_sdk import AssistantMessage, ClaudeSDKClient, TextBlock, create_sdk_mcp_server, tool

        from anima.connect.adapters.claude_sdk import LodgedClaude

        @tool("lookup", "Look something up on the web.", {"topic": str})
        async def look(given: dict[str, Any]) -> dict[str, Any]:
            return {"content": [{"type": "text", "text": lookup(given["topic"])}]}

        place = Path(os.environ["ANIMA_CONFIG"]) / f"claude-{len(server.requests)}"  # another machine each time
        place.mkdir(parents=True, exist_ok=True)
        options = LodgedClaude(session).options(
            mcp_servers={"web": create_sdk_mcp_server("web", tools=[look])},
            allowed_tools=["mcp__web__lookup"],
            tools=[],
            setting_sources=[],
            cwd=place,
            env=_alone(server, place),
        )
        answers = []
        async with ClaudeSDKClient(options) as client:
            for text in says:
                await client.query(text)
                said = ""
                async for message in client.receive_response():
                    if isinstance(message, AssistantMessage):
                        said = "".join(b.text for b in message.content if isinstance(b, TextBlock)) or said
                answers.append(said)
        return answers


def _over_mcp(step: Spoken, server: str = "anima") -> Spoken:
    return Spoken(calls=[(f"mcp__{server}__{name}", given) for name, given in step.calls])


def _alone(server: ModelServer, place: Path) -> dict[str, str]:
    """An environment in which Claude Code knows no account and asks nobody but the server."""
    return {
        "ANTHROPIC_BASE_URL": server.url.removesuffix("/v1"),
        "ANTHROPIC_API_KEY": server.key,
        "CLAUDE_CONFIG_DIR": str(place / "config"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "HOME": str(place),
    }


LODGED: dict[str, Lodged] = {
    "pydantic-ai": PydanticAI(),
    "anthropic": Anthropic(),
    "openai-agents": OpenAIAgents(),
    "langgraph": LangGraph(),
    "claude-agent-sdk": ClaudeSDK(),
    "agentscope": AgentScope(),
}


def there() -> list[str]:
    """The libraries to test with: the one that is asked for (ADAPTER), else those of this environment."""
    only = os.environ.get("ADAPTER")
    return [name for name, each in LODGED.items() if only in (None, name) and find_spec(each.needs) is not None]
