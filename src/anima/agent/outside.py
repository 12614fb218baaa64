"""Tools from outside: those of the MCP servers that the owner named, as a model is offered them.

Promise: no tool has the name of one of the home's, because two underscores stand in every name here and in none there;
what is not on the owner's list of reading tools asks first, whatever a server says of itself. Descriptions are text from
outside until the owner vouches for exactly them. A call never raises: whatever goes wrong is a sentence, and what a tool
says is cut. Not here: connections (servers), who is asked and what is on record (conversation, sessions.hand).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anima.errors import HomeError, MissingExtra
from anima.model import OutsideServer
from anima.sessions.replay import clean

if TYPE_CHECKING:
    from mcp_types import CallToolResult, Tool

    from anima.agent.servers import Server

CALL = 120.0  # seconds
MOST = 16_000  # characters of an answer
ABOUT = 1_500  # characters of a description
SCHEMA = 10_000  # characters of what a tool says of its arguments
TOOLS = 100  # of one server
NAME = 64  # characters, which is what services take


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideTool:
    """A tool as a model calls it (`name`), and as its server does (`tool`)."""

    name: str
    server: str
    tool: str
    about: str
    schema: dict[str, Any]
    asks: bool


class OutsideTools:
    """The servers of one conversation. `told` hears of what does not work. Close it."""

    def __init__(
        self, servers: Sequence[OutsideServer], env: Mapping[str, str], told: Callable[[str], None] = lambda text: None
    ) -> None:
        self._configs, self._env, self._told = {each.name: each for each in servers}, env, told
        self._servers: dict[str, Server] = {}
        self._offers: dict[str, tuple[OutsideTool, ...]] = {}
        self.unseen: dict[str, str] = {}  # the digest of descriptions that nobody vouched for, by server

    async def offered(self) -> tuple[OutsideTool, ...]:
        """What there is; a server that did not answer is asked again the next time."""
        missing = [name for name in self._configs if name not in self._offers]
        for name, found in zip(missing, await asyncio.gather(*map(self._asked, missing)), strict=True):
            if found is not None:
                self._offers[name] = found
        return tuple(tool for tools in self._offers.values() for tool in tools)

    async def _asked(self, name: str) -> tuple[OutsideTool, ...] | None:
        config = self._configs[name]
        try:
            listed = await self._server(name).tools(TOOLS)
        except HomeError as error:
            self._told(f"no tools of {name}: {error}")
            return None
        found, left_out = offers(config, listed)
        if left_out:
            self._told(f"{name}: these are not offered, their names or arguments cannot be used: {', '.join(left_out)}")
        if found and (digest := digest_of(found)) != config.seen:
            self.unseen[name] = digest
        return found

    async def call(self, server: str, tool: str, given: Mapping[str, Any]) -> str:
        """What a tool says, cut; or what went wrong."""
        if server not in self._configs:
            return f"there is no server {server} any more; nothing was done"
        try:
            return cut(said(await self._server(server).call(tool, given, CALL)))
        except HomeError as error:
            return "; ".join(filter(None, (str(error), error.hint)))

    def _server(self, name: str) -> Server:
        try:
            from anima.agent.servers import Server
        except ModuleNotFoundError:
            raise MissingExtra("serve", "a tool from outside") from None
        if name not in self._servers:
            self._servers[name] = Server(self._configs[name], self._env)
        return self._servers[name]

    async def close(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers.values()))


def offers(config: OutsideServer, listed: Sequence[Tool]) -> tuple[tuple[OutsideTool, ...], list[str]]:
    """What a server's list comes to, and the names that were left out."""
    found, left_out = dict[str, OutsideTool](), list[str]()
    for each in listed:
        name = f"{config.name}__{re.sub(r'[^A-Za-z0-9_-]', '_', each.name)}"
        if config.only and each.name not in config.only:
            continue
        schema = each.input_schema
        is_sound = each.name.isprintable() and schema.get("type") == "object" and len(json.dumps(schema)) <= SCHEMA
        if not each.name or len(name) > NAME or name in found or not is_sound:
            left_out.append(clean(each.name)[:NAME])
            continue
        found[name] = OutsideTool(
            name=name,
            server=config.name,
            tool=each.name,
            about=cut(clean(each.description or ""), ABOUT),
            schema=schema,
            asks=each.name not in config.reads,
        )
    return tuple(found.values()), left_out


def digest_of(tools: Sequence[OutsideTool]) -> str:
    """Differs when what a model is told of these tools does."""
    told = sorted([tool.name, tool.about, json.dumps(tool.schema, sort_keys=True)] for tool in tools)
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def said(result: CallToolResult) -> str:
    """An answer as text; pictures and files are named only."""
    texts = [each.text if each.type == "text" else f"[{each.type}, not shown]" for each in result.content]
    if not texts and result.structured_content is not None:
        texts = [json.dumps(result.structured_content, ensure_ascii=False)]
    return clean(("It went wrong. " if result.is_error else "") + ("\n".join(texts) or "(it says nothing)"))


def cut(text: str, most: int = MOST) -> str:
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters)"
