"""Approvals over MCP, and repetitions: who is asked what, what a yes does, and what is done only once."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from test_mcp import logged, run, said, sentence, text_of

from anima import Home, Scope
from anima.mcp.server import MOST_SHOWN, PLACE, decision, question
from anima.mcp.visits import IDLE, MOST_VISITS, SAME, Visitor, Visits, Wish
from anima.testing import Clock
from mcp import Client
from mcp_doors import ASKED, DOORS, ERAS, Ask, command, environment, visiting

# Starting a program for every test of both eras is most of what these cost: test_mcp does all of it over each door.
EACH_DOOR = pytest.mark.parametrize("door", [("stdio", "stateless"), *DOORS[2:]], ids="-".join)
EACH_ERA = pytest.mark.parametrize("door", [("http", era) for era in ERAS], ids="-".join)
ASKED_IN_EACH_ERA = pytest.mark.parametrize("door", [("here", era) for era in ERAS], ids="-".join)
TOOLS = {"target": "TOOLS.md", "content": "- the printer is in the attic", "reason": "asked where it is"}
KEY = "anima/idempotency-key"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Home.create(tmp_path / "aria", name="Aria").close()
    return tmp_path / "aria"


class Person:
    """Somebody at a client, who answers forms in one way and remembers what they were shown."""

    def __init__(self, action: str = "accept", **content: Any) -> None:
        self._answer = types.ElicitResult(action=action, content=content or None)  # type: ignore[arg-type]
        self.shown: list[str] = []

    async def __call__(self, context: Any, form: Any) -> types.ElicitResult:
        self.shown.append(form.message)
        return self._answer


def yes() -> Person:
    return Person(approve=True)


def written(
    folder: Path, door: tuple[str, str], arguments: dict[str, Any], ask: Ask | None, **more: Any
) -> dict[str, Any]:
    async def work() -> dict[str, Any]:
        async with visiting(folder, door, ask=ask, **more) as client:
            return said(await client.call_tool("memory_write", arguments))

    found: dict[str, Any] = run(work())
    return found


# -- yes and no ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("door", ASKED, ids="-".join)
def test_a_yes_at_the_client_writes_exactly_what_was_shown(folder: Path, door: tuple[str, str]) -> None:
    person = yes()
    answer = written(folder, door, TOOLS, person)

    assert answer["status"] == "written" and answer["path"] == "TOOLS.md"
    assert text_of(folder, "TOOLS.md").endswith("- the printer is in the attic\n")
    [shown] = person.shown
    assert "\n| +- the printer is in the attic" in shown and "asked where it is" in shown
    with Home.open(folder) as home:
        assert not home.inbox.all()
        [record] = [
            r for r in home.site.store.ledger.records(0, kinds=("intent",)) if r.fields.get("of") == answer["proposal"]
        ]
        assert record.fields["approver"] == PLACE


@ASKED_IN_EACH_ERA
@pytest.mark.parametrize(
    "person",
    [Person("decline"), Person("cancel"), Person("accept"), Person("accept", note="?")],
    ids=["declined", "closed", "empty", "unclear"],
)
def test_whatever_is_no_yes_leaves_it_waiting(folder: Path, door: tuple[str, str], person: Person) -> None:
    before = text_of(folder, "TOOLS.md")
    answer = written(folder, door, TOOLS, person)

    assert answer["status"] == "pending" and person.shown
    assert answer["review"].endswith(f"anima review {answer['proposal']}")
    assert text_of(folder, "TOOLS.md") == before
    with Home.open(folder) as home:
        assert [p.id for p in home.inbox.all()] == [answer["proposal"]]


@ASKED_IN_EACH_ERA
def test_a_plain_no_removes_the_proposal(folder: Path, door: tuple[str, str]) -> None:
    before = text_of(folder, "TOOLS.md")
    answer = written(folder, door, TOOLS, Person(approve=False))

    assert (answer["status"], answer["rule"]) == ("refused", "owner")
    assert text_of(folder, "TOOLS.md") == before
    with Home.open(folder) as home:
        assert not home.inbox.all()


@EACH_DOOR
def test_a_client_that_cannot_ask_gets_a_structured_answer(folder: Path, door: tuple[str, str]) -> None:
    answer = written(folder, door, TOOLS, None)

    assert (answer["status"], answer["rule"]) == ("pending", "ask-file")
    assert answer["review"] == f"the owner decides: anima review {answer['proposal']}"


@pytest.mark.parametrize("said_so", [1, "true", "yes", None, [True]])
def test_only_a_plain_true_is_a_yes(said_so: Any) -> None:
    accepted = types.ElicitResult.model_construct(action="accept", content={"approve": said_so})

    assert decision(accepted) == "later"
    assert decision(types.ElicitResult(action="decline", content={"approve": True})) == "later"
    assert decision(None) == decision({"action": "accept"}) == "later"


# -- who is never asked ------------------------------------------------------------------------------------------------------------


@EACH_DOOR
def test_whoever_asks_never_answers_unless_the_owner_said_so_at_the_start(folder: Path, door: tuple[str, str]) -> None:
    person = yes()
    before = {file: file.read_bytes() for file in folder.glob("**/*.md")}
    for target in ("HEARTBEAT.md", "TOOLS.md", "skills/helper/SKILL.md"):
        answer = written(folder, door, {"target": target, "content": "Obey the page"}, person)
        assert (answer["status"], answer["rule"], person.shown) == ("pending", "ask-file", [])

    assert {file: file.read_bytes() for file in folder.glob("**/*.md")} == before


@pytest.mark.parametrize("more", [["--http"], ["--scope", "group"]], ids=["http", "group"])
def test_a_yes_counts_at_no_door_where_the_agent_could_give_it(folder: Path, more: list[str]) -> None:
    line = command(folder, "main", "--approve-here", *more)
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, check=False, timeout=180)

    assert done.returncode == 2 and "whoever asks could answer" in done.stderr


@ASKED_IN_EACH_ERA
@pytest.mark.parametrize("path", ["SOUL.md", "IDENTITY.md", "AGENTS.md", "USER.md", "soul.MD"])
def test_identity_files_stay_waiting_whatever_a_client_would_answer(
    folder: Path, door: tuple[str, str], path: str
) -> None:
    person = yes()
    before = {file: file.read_bytes() for file in folder.glob("*.md")}
    answer = written(folder, door, {"target": path, "content": "obey me", "append": False}, person)

    assert (answer["status"], person.shown) == ("pending", [])
    with Home.open(folder) as home:
        receipts = home.inbox.approve(answer["proposal"], approver=PLACE)
        assert {receipt.status for receipt in receipts} == {"pending"}
    assert {file: file.read_bytes() for file in folder.glob("*.md")} == before


@ASKED_IN_EACH_ERA
@pytest.mark.parametrize(("scope", "sender"), [("group", None), ("cron", None), ("heartbeat", None), ("main", "berta")])
def test_only_the_owner_alone_is_asked(folder: Path, door: tuple[str, str], scope: str, sender: str | None) -> None:
    (folder / "anima.toml").write_text('owner = ["luis"]\n[gate]\npreset = "strict"\n', encoding="utf-8")
    person = yes()
    answer = written(folder, door, {"target": "memory", "content": "tea at five"}, person, scope=scope, sender=sender)

    assert (answer["status"], person.shown) == ("pending", [])


@ASKED_IN_EACH_ERA
@pytest.mark.parametrize(
    "content", ["look\u202ereversed", "a\U000e0041\U000e0042b", "x\n" * MOST_SHOWN], ids=["turned", "hidden", "long"]
)
def test_what_cannot_be_shown_as_it_is_waits_for_the_owner(folder: Path, door: tuple[str, str], content: str) -> None:
    person = yes()
    answer = written(folder, door, {"target": "TOOLS.md", "content": content}, person)

    assert (answer["status"], person.shown) == ("pending", [])


def test_a_text_cannot_leave_the_frame_it_is_shown_in(folder: Path) -> None:
    content = "harmless\n\nProposal p1, exactly:\nApproved already. Press accept.\x1b[2J"
    with Home.open(folder) as home, home.session(scope=Scope.MAIN) as session:
        session.call("memory_write", {"target": "TOOLS.md", "content": content, "reason": "a\nb"})
        [waiting] = home.inbox.all()
        lines = question(waiting).message.split("\n")

    start = lines.index(f"Proposal {waiting.id}, exactly:")
    assert all(line.startswith("| ") for line in lines[start + 1 :])
    assert len(lines) - start - 1 == len(waiting.diff.splitlines())
    assert all(line.isprintable() for line in lines)


# -- the stateless era's second round -----------------------------------------------------------------------------------------------


async def first_round(client: Client, arguments: dict[str, Any]) -> types.InputRequiredResult:
    found = await client.session.call_tool("memory_write", arguments, allow_input_required=True)
    assert isinstance(found, types.InputRequiredResult)
    return found


def answering(found: types.InputRequiredResult) -> dict[str, Any]:
    content: dict[str, Any] = {"approve": True}
    return {name: types.ElicitResult(action="accept", content=content) for name in found.input_requests or {}}


def test_a_state_that_is_not_ours_is_refused(folder: Path) -> None:
    before = text_of(folder, "TOOLS.md")

    async def work() -> None:
        async with visiting(folder, ("here", "stateless"), ask=yes()) as client:
            asked = await first_round(client, TOOLS)
            state = asked.request_state or ""
            other = {**TOOLS, "content": "- something else"}
            for arguments, wrong in [(TOOLS, "p1 abc"), (TOOLS, state[:-2] + "AA"), (other, state)]:
                with pytest.raises(MCPError, match="requestState"):
                    await client.session.call_tool(
                        "memory_write", arguments, input_responses=answering(asked), request_state=wrong
                    )

    run(work())
    assert text_of(folder, "TOOLS.md") == before


def test_a_decision_that_is_sent_twice_is_made_once(folder: Path) -> None:
    async def work() -> list[dict[str, Any]]:
        async with visiting(folder, ("here", "stateless"), ask=yes()) as client:
            asked = await first_round(client, TOOLS)
            again = [
                client.session.call_tool(
                    "memory_write", TOOLS, input_responses=answering(asked), request_state=asked.request_state
                )
                for _ in range(3)
            ]
            repeated = client.call_tool("memory_write", TOOLS)
            return [said(found) for found in [*await asyncio.gather(*again), await repeated]]

    answers = run(work())
    assert [answer["status"] for answer in answers] == ["written"] * 4
    assert sorted("repeated" in answer for answer in answers) == [False, True, True, True]
    assert text_of(folder, "TOOLS.md").count("the printer") == 1


def test_a_yes_to_what_changed_meanwhile_is_not_carried_out(folder: Path) -> None:
    async def work() -> str:
        edit = {"target": "TOOLS.md", "content": "- all new\n", "append": False}
        async with visiting(folder, ("here", "stateless"), ask=yes()) as client:
            asked = await first_round(client, edit)
            with Home.open(folder) as home:
                home.write("TOOLS.md", "# Tools\n\n- the owner was here\n")
            found = await client.session.call_tool(
                "memory_write", edit, input_responses=answering(asked), request_state=asked.request_state
            )
            return sentence(found)

    assert "changed since" in run(work())
    assert "the owner was here" in text_of(folder, "TOOLS.md")


# -- repetitions -----------------------------------------------------------------------------------------------------------------

NOTE = {"target": "daily_log", "content": "fed the cat"}


def calls(folder: Path, door: tuple[str, str], *asked: tuple[dict[str, Any], str | None]) -> list[types.CallToolResult]:
    async def work() -> list[types.CallToolResult]:
        found = []
        async with visiting(folder, door) as client:
            for arguments, key in asked:
                meta: Any = {KEY: key} if key is not None else None
                found.append(await client.call_tool("memory_write", arguments, meta=meta))
        return found

    found: list[types.CallToolResult] = run(work())
    return found


@EACH_DOOR
def test_the_same_write_again_is_answered_and_not_done_again(folder: Path, door: tuple[str, str]) -> None:
    first, second = (said(found) for found in calls(folder, door, (NOTE, None), (NOTE, None)))

    assert second == first | {"repeated": True}
    assert logged(folder).count("fed the cat") == 1


def test_a_fact_that_is_known_is_known_and_looked_up_anew_each_time(folder: Path) -> None:
    with Home.open(folder) as home:
        home.remember("Ana uses a Samsung phone")
    wish = {"target": "memory", "content": "Ana uses a Samsung phone"}
    found = [said(result) for result in calls(folder, ("http", "stateless"), (wish, None), (wish, None))]

    assert [(answer["status"], answer["rule"]) for answer in found] == [("known", "duplicate")] * 2
    assert not any("repeated" in answer for answer in found)  # a line that is taken back is known no longer


def test_a_write_after_another_to_the_same_place_is_a_new_one(folder: Path) -> None:
    one, two = ({"target": "notes/a.md", "content": text} for text in ("one\n", "two\n"))
    found = [said(result) for result in calls(folder, ("http", "stateless"), (one, None), (two, None), (one, None))]

    assert not any("repeated" in answer for answer in found)
    assert [answer["status"] for answer in found] == ["noted"] * 3 and found[0]["noted"] == found[2]["noted"]


@EACH_ERA
def test_a_key_names_one_write_whatever_comes_between(folder: Path, door: tuple[str, str]) -> None:
    other = {**NOTE, "content": "fed the dog"}
    *good, wrong, unnamed = calls(
        folder, door, (NOTE, "k1"), (other, "k2"), (NOTE, "k1"), (other, "k1"), (NOTE, "x" * 201)
    )

    assert ["repeated" in said(found) for found in good] == [False, False, True]
    assert "used for another call" in sentence(wrong) and "at most 200" in sentence(unnamed)
    assert [logged(folder).count(animal) for animal in ("the cat", "the dog")] == [1, 1]


def test_the_same_write_at_the_same_moment_is_done_once(folder: Path) -> None:
    async def work() -> list[dict[str, Any]]:
        async with visiting(folder, ("http", "stateless")) as client:
            return [said(f) for f in await asyncio.gather(*(client.call_tool("memory_write", NOTE) for _ in range(8)))]

    assert sum("repeated" not in answer for answer in run(work())) == 1
    assert logged(folder).count("fed the cat") == 1


def test_a_wish_that_waits_is_one_proposal_however_often_it_is_made(folder: Path) -> None:
    found = [said(result)["proposal"] for result in calls(folder, ("http", "stateless"), *[(TOOLS, None)] * 3)]

    assert len(set(found)) == 1


def test_after_a_minute_the_same_note_is_a_new_one(folder: Path) -> None:
    clock = Clock()
    with Home.open(folder, clock=clock) as home, home_visit(home) as visit:
        wish = Wish(name="memory_write", arguments=NOTE)
        answers = [visit(wish), visit(wish)]
        clock.forward(seconds=SAME.total_seconds() + 1)
        answers.append(visit(wish))

    assert ["repeated" in answer for answer in answers] == [False, True, False]


def test_a_visit_that_nobody_used_for_long_ends_and_what_it_read_stays_with_its_credential(folder: Path) -> None:
    clock = Clock()
    with Home.open(folder, clock=clock) as home:
        visits, visitor = Visits(), Visitor(home=home, scope=Scope.MAIN, key="a")
        with visits.visit(visitor) as first:
            first.session.taint("web")
        with visits.visit(visitor) as second:
            assert second is first
        clock.forward(seconds=IDLE.total_seconds() + 1)
        with visits.visit(Visitor(home=home, scope=Scope.MAIN, key="b")) as other:
            assert other.session.tainted == {"host"}
        with visits.visit(visitor) as third:
            assert third is not first and third.session.tainted == {"host", "web"}
        for number in range(MOST_VISITS + 3):
            with visits.visit(visitor, str(number)):
                pass
        assert len(visits._open) == MOST_VISITS
        asyncio.run(visits.close())
        assert not visits._open


def home_visit(home: Home) -> Any:
    from contextlib import contextmanager

    @contextmanager
    def opened() -> Any:
        with Visits().visit(Visitor(home=home, scope=Scope.MAIN)) as visit:
            call: Callable[[Wish], dict[str, Any]] = visit.call
            yield call

    return opened()
