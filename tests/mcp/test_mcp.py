"""A home over MCP: what agents find, what they are refused, how they are asked, and how a server comes and goes.

The client is the protocol's own, over standard streams to a real process and over HTTP on loopback, in both eras.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from anima import Home, Scope
from anima.mcp.server import PROMPTS
from anima.sessions.tools import TABLE, Argument, Tool
from mcp import Client
from mcp_doors import DOORS, ERAS, visiting

CANARY = "zanzibar-heliotrope-4471"
EACH_DOOR = pytest.mark.parametrize("door", DOORS, ids="-".join)
EACH_ERA = pytest.mark.parametrize("door", [("http", era) for era in ERAS], ids="-".join)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A home with something to find, and a word in every place that only the owner alone may see."""
    with Home.create(tmp_path / "aria", name="Aria") as home:
        home.remember("Ana uses a Samsung phone")
        home.remember(f"The code word is {CANARY}")
        home.note(f"Talked about the boat and {CANARY}")
        home.append("USER.md", f"\n- keeps bees, {CANARY}\n")
        home.write("bank/world.md", f"# World\n\n- {CANARY}\n")
        home.write("users/berta/MEMORY.md", f"# Memory\n\n- Berta likes tea, {CANARY}-berta\n")
        home.write(
            "skills/tide-table/SKILL.md", "---\nname: tide-table\ndescription: Reads a tide table.\n---\n\nLook.\n"
        )
        with home.session(scope=Scope.MAIN) as session:
            session.log("user", f"I said {CANARY}")
    return tmp_path / "aria"


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Runs a test's work; the groups in which the client wraps an error are taken off."""
    try:
        return asyncio.run(work)
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


@EACH_DOOR
def test_nothing_that_an_agent_is_told_holds_a_path_of_the_machine(tmp_path: Path, door: tuple[str, str]) -> None:
    Home.create(tmp_path / "scope", name="Aria", settings={"dialect": "agentscope"}).close()

    async def told() -> str:
        async with visiting(tmp_path / "scope", door) as client:
            answers: list[Any] = [await client.call_tool("who_am_i", {}), await client.call_tool("my_stats", {})]
            answers += [await client.get_prompt(name) for name in PROMPTS]
            return repr(answers)

    assert str(tmp_path) not in run(told())


def said(result: types.CallToolResult) -> dict[str, Any]:
    """A tool's answer, which must not be an error and must say the same twice."""
    assert not result.is_error, result.content
    [text] = result.content
    assert json.loads(text.text) == result.structured_content  # type: ignore[union-attr]
    found: dict[str, Any] = result.structured_content
    return found


def sentence(result: types.CallToolResult) -> str:
    assert result.is_error and result.structured_content is None
    [text] = result.content
    return str(text.text)  # type: ignore[union-attr]


def text_of(folder: Path, path: str) -> str:
    return (folder / path).read_text(encoding="utf-8")


def logged(folder: Path) -> str:
    """What the agents had written down: an agent elsewhere may have read anything, so it waits for the owner's review."""
    return "".join(path.read_text(encoding="utf-8") for path in sorted((folder / "unreviewed").glob("2*.md")))


# -- tools -----------------------------------------------------------------------------------------------------------------

SENSIBLE = {
    "path": "MEMORY.md",
    "query": "which phone does Ana use",
    "target": "daily_log",
    "content": "a quiet day",
    "action": "list_sessions",
    "reason": "a test",
    "name": "tide-table",
}


def sensible(argument: Argument) -> Any:
    """A value an argument surely takes: one that makes sense by its name, else what its row allows."""
    if argument.one_of:
        return argument.one_of[0]
    if argument.kind == "text":
        return SENSIBLE.get(argument.name, "x")
    return {"number": argument.low or 1, "share": 0, "flag": False}[argument.kind]


def arguments_for(tool: Tool) -> dict[str, Any]:
    named = {a.name: sensible(a) for a in tool.arguments if a.required or (not tool.read_only and a.name in SENSIBLE)}
    return {"path": "MEMORY.md", "line": 1} if tool.name == "memory_forget" else named


@EACH_DOOR
def test_the_tools_are_the_rows_of_the_table_and_each_can_be_used(folder: Path, door: tuple[str, str]) -> None:
    async def work() -> None:
        async with visiting(folder, door) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            rows = {tool.name: tool for tool in TABLE.values() if Scope.MAIN in tool.scopes}
            assert list(listed) == list(rows)
            for name, row in rows.items():
                told = listed[name]
                assert told.input_schema == row.schema() and told.output_schema == row.answer_schema()
                assert told.description == row.about and told.annotations is not None
                hints = told.annotations
                assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint) == (
                    row.read_only,
                    row.destructive,
                    row.idempotent,
                    False,
                )
                said(await client.call_tool(name, arguments_for(row)))  # the client checks the answer's schema

    run(work())
    assert "a quiet day" in logged(folder)


@pytest.mark.parametrize("scope", Scope)
def test_a_scope_has_its_own_tools_and_the_others_are_not_there(folder: Path, scope: Scope) -> None:
    async def work() -> None:
        async with visiting(folder, ("http", "stateless"), scope=scope) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            there = [tool for tool in TABLE.values() if not tool.row or scope is not Scope.GROUP]  # no catalogue there
            assert names == [tool.name for tool in there if scope in tool.scopes]
            for name in set(TABLE) - set(names):
                with pytest.raises(MCPError, match="there is no tool"):
                    await client.call_tool(name, {})

    run(work())


@EACH_ERA
def test_a_wrong_argument_is_answered_with_what_to_do(folder: Path, door: tuple[str, str]) -> None:
    wrong = [
        ("memory_search", {}, "needs query"),
        ("memory_search", {"qwery": "x"}, "did you mean query"),
        ("memory_search", {"query": "x", "limit": 500}, "from 1 to 20"),
        ("memory_search", {"query": "x", "scope": "main"}, "has no argument 'scope'"),
        ("memory_get", {"path": "nothing.md"}, "no such document; memory_tree lists"),
        ("memory_get", {"path": "../../etc/passwd"}, "dot"),
        ("memory_get", {"path": "/etc/passwd"}, "relative"),
        ("memory_write", {"target": "MEMORY.md", "old_string": "a"}, "needs both"),
        ("memory_write", {"target": "notes/a\0b.md", "content": "x"}, "cannot hold"),
    ]

    async def work() -> None:
        async with visiting(folder, door) as client:
            for name, arguments, expected in wrong:
                found = sentence(await client.call_tool(name, arguments))
                assert expected in found
                assert str(folder) not in found and "Traceback" not in found
            with pytest.raises(MCPError, match="did you mean memory_search"):
                await client.call_tool("memory_serch", {"query": "x"})

    before = {path: path.read_bytes() for path in folder.glob("**/*.md")}
    run(work())
    assert {path: path.read_bytes() for path in folder.glob("**/*.md")} == before


def test_what_breaks_inside_is_a_neutral_sentence(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    from anima.mcp import Visitor
    from mcp_doors import TOKEN, bearer, http_client, served

    async def work() -> list[str]:
        home = Home.open(folder)
        visitor = Visitor(home=home, scope=Scope.MAIN, key="test")
        async with served(lambda r: bearer(r, {TOKEN: visitor})) as address, http_client(address) as client:
            said(await client.call_tool("memory_tree", {}))
            home.site.store.documents.close()  # as if the disk had gone
            told = [sentence(await client.call_tool("memory_get", {"path": "AGENTS.md"}))]
            with pytest.raises(MCPError) as wrong:
                await client.read_resource("home:///AGENTS.md")
            return [*told, str(wrong.value)]

    for told in run(work()):
        assert str(folder) not in told and "Traceback" not in told and "fd" not in told


# -- documents and prompts ----------------------------------------------------------------------------------------------------


@EACH_DOOR
def test_documents_and_prompts_are_there(folder: Path, door: tuple[str, str]) -> None:
    async def work() -> None:
        async with visiting(folder, door) as client:
            listed = (await client.list_resources()).resources
            assert {"home:///MEMORY.md", "home:///SOUL.md", "home:///bank/world.md"} <= {r.uri for r in listed}
            assert not [r.uri for r in listed if not r.uri.endswith(".md")]
            for address in ("home:///MEMORY.md", "home://MEMORY.md", "home:///memory.md"):
                [content] = (await client.read_resource(address)).contents
                assert content.text == text_of(folder, "MEMORY.md") and content.uri == address  # type: ignore[union-attr]
            [template] = (await client.list_resource_templates()).resource_templates
            assert template.uri_template == "home:///{+path}"
            ref = types.ResourceTemplateReference(type="ref/resource", uri=template.uri_template)
            found = await client.complete(ref, {"name": "path", "value": "mem"})
            assert "MEMORY.md" in found.completion.values
            assert [prompt.name for prompt in (await client.list_prompts()).prompts] == list(PROMPTS)
            assert "# SOUL" in await prompt_text(client, "wake")
            assert "memory_write" in await prompt_text(client, "flush")
            assert "the boat" in await prompt_text(client, "reflect", {"about": "the boat"})
            with pytest.raises(MCPError, match="there are wake, flush, reflect"):
                await client.get_prompt("sleep")

    run(work())


async def prompt_text(client: Client, name: str, arguments: dict[str, str] | None = None) -> str:
    [message] = (await client.get_prompt(name, arguments)).messages
    return str(message.content.text)  # type: ignore[union-attr]


def test_a_long_list_of_documents_comes_in_pages(folder: Path) -> None:
    with Home.open(folder) as home:
        for number in range(450):
            (folder / "notes").mkdir(exist_ok=True)
            (folder / f"notes/n{number:03}.md").write_text("x\n", encoding="utf-8")
        expected = {entry.path for entry in home.list_all() if entry.path.endswith(".md")}

    async def work() -> list[str]:
        found: list[str] = []
        async with visiting(folder, ("http", "stateless")) as client:
            page = await client.list_resources()
            found += [resource.name for resource in page.resources]
            while page.next_cursor:
                page = await client.list_resources(cursor=page.next_cursor)
                found += [resource.name for resource in page.resources]
            for wrong in ("!", "ÿ", "gICA"):
                with pytest.raises(MCPError, match="cursor"):
                    await client.list_resources(cursor=wrong)
        return found

    found = run(work())
    assert found == sorted(expected)


# -- who is listening -----------------------------------------------------------------------------------------------------------


async def everything(client: Client, folder: Path) -> str:
    """All a client can get to hear, asked in every way we know, in one text."""
    heard: list[str] = []

    async def hear(asked: Coroutine[Any, Any, Any]) -> None:
        try:
            heard.append((await asked).model_dump_json())
        except MCPError as error:
            heard.append(error.error.model_dump_json())

    paths = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    paths += [
        "memory.md",
        "MEMORY.md/",
        "./MEMORY.md",
        "memory/../MEMORY.md",
        "ＭＥＭＯＲＹ.md",
        "users/berta/MEMORY.md",
    ]
    for path in paths:
        await hear(client.call_tool("memory_get", {"path": path}))
        await hear(client.call_tool("memory_tree", {"path": path, "depth": 10}))
        await hear(client.call_tool("memory_history", {"path": path, "diff": True}))
        for address in (f"home:///{path}", f"home://{path}", f"home:///%2e/{path}", f"HOME:///{path}"):
            await hear(client.read_resource(address))
    for corpus in ("memory", "sessions", "all"):
        await hear(client.call_tool("memory_search", {"query": CANARY, "corpus": corpus, "limit": 20}))
    for line in (f"The code word is {CANARY[:-1]}", "The code word is", f"Talked about the boat and {CANARY[:-1]}"):
        for target in ("memory", "MEMORY.md", "daily_log"):
            await hear(client.call_tool("memory_write", {"target": target, "content": line}))
        await hear(client.call_tool("memory_write", {"target": "MEMORY.md", "old_string": line, "new_string": "x"}))
    for name in TABLE:
        await hear(client.call_tool(name, arguments_for(TABLE[name])))
    for prompt in ("wake", "flush", "reflect"):
        await hear(client.get_prompt(prompt, {}))
    ref = types.ResourceTemplateReference(type="ref/resource", uri="home:///{+path}")
    await hear(client.complete(ref, {"name": "path", "value": ""}))
    await hear(client.list_resources())
    return "\n".join(heard)


@pytest.mark.parametrize(
    ("door", "scope", "sender"),
    [
        *((("http", era), "group", None) for era in ERAS),
        (("http", "stateless"), "subagent", None),
        (("http", "handshake"), "main", "berta"),
        (("http", "stateless"), "group", "berta"),
    ],
)
def test_nobody_hears_what_is_not_theirs(folder: Path, door: tuple[str, str], scope: str, sender: str | None) -> None:
    (folder / "anima.toml").write_text('owner = ["luis"]\n', encoding="utf-8")

    async def work() -> str:
        async with visiting(folder, door, scope=scope, sender=sender) as client:
            return await everything(client, folder)

    heard = run(work())
    # What the probe itself wrote is asked with a word that lacks its last letter.
    assert CANARY not in heard.replace(f"{CANARY}-berta", "" if (scope, sender) == ("main", "berta") else CANARY)
    assert str(folder) not in heard and "Traceback" not in heard
    assert "AGENTS" in heard


def test_the_same_probe_hears_the_word_when_the_owner_is_alone(folder: Path) -> None:
    async def work() -> str:
        async with visiting(folder, ("http", "stateless")) as client:
            return await everything(client, folder)

    assert run(work()).count(CANARY) > 10


def test_a_group_over_standard_streams_does_not_hear_the_word_either(folder: Path) -> None:
    async def work() -> str:
        async with visiting(folder, ("stdio", "handshake"), scope="group") as client:
            return await everything(client, folder)

    heard = run(work())
    assert CANARY not in heard and "AGENTS" in heard


@EACH_ERA
def test_not_yours_and_not_there_are_one_answer(folder: Path, door: tuple[str, str]) -> None:
    (folder / "bank/latin.md").write_bytes(b"\xff\xfe not utf-8")

    async def asked(client: Client, path: str) -> list[str]:
        told = [sentence(await client.call_tool(name, {"path": path})) for name in ("memory_get", "memory_tree")]
        with pytest.raises(MCPError) as wrong:
            await client.read_resource(f"home:///{path}")
        told.append(wrong.value.error.model_dump_json())
        return [text.replace(path, "PATH") for text in told]

    async def work() -> None:
        async with visiting(folder, door, scope="group") as client:
            absent = await asked(client, "nothing.md")
            for path in ("../x.md", "%2e%2e/x.md", "bank/../SOUL.md", ".anima/ledger", "a%00b", "a" * 2_000):
                assert (await asked(client, path))[-1] == absent[-1], path
            for path in ("MEMORY.md", "USER.md", "bank/world.md", "bank/latin.md", "bank", "users/berta/MEMORY.md"):
                assert await asked(client, path) == absent, path

    run(work())


@EACH_ERA
def test_nothing_a_caller_sends_raises_its_scope(folder: Path, door: tuple[str, str]) -> None:
    raised = {"scope": "main", "sender": "luis", "anima/scope": "main"}

    async def work() -> None:
        async with visiting(folder, door, scope="group") as client:
            told = await client.call_tool("memory_get", {"path": "MEMORY.md"}, meta=raised)  # type: ignore[arg-type]
            assert "no such document" in sentence(told)
            for name in ("scope", "sender", "actor"):
                told = await client.call_tool("memory_get", {"path": "MEMORY.md", name: "main"})
                assert "has no argument" in sentence(told)

    run(work())


def test_reading_untrusted_lines_as_a_resource_counts_like_reading_them_with_a_tool(folder: Path) -> None:
    with Home.open(folder) as home, home.session(scope=Scope.MAIN) as session:
        session.taint("web")
        answer = session.call("memory_write", {"target": "bank/web.md", "content": "- from a page"})
        assert answer["status"] == "noted"
        [place] = [path.name for path in (folder / "unreviewed").iterdir()]

    async def work() -> list[str]:
        async with visiting(folder, ("http", "stateless")) as client:
            await client.read_resource(f"home:///unreviewed/{place}")
            return list(said(await client.call_tool("memory_read_outside", {"source": "peer"}))["read"])

    assert run(work()) == ["host", "peer", "web"]
