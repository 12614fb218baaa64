"""MCP servers as a conversation reaches them: a program on this machine over its standard streams, or an address.

Promise: a server has a task of its own, in which its connection is opened and closed, and is started anew for the next
call when it is gone. One message has at most `LINE` bytes and one answer over HTTP `BODY`; whoever sends more is cut
off. A program hears of the environment what the owner named and where programs are, its words go to no terminal, and
all that it started ends with it. Not here: what is offered to a model, and how it is told (desk).
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import anyio
import httpx2
from mcp.client import Transport
from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, CallToolResult, Tool, jsonrpc_message_adapter

from anima.errors import HomeError
from anima.model import OutsideServer
from mcp import Client, MCPError

T = TypeVar("T")
START = 30.0  # seconds to say which tools there are
LINE = 4 * 2**20  # bytes
BODY = 16 * 2**20
MESSAGES = 100_000  # of one connection
GRACE = 2.0  # seconds that a program has to end by itself
UNKNOWN = "whether it was done is not known: look before you call it again"


class ServerGone(HomeError):
    """A server did not start, ended, did not answer in time, or answered that something is wrong."""


class Server:
    """One server. Close it."""

    def __init__(self, config: OutsideServer, env: Mapping[str, str]) -> None:
        self.config, self._env = config, env
        self._task: asyncio.Task[None] | None = None
        self._client: asyncio.Future[Client] | None = None
        self._leave = asyncio.Event()

    async def tools(self, most: int) -> list[Tool]:

        async def listed() -> list[Tool]:
            client, found, cursor = await self._connected(), list[Tool](), None
            while len(found) < most:
                page = await client.list_tools(cursor=cursor, cache_mode="bypass")
                found += page.tools
                if not (cursor := page.next_cursor):
                    break
            return found[:most]

        return await self._tried(listed(), START)

    async def call(self, tool: str, given: Mapping[str, Any], seconds: float) -> CallToolResult:
        async def called() -> CallToolResult:
            return await (await self._connected()).call_tool(tool, dict(given))

        return await self._tried(called(), seconds)

    async def close(self) -> None:
        if self._task is not None:
            self._leave.set()
            done, _ = await asyncio.wait({self._task}, timeout=3 * GRACE)
            if not done:
                self._task.cancel()
                await asyncio.wait({self._task}, timeout=GRACE)
        self._task = self._client = None

    async def _tried(self, work: Awaitable[T], seconds: float) -> T:
        """What comes of it; any way in which a stranger's program can fail is one error, and ends the connection."""
        name = self.config.name
        try:
            return await asyncio.wait_for(work, seconds)
        except TimeoutError:
            await self.close()
            raise ServerGone(f"{name} did not answer in {seconds:.0f} seconds", hint=UNKNOWN) from None
        except asyncio.CancelledError:
            raise
        except Exception as error:
            is_answer = isinstance(error, MCPError) and error.code != CONNECTION_CLOSED  # it is well, and this is wrong
            if (self._task is not None and self._task.done()) or not is_answer:
                await self.close()
                why = str(error) if isinstance(error, ServerGone) else type(error).__name__
                raise ServerGone(f"{name} did not start, or ended ({why})", hint=UNKNOWN) from None
            raise ServerGone(f"{name} says that this is wrong: {str(error)[:400]}") from None

    async def _connected(self) -> Client:
        if self._task is None or self._task.done():
            self._leave = asyncio.Event()
            self._client = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._held(self._client, self._leave))
        assert self._client is not None
        return await asyncio.shield(self._client)

    async def _held(self, opened: asyncio.Future[Client], leave: asyncio.Event) -> None:
        """Opens the connection and keeps it, in one task from the beginning to the end."""
        try:
            async with Client(self._transport(), cache=None) as client:
                opened.set_result(client)
                await leave.wait()
        except BaseException as error:
            if not opened.done():
                opened.set_exception(ServerGone(type(error).__name__))
                opened.exception()  # whoever waited for it may have gone
            if not isinstance(error, Exception):
                raise

    def _transport(self) -> Transport:
        told = {name: self._env.get(value[1:], "") if value[:1] == "$" else value for name, value in self.config.env}
        if self.config.command:
            around = {name: self._env[name] for name in DEFAULT_INHERITED_ENV_VARS if name in self._env}
            return _piped([self.config.command, *self.config.args], around | told)
        token = self._env.get(self.config.bearer, "") if self.config.bearer else ""
        return _over_http(self.config.url, {"Authorization": f"Bearer {token}"} if token else {})


@asynccontextmanager
async def _piped(command: list[str], env: Mapping[str, str]) -> AsyncIterator[Any]:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=dict(env),
        limit=LINE,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None
    stdin, stdout = process.stdin, process.stdout
    theirs, ours = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, leaving = anyio.create_memory_object_stream[SessionMessage](0)

    async def hears() -> None:
        async with theirs:
            with suppress(ValueError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                for _ in range(MESSAGES):
                    if not (line := await stdout.readline()):  # a line that is too long is a ValueError
                        return
                    with suppress(ValueError):  # what is no message is passed over
                        message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
                        await theirs.send(message)

    async def says() -> None:
        async with leaving:
            async for message in leaving:
                stdin.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                with suppress(OSError):
                    await stdin.drain()

    async def drains() -> None:
        with suppress(OSError):
            while await stdout.read(LINE):
                pass

    both = [asyncio.create_task(hears()), asyncio.create_task(says())]
    try:
        yield ours, outgoing
    finally:
        for task in both:
            task.cancel()
        await asyncio.wait(both)
        stdin.close()
        rest = asyncio.create_task(drains())  # nobody ends who cannot say the rest
        with suppress(TimeoutError, OSError):
            await asyncio.wait_for(process.wait(), GRACE)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # and whatever it started
        await process.wait()
        await rest
        for stream in (theirs, ours, outgoing, leaving):
            stream.close()


@asynccontextmanager
async def _over_http(url: str, headers: Mapping[str, str]) -> AsyncIterator[Any]:
    timeout = httpx2.Timeout(START, read=None)  # the one who asks says how long a call may take
    headers = {"Accept-Encoding": "identity", **headers}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, transport=_Bounded()) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=LINE) as streams,
    ):
        yield streams


class _Bounded(httpx2.AsyncHTTPTransport):
    """Past every proxy, and no more than `BODY` of an answer, which is as long as it looks."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.ReadError("the answer is packed, which nobody asked for")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _AtMost(response.stream)
        return response


class _AtMost(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = BODY
        async for piece in self._stream:
            if (left := left - len(piece)) < 0:
                raise httpx2.ReadError("the answer is too long")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
