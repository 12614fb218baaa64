"""The async wrapper: the same verbs, awaited; nothing is lost when somebody stops waiting."""

from __future__ import annotations

import ast
import asyncio
import gc
import inspect
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from anima import BadArguments, Home, NoSuchHome, Scope, aio
from anima.layout import Listener
from anima.testing import Clock


def test_the_everyday_verbs_are_awaited_and_data_comes_as_it_is(tmp_path: Path, clock: Clock) -> None:
    async def day() -> None:
        async with aio.create(tmp_path / "home", name="Aria", clock=clock) as home:
            assert (await home.remember("The boat is called Sandpiper")).status == "written"
            async with home.session(scope="main", channel="cli") as session:
                assert "Aria" in session.prompt.text  # data
                await session.log("user", "What is the boat called?")
                found = await session.call("memory_search", {"query": "boat"})
                assert "Sandpiper" in found["hits"][0]["text"]
                assert [tool.name for tool in await session.tools()]
            assert await home.inbox.all() == ()
            assert (await home.index()).documents  # a part that is called
            assert [row.id for row in await home.sessions.list()] == [session.id]
        async with aio.open(tmp_path / "home", clock=clock) as again:
            assert "Sandpiper" in (await again.read("MEMORY.md")).text

    asyncio.run(day())


def test_what_is_awaited_shows_what_it_is(tmp_path: Path) -> None:
    async def main() -> tuple[str, str]:
        async with aio.create(tmp_path / "home", name="Aria") as home:
            return repr(home), repr(home.inbox)

    home, inbox = asyncio.run(main())
    assert home == f"<Awaited <Home {tmp_path / 'home'}, anima>>"
    assert "Inbox" in inbox


def test_errors_come_through_and_a_home_can_be_awaited_without_with(tmp_path: Path) -> None:
    async def day() -> None:
        with pytest.raises(NoSuchHome):
            await aio.open(tmp_path / "nowhere")
        home = await aio.create(tmp_path / "home", name="Aria")
        async with home:
            session = await home.session(scope="main", channel="cli")
            with pytest.raises(BadArguments):
                await session.call("memory_serch")
            with pytest.raises(AttributeError):
                home.rember("x")
            await session.close()

    asyncio.run(day())


def test_the_index_is_a_part_whose_verbs_are_awaited_and_is_called_as_before(tmp_path: Path) -> None:
    async def day() -> None:
        async with aio.create(tmp_path / "home", name="Aria") as home:
            await home.remember("Ana plays the viola", section="People")
            assert (await home.index()).documents
            graph = await home.index.graph(Listener(scope=Scope.MAIN))
            assert graph.named("Ana") is not None

    asyncio.run(day())


def test_the_loop_goes_on_while_a_verb_works(tmp_path: Path) -> None:
    """An async function is the host's model: the verb, in its thread, waits for the loop to answer."""
    asked: list[int] = []

    async def complete(question: str) -> str:
        asked.append(threading.get_ident())
        return "NO_REPLY"

    async def day() -> None:
        async with (
            aio.create(tmp_path / "home", name="Aria") as home,
            home.session(scope="main", channel="cli", complete=complete) as session,
        ):
            await session.log("user", "Good morning")
            await session.flush("new")

    asyncio.run(day())
    assert asked == [threading.get_ident()]


def test_a_model_that_needs_a_thread_of_the_loop_has_one_while_a_verb_waits_for_it(tmp_path: Path) -> None:
    """As many verbs wait for their models as the loop has threads, and each model asks for a name or for a home."""

    async def complete(question: str) -> str:
        await asyncio.wait_for(asyncio.get_running_loop().getaddrinfo("127.0.0.1", 80), 20)  # or in vain for ever
        return "- Ana has a boat" if await home.exists("MEMORY.md") else "NO_REPLY"

    async def day() -> None:
        nonlocal home
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        async with aio.create(tmp_path / "home", name="Aria") as home:
            for given in ({"complete": complete}, {}):
                async with home.session(scope="main", channel="cli", **given) as session:
                    await session.log("user", "Good morning")
                    more = {} if given else {"complete": complete}
                    assert not (await session.flush("new", **more)).error

    home: aio.AwaitedHome
    asyncio.run(day())


def test_what_began_is_finished_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    began, go_on = threading.Event(), threading.Event()

    def hook(pieces: object, *more: object) -> object:
        began.set()
        go_on.wait(180)
        return pieces

    async def day() -> None:
        async with aio.create(tmp_path / "home", name="Aria", hook=hook) as home:
            task = asyncio.ensure_future(_await(home.prompt(scope="main")))
            await asyncio.to_thread(began.wait, 120)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            go_on.set()
            assert (await home.note("The milk is out")).status == "written"

    asyncio.run(day())


def test_a_home_that_was_opened_for_nobody_is_closed(tmp_path: Path) -> None:
    Home.create(tmp_path / "home", name="Aria").close()
    began, go_on = threading.Event(), threading.Event()

    class Slow(dict[str, str]):
        def get(self, *given: object) -> object:  # type: ignore[override]
            began.set()
            go_on.wait(180)
            return super().get(*given)  # type: ignore[call-overload]

    async def day() -> None:
        task = asyncio.ensure_future(_await(aio.open(tmp_path / "home", env=Slow())))
        await asyncio.to_thread(began.wait, 120)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()

    asyncio.run(day())  # waits for its threads
    held = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    assert not [path for path in held if path.startswith(str(tmp_path / "home"))]


def test_a_session_that_was_taken_up_for_nobody_is_let_go(tmp_path: Path) -> None:
    slow, began, go_on = threading.Event(), threading.Event(), threading.Event()

    def hook(pieces: object) -> object:
        if slow.is_set():
            began.set()
            go_on.wait(180)
        return pieces

    async def day() -> aio.AwaitedHome:
        home = await aio.create(tmp_path / "home", name="Aria", hook=hook)
        session = await home.session(scope="main")
        await session.log("user", "Good morning")
        await session.leave()
        slow.set()
        task = asyncio.ensure_future(_await(home.resume(session.id)))
        await asyncio.to_thread(began.wait, 120)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        return home

    home = asyncio.run(day())  # waits for its threads
    held = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    assert not [path for path in held if path.startswith(str(tmp_path / "home" / "sessions"))]
    asyncio.run(_await(home.close()))


def test_a_call_can_be_a_task_be_gathered_and_be_run_by_itself(tmp_path: Path) -> None:
    Home.create(tmp_path / "home", name="Aria").close()

    async def day() -> None:
        async with aio.open(tmp_path / "home") as home, asyncio.TaskGroup() as group:
            written = group.create_task(home.remember("The boat is called Sandpiper"))
            assert (await written).status == "written"
            one, two = await asyncio.gather(home.search("boat", scope="main"), home.exists("MEMORY.md"))
            assert "Sandpiper" in one[0].text and two
            with pytest.raises(BadArguments, match="no scope"):
                await asyncio.wait_for(home.search("boat", scope="nobody"), 60)

    asyncio.run(day())
    home = asyncio.run(aio.open(tmp_path / "home"))
    asyncio.run(home.close())


async def _await(coming: aio.Coming) -> object:
    return await coming


def test_a_verb_that_nobody_awaits_is_said_to_have_done_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with aio.create(tmp_path / "aria") as home:
            with pytest.warns(RuntimeWarning, match="Home.remember' was never awaited"):
                home.remember("Ana plays the cello")
                gc.collect()
            assert "cello" not in (await home.read("MEMORY.md")).text

    asyncio.run(main())


def test_a_type_checker_knows_every_verb_and_what_is_told_of_a_home_and_a_session(tmp_path: Path) -> None:
    """The lists stand in the source for type checkers alone; a verb that comes or goes must come and go there, too."""
    listed = {
        each.name: {
            node.name if isinstance(node, ast.FunctionDef) else node.id
            for node in ast.walk(each)
            if isinstance(node, ast.FunctionDef) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        }
        for each in ast.walk(ast.parse(Path(aio.__file__).read_text("utf-8")))
        if isinstance(each, ast.ClassDef)
    }
    made = {"open", "create"}  # by functions of their own
    inside = {"site", "layout", "rooms", "talk", "flows", "guest", "outside"}  # no page names them
    with Home.create(tmp_path / "home", name="Aria") as home, home.session(scope="main") as session:
        for name, it in (("AwaitedHome", home), ("AwaitedSession", session)):
            assert listed[name] == {each for each in dir(it) if not each.startswith("_")} - made - inside


def test_a_home_that_is_opened_async_takes_what_every_home_takes(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(BadArguments, match=r"Home\.open: path takes"):
            await aio.open(b"aria")  # type: ignore[arg-type]
        async with aio.create(tmp_path / "aria", name="Aria", settings={"prompt.style": "xml"}) as home:
            assert home.config.prompt.style == "xml"

    assert "Path" in str(inspect.signature(aio.open)) and "again" in str(inspect.signature(aio.create))
    asyncio.run(main())


@pytest.mark.long
def test_a_type_checker_knows_what_the_tools_of_a_session_come_as(tmp_path: Path) -> None:
    """The one verb whose answer hangs on what it is given."""
    (tmp_path / "program.py").write_text(
        "from typing import Any\n"
        "from anima import Tool, aio\n\n"
        "async def told(session: aio.AwaitedSession) -> list[dict[str, Any]]:\n"
        "    mine: tuple[Tool, ...] = await session.tools()\n"
        "    return await session.tools(format='openai') if mine else []\n"
    )
    given = ["mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "program.py"]
    env = {**os.environ, "MYPYPATH": str(Path(aio.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-m", *given], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout
