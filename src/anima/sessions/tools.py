"""The agent's tools as one table, tables/tools.toml: name, purpose, arguments, hints, and scopes in which each exists;
and calls of them in the shapes in which models' services send them.

Promise: MCP, HTTP, adapters and the command line are made from these rows; a wrong argument is answered with a sentence
a model can act on, and a call in the shape it came in. Not here: what a tool does (calls), carrying out a call
(session).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from anima.errors import BadArguments, meant, printable
from anima.model import Scope
from anima.site import Site
from anima.text import read_table

Format = Literal["openai", "responses", "anthropic", "mcp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of a tool, or one part of its answer. `kind` is one of `_PARTS`, of an argument text, number (whole), share
    (0 to 1) or flag; a part of an answer that is not `always` there may be missing or null."""

    name: str
    kind: str
    about: str = ""
    default: Any = None
    required: bool = False
    low: int | None = None
    high: int | None = None
    one_of: Sequence[str] = ()
    most: int = 262_144  # characters of a text
    always: bool = True

    def schema(self) -> dict[str, Any]:
        found = _PARTS[self.kind] | ({"description": self.about} if self.about else {})
        if not self.always:
            found["type"] = [found["type"], "null"]
        if self.default is not None:
            found["default"] = self.default
        if self.low is not None:
            found |= {"minimum": self.low, "maximum": self.high}
        return found | ({"enum": list(self.one_of)} if self.one_of else {})


_PLAIN = {"text": "string", "number": "integer", "share": "number", "flag": "boolean", "object": "object"}
_LISTS = {"texts": "string", "rows": "object", "pairs": "array"}
_PARTS: dict[str, dict[str, Any]] = {kind: {"type": name} for kind, name in _PLAIN.items()}
_PARTS |= {kind: {"type": "array", "items": {"type": name}} for kind, name in _LISTS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A row of the table. `answer` is what its result holds; a tool that says nothing of it answers any object."""

    name: str
    about: str
    arguments: tuple[Argument, ...]
    scopes: frozenset[Scope] = frozenset(Scope)
    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    answer: tuple[Argument, ...] = ()
    row: str = ""  # of the file table: it exists only for whom that row stands in the prompt
    always: bool = False  # a host that loads tools when they are asked for should load this one at once

    def answer_schema(self) -> dict[str, Any]:
        """What a result looks like. Results may hold more than it says."""
        needed = [part.name for part in self.answer if part.always]
        return {"type": "object", "properties": {part.name: part.schema() for part in self.answer}, "required": needed}

    def schema(self) -> dict[str, Any]:
        """What the arguments look like, as JSON Schema."""
        properties = {argument.name: argument.schema() for argument in self.arguments}
        needed = [argument.name for argument in self.arguments if argument.required]
        return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}

    def described(self, format: Format) -> dict[str, Any]:
        """The tool as a service wants to be told of it: OpenAI's chat or responses, Anthropic's messages, or MCP."""
        about = {"name": self.name, "description": self.about, "parameters": self.schema()}
        match format:
            case "openai":
                return {"type": "function", "function": about}
            case "responses":
                return {"type": "function", **about, "strict": False}  # strict, every argument would have to be given
            case "anthropic":
                return {"name": self.name, "description": self.about, "input_schema": self.schema()}
            case "mcp":
                hints = {"readOnlyHint": self.read_only, "destructiveHint": self.destructive}
                return {
                    "name": self.name,
                    "title": self.name.replace("_", " ").capitalize(),
                    "description": self.about,
                    "inputSchema": self.schema(),
                    "outputSchema": self.answer_schema(),
                    "annotations": hints | {"idempotentHint": self.idempotent, "openWorldHint": False},
                } | ({"_meta": {"anthropic/alwaysLoad": True}} if self.always else {})
        raise BadArguments(f"there is no format {format!r}; there are {', '.join(get_args(Format))}")

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with defaults filled in. Raises BadArguments."""
        names = [argument.name for argument in self.arguments]
        if not isinstance(given, Mapping):
            raise BadArguments(f"{self.name} takes its arguments as a JSON object: {', '.join(names) or 'none'}")
        for name in given:
            if name not in names:
                hint = meant(str(name), names, f"it takes {', '.join(names) or 'none'}", near=0.7)
                raise BadArguments(f"{self.name} has no argument {printable(str(name), 60)!r}; {hint}")
        return {argument.name: _value(self.name, argument, given) for argument in self.arguments}


def _value(tool: str, argument: Argument, given: Mapping[str, Any]) -> Any:
    if argument.name not in given or given[argument.name] is None:
        if argument.required:
            raise BadArguments(f"{tool} needs {argument.name}: {argument.about}")
        return argument.default
    value = given[argument.name]
    kinds: dict[str, tuple[Any, str]] = {
        "text": (str, "text"),
        "number": (int, "a whole number"),
        "share": ((int, float), "a number"),
        "flag": (bool, "true or false"),
    }
    wanted, named = kinds[argument.kind]
    if not isinstance(value, wanted) or (argument.kind in ("number", "share") and isinstance(value, bool)):
        raise BadArguments(f"{tool}: {argument.name} must be {named}")
    if argument.low is not None and argument.high is not None and not argument.low <= value <= argument.high:
        said = f"must be from {argument.low} to {argument.high}, not {printable(str(value), 20)}"
        raise BadArguments(f"{tool}: {argument.name} {said}")
    if argument.one_of and value not in argument.one_of:
        raise BadArguments(f"{tool}: {argument.name} must be one of {', '.join(argument.one_of)}")
    if argument.kind == "text" and (size := len(value)) > argument.most:
        raise BadArguments(f"{tool}: {argument.name} has {size:,} characters; at most {argument.most:,} are taken")
    return value


def tool_of(name: str, row: dict[str, Any]) -> Tool:
    made: dict[str, Any] = {"name": name, "scopes": frozenset(map(Scope, row.get("scopes", Scope)))}
    for part in ("arguments", "answer"):
        made[part] = tuple(Argument(name=key, **values) for key, values in row.get(part, {}).items())
    return Tool(**(row | made))


TABLE: dict[str, Tool] = {name: tool_of(name, row) for name, row in read_table("sessions", "tools").items()}


def tools_for(site: Site, scope: Scope) -> tuple[Tool, ...]:
    """The tools an agent has in a scope: those of the table that a pattern such as `memory_*` of the configuration allows."""
    without = "" if site.config.sessions.dir else "session_logs"
    there = [tool for tool in TABLE.values() if scope in tool.scopes and tool.name != without]
    there = [tool for tool in there if not tool.row or scope in site.layout.row(tool.row).scopes]
    return allowed(site, there)


def allowed(site: Site, tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Of these tools, those that a pattern of the configuration allows the agent."""
    return tuple(tool for tool in tools if any(fnmatchcase(tool.name, each) for each in site.own.allowed_tools))


def chosen(name: str, there: Sequence[Tool]) -> Tool:
    """The tool of that name. Raises BadArguments; one that exists elsewhere only is not there."""
    names = {tool.name: tool for tool in there}
    if name in names:
        return names[name]
    hint = meant(str(name), names, f"there are {', '.join(names) or 'none'}", near=0.7)
    raise BadArguments(f"there is no tool {printable(str(name), 60)!r} here; {hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call as a model wishes for it. `shape` is openai, responses, anthropic or pair."""

    name: str
    arguments: Any
    id: str | None
    shape: str

    def answered(self, answer: Mapping[str, Any], wrong: bool) -> Any:
        text = json.dumps(answer, ensure_ascii=False)
        match self.shape:
            case "openai":
                return {"role": "tool", "tool_call_id": self.id, "content": text}
            case "responses":
                return {"type": "function_call_output", "call_id": self.id, "output": text}
            case "anthropic":
                found = {"type": "tool_result", "tool_use_id": self.id, "content": text}
                return found | ({"is_error": True} if wrong else {})
        return dict(answer)


def tool_calls(given: Any) -> Iterator[ToolCall]:
    """The calls among what a model answered: `message.tool_calls`, `response.output`, `message.content`, all of these whole, or
    pairs. What is no call (a text beside it) is passed over; arguments that are no JSON are handed on, for the tool to refuse."""
    whole = given.model_dump() if hasattr(given, "model_dump") else given
    if isinstance(whole, Mapping):
        message: Any = whole
        if isinstance(choices := whole.get("choices"), Sequence) and choices:
            message = next((each.get("message") for each in choices if isinstance(each, Mapping)), None)
        if not isinstance(message, Mapping):
            raise _shapeless(given)
        if message.get("role") != "assistant" and not message.keys() & {"tool_calls", "output"}:
            raise _shapeless(given)
        whole = next((message[key] for key in ("tool_calls", "output", "content") if message.get(key)), None)
        whole = [] if isinstance(whole, str) else whole
    if isinstance(whole, str) or not isinstance(whole or [], Iterable):
        raise _shapeless(given)
    for one in whole or ():
        if isinstance(one, tuple) and len(one) == 2:
            yield ToolCall(name=str(one[0]), arguments=one[1], id=None, shape="pair")
            continue
        found = one.model_dump() if hasattr(one, "model_dump") else one
        if not isinstance(found, Mapping):
            raise _shapeless(one)
        kind, function = found.get("type"), found.get("function") or found.get("custom")
        if kind in ("function", "custom") or isinstance(function, Mapping):  # a broken one gets its answer, too
            named = function if isinstance(function, Mapping) else {}
            yield _called("openai", named, found.get("id"), named.get("arguments", named.get("input")))
        elif kind == "function_call":
            yield _called("responses", found, found.get("call_id"), found.get("arguments"))
        elif kind == "tool_use":
            yield _called("anthropic", found, found.get("id"), found.get("input"))
        elif not isinstance(kind, str):
            raise _shapeless(one)


def _called(shape: str, named: Mapping[str, Any], id: object, arguments: Any) -> ToolCall:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            pass
    return ToolCall(name=str(named.get("name")), arguments=arguments, id=None if id is None else str(id), shape=shape)


def _shapeless(one: object) -> BadArguments:
    return BadArguments(
        f"this is no tool call: {type(one).__name__}",
        hint="hand in message.tool_calls (OpenAI), response.output, message.content (Anthropic), or pairs (name, arguments)",
    )
