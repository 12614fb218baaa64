"""An MCP server as a process and as a guest in another app: starting, standing firm, several at once, and going."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from test_mcp import logged, run, said, sentence

from anima import Home, Scope
from anima.cli import run as anima
from anima.mcp import Visitor
from mcp_doors import ERAS, TOKEN, bearer, command, environment, http_client, served, visiting

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Home.create(tmp_path / "aria", name="Aria").close()
    return tmp_path / "aria"


def call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


class Process:
    """A server on standard streams, spoken to line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def send(self, *messages: dict[str, Any] | str) -> None:
        assert self.process.stdin is not None
        for message in messages:
            self.process.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def begin(self) -> None:
        self.send(HELLO)
        assert self.receive()["result"]["serverInfo"]["name"] == "anima"
        self.send(READY)

    def ended(self) -> tuple[int, str, str]:
        """The exit code, and what was still said on both streams."""
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out, err


@contextmanager
def started(folder: Path, *more: str, scope: str = "main", **settings: str) -> Iterator[Process]:
    process = subprocess.Popen(
        command(folder, scope, *more),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment() | settings,
    )
    try:
        yield Process(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


# -- the process -----------------------------------------------------------------------------------------------------------------


def test_standard_output_holds_nothing_but_the_protocol(folder: Path) -> None:
    with started(folder) as server:
        server.begin()
        server.send("this is not JSON", '{"jsonrpc": "2.0", "id": 7}', "[]", "")
        server.send(call(2, "memory_search", query="boat"), call(3, "memory_get", path="a\0b"))
        server.send(call(4, "memory_write", target="daily_log", content="hello"))
        assert server.process.stdin is not None and server.process.stdout is not None
        lines: list[str] = []
        while {2, 3, 4} - {json.loads(line).get("id") for line in lines}:  # what is asked at the end may go unanswered
            lines.append(server.process.stdout.readline())
        server.process.stdin.close()
        lines += list(server.process.stdout)
        server.process.stdin = None
        code, _, err = server.ended()

    answers = [json.loads(line) for line in lines]
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    assert {2, 3, 4} <= {answer.get("id") for answer in answers}
    assert code == 0 and str(folder) not in "".join(lines)
    assert "hello" in logged(folder)
    assert "anima:" not in err


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_ends_it_cleanly_while_its_input_is_open(folder: Path, name: str) -> None:
    with started(folder) as server:
        server.begin()
        server.send(call(2, "memory_write", target="daily_log", content="before the end"))
        assert server.receive()["id"] == 2
        server.process.send_signal(getattr(signal, name))
        code, out, err = server.ended()

    assert (code, out) == (0, "")
    assert "Traceback" not in err
    with Home.open(folder) as home:
        assert not list(home.site.store.ledger.pending())
        assert home.past.log(limit=1)[0].subject  # what the session appended was committed
        assert "before the end" in logged(folder)


def test_a_killed_server_or_client_leaves_no_lock(folder: Path) -> None:
    with started(folder) as server:
        server.begin()
        server.send(*(call(n, "memory_write", target="daily_log", content=f"line {n}") for n in range(2, 40)))
        server.receive()
        server.process.kill()
    with Home.open(folder) as home:
        assert home.note("still here").status == "written"
        assert home.past.audit().ok

    with started(folder) as server:
        server.begin()
        server.send(call(2, "memory_write", target="daily_log", content="said and gone"))
        for stream in (server.process.stdin, server.process.stdout):
            assert stream is not None
            stream.close()  # as when the host is killed
        server.process.stdin = server.process.stdout = None
        assert server.process.wait(timeout=180) == 0
        assert server.process.stderr is not None and "Traceback" not in server.process.stderr.read()
    with Home.open(folder) as home:
        assert home.note("and still").status == "written"
        assert not list(home.site.store.ledger.pending())


def test_two_clients_and_the_owner_write_at_once_and_nothing_is_lost(folder: Path) -> None:
    async def writing(era: str, name: str) -> None:
        async with visiting(folder, ("stdio", era)) as client:
            for number in range(12):
                said(await client.call_tool("memory_write", {"target": "daily_log", "content": f"{name} {number}."}))

    async def owning() -> None:
        with Home.open(folder) as home:
            for number in range(12):
                await asyncio.to_thread(home.note, f"owner {number}.")

    async def work() -> None:
        await asyncio.gather(writing("handshake", "old"), writing("stateless", "new"), owning())

    run(work())
    text = logged(folder) + "".join(path.read_text(encoding="utf-8") for path in (folder / "memory").glob("2*.md"))
    assert all(text.count(f"{name} {number}.") == 1 for name in ("old", "new", "owner") for number in range(12))
    with Home.open(folder) as home:
        assert home.past.audit().ok


# -- the command line -----------------------------------------------------------------------------------------------------------------


def test_the_scope_must_be_told_and_must_be_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert anima(["mcp", "--home", str(folder)]) == 2
    assert "--scope" in capsys.readouterr().err
    assert anima(["mcp", "--scope", "everybody", "--home", str(folder)]) == 2
    assert "the scopes are main, group" in capsys.readouterr().err


def test_nothing_else_imports_the_protocol() -> None:
    code = (
        "import sys; from anima.cli import run; run(['--help']); import anima.home; "
        "sys.exit('mcp' in sys.modules or 'uvicorn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], env=environment(), check=False).returncode == 0


@pytest.mark.parametrize("missing", ["mcp", "mcp_types", "uvicorn", "starlette"])
def test_a_missing_part_is_named(folder: Path, missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\nfrom anima.cli import run\n"
        f"sys.exit(run(['mcp', '--scope', 'main', '--home', {str(folder)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (8, "")
    assert "pip install 'anima-home[serve]'" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("era", ERAS)
def test_http_from_the_command_line_says_where_it_is_and_ends_cleanly(folder: Path, era: str) -> None:
    with started(folder, "--http", "--port", "0", scope="group") as server:
        assert server.process.stderr is not None
        address = server.process.stderr.readline().split()[-1]
        token = server.process.stderr.readline().split()[2]

        async def work() -> None:
            async with http_client(address, token, era=era) as client:
                assert "no such document" in sentence(await client.call_tool("memory_get", {"path": "MEMORY.md"}))
                assert said(await client.call_tool("memory_tree", {}))["entries"]

        assert len(token) >= 43
        run(work())
        server.process.send_signal(signal.SIGTERM)
        code, out, err = server.ended()

    assert (code, out) == (0, "")
    assert "Traceback" not in err


def test_a_token_of_ones_own_is_kept_secret_and_must_be_long(folder: Path) -> None:
    with started(folder, "--http", "--port", "0", ANIMA_MCP_TOKEN=TOKEN) as server:
        assert server.process.stderr is not None
        address = server.process.stderr.readline().split()[-1]
        assert TOKEN not in server.process.stderr.readline()
        wanted = {TOKEN: 400, TOKEN + "t": 401, "t": 401}
        for token, status in wanted.items():
            assert httpx2.get(address, headers={"Authorization": f"Bearer {token}"}, timeout=120).status_code == status
    with started(folder, "--http", "--port", "0", ANIMA_MCP_TOKEN="short") as server:
        code, _, err = server.ended()
        assert code == 2 and "too short" in err


# -- a guest in another app --------------------------------------------------------------------------------------------------


def test_foreign_hosts_and_sites_are_turned_away_before_anybody_looks_at_a_token(folder: Path) -> None:
    good = {
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    attempts: list[tuple[dict[str, str], int]] = [
        ({}, 200),
        ({"Origin": "http://localhost:1234"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "text/plain"}, 400),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong", "Host": "evil.example"}, 421),
    ]
    looked: list[str] = []

    async def work() -> None:
        with Home.open(folder) as home:
            visitor = Visitor(home=home, scope=Scope.MAIN, key="test")

            def who(request: Any) -> Visitor | None:
                looked.append(request.headers["host"])
                return bearer(request, {TOKEN: visitor})

            async with served(who) as address, httpx2.AsyncClient(timeout=120) as web:
                for headers, status in attempts:
                    found = await web.post(address, headers=good | headers, json=HELLO)
                    assert found.status_code == status, (headers, found.text)
                    if status == 401:
                        assert found.headers["www-authenticate"] == "Bearer"
                big = await web.post(address, headers=good, content=b" " * (4 * 1024 * 1024 + 1))
                assert big.status_code == 413

    run(work())
    assert not [host for host in looked if "evil" in host]


@pytest.mark.parametrize("era", ERAS)
def test_each_credential_has_its_own_scope_and_one_taken_back_is_gone_at_once(folder: Path, era: str) -> None:
    async def work() -> None:
        with Home.open(folder) as home:
            known = {
                "owner": Visitor(home=home, scope=Scope.MAIN, key="owner"),
                "group": Visitor(home=home, scope=Scope.GROUP, key="group"),
                "looks": Visitor(home=home, scope=Scope.MAIN, key="looks", access="ro"),
            }
            async with served(lambda request: bearer(request, known)) as address:
                async with http_client(address, "owner", era=era) as client:
                    said(await client.call_tool("memory_get", {"path": "MEMORY.md"}))
                async with http_client(address, "looks", era=era) as client:
                    said(await client.call_tool("memory_get", {"path": "MEMORY.md"}))
                    answer = said(await client.call_tool("memory_write", {"content": "x"}))
                    assert (answer["status"], answer["rule"]) == ("refused", "read-only")
                async with http_client(address, "group", era=era) as client:
                    assert "no such document" in sentence(await client.call_tool("memory_get", {"path": "MEMORY.md"}))
                    del known["group"]
                    with pytest.raises(MCPError):
                        await client.call_tool("memory_tree", {})
                    known["group"] = Visitor(home=home, scope=Scope.GROUP, key="group")  # so that it can say goodbye

    run(work())


def test_a_conversation_belongs_to_the_credential_that_began_it(folder: Path) -> None:
    async def work() -> None:
        with Home.open(folder) as home:
            known = {name: Visitor(home=home, scope=Scope.MAIN, key=name) for name in ("one", "two")}
            async with (
                served(lambda request: bearer(request, known)) as address,
                httpx2.AsyncClient(timeout=120) as web,
            ):
                headers = {"Accept": "application/json, text/event-stream", "Authorization": "Bearer one"}
                begun = await web.post(address, headers=headers, json=HELLO)
                headers["Mcp-Session-Id"] = begun.headers["mcp-session-id"]
                assert (await web.post(address, headers=headers, json=READY)).status_code == 202
                other = headers | {"Authorization": "Bearer two"}
                assert (await web.post(address, headers=other, json=call(2, "memory_tree"))).status_code == 404
                assert (await web.post(address, headers=headers, json=call(2, "memory_tree"))).status_code == 200
                assert (await web.delete(address, headers=headers)).status_code == 200
                assert (await web.post(address, headers=headers, json=call(3, "memory_tree"))).status_code == 404

    run(work())


def test_a_client_that_goes_away_in_the_middle_of_a_call_breaks_nothing(folder: Path) -> None:
    async def work() -> None:
        with Home.open(folder) as home:
            visitor = Visitor(home=home, scope=Scope.MAIN, key="test")
            async with served(lambda request: bearer(request, {TOKEN: visitor})) as address:
                for number in range(5):
                    async with http_client(address) as client:
                        going = asyncio.ensure_future(
                            client.call_tool("memory_write", {"target": "daily_log", "content": f"cut {number}."})
                        )
                        await asyncio.sleep(0)
                        going.cancel()
                        await asyncio.gather(going, return_exceptions=True)
                async with http_client(address) as client:
                    said(await client.call_tool("memory_write", {"target": "daily_log", "content": "whole."}))

    run(work())
    with Home.open(folder) as home:
        assert "whole." in logged(folder) and home.past.audit().ok
        assert not list(home.site.store.ledger.pending())
        assert all(logged(folder).count(f"cut {number}.") <= 1 for number in range(5))


def test_half_a_character_is_an_answer_like_any_other(folder: Path) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}

    async def work() -> list[httpx2.Response]:
        with Home.open(folder) as home:
            visitor = Visitor(home=home, scope=Scope.MAIN, key="test")
            headers = {
                "Accept": "application/json, text/event-stream",
                "Authorization": f"Bearer {TOKEN}",
                "Content-Type": "application/json",
                "MCP-Protocol-Version": "2026-07-28",
                "Mcp-Method": "tools/call",
            }
            async with (
                served(lambda request: bearer(request, {TOKEN: visitor})) as address,
                httpx2.AsyncClient(timeout=120) as web,
            ):
                found = []
                for name, argument in [("memory_get", "path"), ("memory_search", "query"), ("memory_write", "content")]:
                    asked = call(1, name, **{argument: "a\ud800"})
                    asked["params"]["_meta"] = meta
                    found.append(
                        await web.post(address, headers=headers | {"Mcp-Name": name}, content=json.dumps(asked))
                    )
                return found

    for answer in run(work()):
        assert answer.status_code in (200, 400), answer.text
        assert "Traceback" not in answer.text and str(folder) not in answer.text


def test_a_server_that_was_stopped_here_before_stops_no_stream_of_this_one(folder: Path) -> None:
    from sse_starlette.sse import AppStatus

    AppStatus.should_exit = True  # as uvicorn's shutdown leaves it behind

    async def work() -> None:
        with Home.open(folder) as home:
            visitor = Visitor(home=home, scope=Scope.MAIN, key="test")
            async with (
                served(lambda request: bearer(request, {TOKEN: visitor})) as address,
                httpx2.AsyncClient(timeout=120) as web,
            ):
                good = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}
                found = await web.post(address, headers=good, json=HELLO)
                assert found.status_code == 200 and "protocolVersion" in found.text

    run(work())
