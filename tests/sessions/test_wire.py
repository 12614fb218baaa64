"""Tools and calls in the shapes of models' services, answered in the same shape, with errors a model can use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import mcp_types
import pytest
from openai.types.responses import FunctionToolParam
from pydantic import BaseModel, TypeAdapter

from anima import BadArguments, Home, NoSuchDocument, Scope, Session
from anima.sessions.tools import Format
from anima.testing import Clock


@pytest.fixture
def session(tmp_path: Path, clock: Clock) -> Iterator[Session]:
    with (
        Home.create(tmp_path / "home", name="Aria", clock=clock) as home,
        home.session(scope=Scope.MAIN, channel="cli") as made,
    ):
        home.remember("The boat is called Sandpiper")
        yield made


def chat(name: str, arguments: str, id: str = "call_1") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_tools_are_told_in_the_shape_of_each_service(session: Session) -> None:
    names = [tool.name for tool in session.tools()]
    openai, responses, anthropic, mcp = (session.tools(format=each) for each in get_args(Format))

    assert [tool["function"]["name"] for tool in openai] == names and {tool["type"] for tool in openai} == {"function"}
    assert [tool["name"] for tool in anthropic] == names and all(tool["input_schema"] for tool in anthropic)
    assert [mcp_types.Tool.model_validate(tool).name for tool in mcp] == names
    assert [TypeAdapter(FunctionToolParam).validate_python(tool)["name"] for tool in responses] == names
    assert {tool["strict"] for tool in responses} == {False}
    with pytest.raises(BadArguments, match="openai, responses, anthropic, mcp"):
        session.tools(format="gemini")  # type: ignore[call-overload]


def test_calls_of_openai_are_answered_as_messages_of_a_tool(session: Session) -> None:
    [found] = session.run([chat("memory_search", '{"query": "boat"}')])

    assert (found["role"], found["tool_call_id"]) == ("tool", "call_1")
    assert "Sandpiper" in json.loads(found["content"])["hits"][0]["text"]
    [said] = session.run(
        [{"type": "reasoning"}, {"type": "function_call", "call_id": "c", "name": "who_am_i", "arguments": ""}]
    )
    assert (said["type"], said["call_id"]) == ("function_call_output", "c") and "Aria" in said["output"]


def test_calls_of_anthropic_are_answered_as_results_and_text_beside_them_is_passed_over(session: Session) -> None:
    content = [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_1", "name": "memory_search", "input": {"query": "boat"}},
        {"type": "tool_use", "id": "toolu_2", "name": "memory_get", "input": {"path": "nowhere.md"}},
    ]
    good, bad = session.run(content)

    assert good["tool_use_id"] == "toolu_1" and "Sandpiper" in good["content"] and "is_error" not in good
    assert bad["is_error"] and json.loads(bad["content"]) == {
        "error": "nowhere.md: there is no such document; memory_tree lists what is there"
    }


def test_objects_of_a_services_library_are_taken_as_they_are(session: Session) -> None:
    class Called(BaseModel):
        type: str
        id: str
        name: str
        input: dict[str, Any]

    [found] = session.run([Called(type="tool_use", id="t", name="who_am_i", input={})])

    assert found["tool_use_id"] == "t"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (chat("memory_serch", "{}"), "did you mean memory_search"),
        (chat("memory_search", '{"query": '), "takes its arguments as a JSON object"),
        (chat("memory_search", "[1]"), "takes its arguments as a JSON object"),
        (chat("memory_search", '{"qery": "boat"}'), "did you mean query"),
    ],
)
def test_what_a_model_gets_wrong_is_answered_with_what_to_do_and_recorded(
    session: Session, call: dict[str, Any], said: str
) -> None:
    [found] = session.run([call])

    assert said in json.loads(found["content"])["error"]
    [entry] = session.rooms.read(session.id).entries
    assert said in entry.content and entry.message_id == "call_1"


def test_pairs_are_answered_with_dictionaries_and_nothing_with_nothing(session: Session) -> None:
    found = session.run([("who_am_i", {}), ("memory_get", {"path": "nowhere.md"})])

    assert found[0]["identity"]["name"] == "Aria" and "no such document" in found[1]["error"]
    assert session.run(None) == session.run([]) == []


@pytest.mark.parametrize("one", ["memory_search", {"name": "memory_search"}, 5])
def test_what_is_no_call_is_refused_before_anything_is_done(session: Session, one: object) -> None:
    with pytest.raises(BadArguments, match="no tool call"):
        session.run([one])


def test_a_whole_message_or_response_is_taken_for_the_calls_in_it(session: Session) -> None:
    calls = [chat("who_am_i", "{}")]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    blocks = [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "c", "name": "who_am_i", "input": {}},
    ]
    output = [{"type": "function_call", "call_id": "c", "name": "who_am_i", "arguments": "{}"}]

    for whole in (message, {"choices": [{"message": message}]}, {"role": "assistant", "content": blocks}):
        assert "Aria" in session.run(whole)[0]["content"]
    assert "Aria" in session.run({"output": output})[0]["output"]
    assert session.run({"role": "assistant", "content": "No tools today."}) == []


@pytest.mark.parametrize("given", [{"role": "user", "content": "hello"}, {}, {"choices": []}, "who_am_i", 5, object()])
def test_what_holds_no_calls_is_answered_with_what_to_hand_in(session: Session, given: object) -> None:
    with pytest.raises(BadArguments, match="no tool call") as error:
        session.run(given)
    assert "message.tool_calls" in str(error.value.hint)


def test_a_closed_session_runs_nothing(session: Session) -> None:
    session.close()
    with pytest.raises(BadArguments, match="closed"):
        session.run([("who_am_i", {})])


def test_a_call_that_is_broken_is_answered_with_its_id(session: Session) -> None:
    broken = {"id": "c2", "type": "function"}
    custom = {"id": "c3", "type": "custom", "custom": {"name": "memory_search", "input": "boat"}}
    first, second, third = session.run([chat("who_am_i", "{}", "c1"), broken, custom])

    assert [each["tool_call_id"] for each in (first, second, third)] == ["c1", "c2", "c3"]
    assert (
        "Aria" in first["content"]
        and "error" in json.loads(second["content"])
        and "error" in json.loads(third["content"])
    )


def test_what_a_hit_cites_is_read_and_forgotten_as_it_is_cited(session: Session) -> None:
    [hit, *_] = session.call("memory_search", {"query": "boat"})["hits"]
    path, _, line = hit["citation"].partition("#L")

    found = session.call("memory_get", {"path": hit["citation"]})

    assert (found["path"], found["from"]) == (path, int(line)) and "Sandpiper" in found["text"].splitlines()[0]
    with pytest.raises(NoSuchDocument):
        session.call("memory_get", {"path": "MEMORY.md#L"})


@pytest.mark.parametrize("given", [{"choices": [{"delta": {}}]}, {"choices": [{"message": None}]}, {"choices": "x"}])
def test_a_response_without_a_message_is_told_in_a_sentence(session: Session, given: object) -> None:
    with pytest.raises(BadArguments):
        session.run(given)  # type: ignore[arg-type]
