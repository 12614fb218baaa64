"""The agent's tools as one table: name, what it is for, arguments, hints, and the scopes in which it exists.

Promise: MCP, HTTP, adapters and the command line are made from these rows; arguments are checked against them and a
wrong one is answered with a sentence a model can act on. Not here: what a tool does (sessions).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from anima.errors import BadArguments, printable
from anima.model import Scope
from anima.site import Site

ALL = frozenset(Scope)
MAIN = frozenset({Scope.MAIN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of a tool. `kind` is text, number (whole), share (0 to 1) or flag."""

    name: str
    kind: str
    about: str
    default: Any = None
    required: bool = False
    low: int | None = None
    high: int | None = None
    one_of: tuple[str, ...] = ()
    most: int = 262_144  # characters of a text

    def schema(self) -> dict[str, Any]:
        kinds = {"text": "string", "number": "integer", "share": "number", "flag": "boolean"}
        found: dict[str, Any] = {"type": kinds[self.kind], "description": self.about}
        if self.default is not None:
            found["default"] = self.default
        if self.low is not None:
            found |= {"minimum": self.low, "maximum": self.high}
        return found | ({"enum": list(self.one_of)} if self.one_of else {})


_PARTS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "number": {"type": "integer"},
    "share": {"type": "number"},
    "flag": {"type": "boolean"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "rows": {"type": "array", "items": {"type": "object"}},
    "object": {"type": "object"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a tool's answer. `kind` is one of `_PARTS`; one that is not `always` there may be missing or null."""

    name: str
    kind: str
    about: str = ""
    always: bool = True

    def schema(self) -> dict[str, Any]:
        found = dict(_PARTS[self.kind])
        if not self.always:
            found["type"] = [found["type"], "null"]
        return found | ({"description": self.about} if self.about else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A row of the table. `answer` is what its result holds; a tool that says nothing of it answers any object."""

    name: str
    about: str
    arguments: tuple[Argument, ...]
    scopes: frozenset[Scope] = ALL
    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    answer: tuple[Part, ...] = ()
    always: bool = False  # a host that loads tools when they are asked for should load this one at once

    def answer_schema(self) -> dict[str, Any]:
        """What a result looks like. Results may hold more than it says."""
        return {
            "type": "object",
            "properties": {part.name: part.schema() for part in self.answer},
            "required": [part.name for part in self.answer if part.always],
        }

    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {argument.name: argument.schema() for argument in self.arguments},
            "required": [argument.name for argument in self.arguments if argument.required],
            "additionalProperties": False,
        }

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with defaults filled in. Raises BadArguments."""
        names = [argument.name for argument in self.arguments]
        for name in given:
            if name not in names:
                near = get_close_matches(str(name), names, n=1)
                hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(names) or 'none'}"
                raise BadArguments(f"{self.name} has no argument {name!r}; {hint}")
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
        raise BadArguments(f"{tool}: {argument.name} must be from {argument.low} to {argument.high}, not {value}")
    if argument.one_of and value not in argument.one_of:
        raise BadArguments(f"{tool}: {argument.name} must be one of {', '.join(argument.one_of)}")
    if argument.kind == "text" and len(value) > argument.most:
        raise BadArguments(
            f"{tool}: {argument.name} has {len(value):,} characters; at most {argument.most:,} are taken"
        )
    return value


TABLE: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            name="memory_search",
            about=(
                "Find what was written down before: people, dates, decisions, preferences, earlier work. Ask in plain words. Use it before "
                "you answer from memory. Each hit has a citation such as memory/2026-05-08.md#L12; read around it with memory_get."
            ),
            arguments=(
                Argument(name="query", kind="text", about="the question, in plain words", required=True, most=4_000),
                Argument(name="limit", kind="number", about="how many hits", default=6, low=1, high=20),
                Argument(name="min_score", kind="share", about="leave out weaker hits", default=0, low=0, high=1),
                Argument(
                    name="corpus",
                    kind="text",
                    about="where to look",
                    default="memory",
                    one_of=("memory", "sessions", "all"),
                ),
                Argument(
                    name="fusion",
                    kind="text",
                    about="how words and meaning are joined",
                    default="context",
                    one_of=("context", "rrf", "weighted"),
                ),
            ),
            answer=(
                Part(name="hits", kind="rows", about="path, start_line, end_line, text, score, citation, provider"),
                Part(name="notes", kind="texts", about="why there is nothing, or what is not complete yet"),
            ),
            always=True,
        ),
        Tool(
            name="memory_get",
            about="Read a document of your home, from a line on. Use it after memory_search, or to read on where a prompt was cut.",
            arguments=(
                Argument(name="path", kind="text", about="the document, such as MEMORY.md", required=True, most=1024),
                Argument(name="from", kind="number", about="the first line, from 1", default=1, low=1, high=10_000_000),
                Argument(name="lines", kind="number", about="how many lines", default=120, low=1, high=10_000),
            ),
            answer=(
                Part(name="path", kind="text"),
                Part(name="from", kind="number"),
                Part(name="lines", kind="number"),
                Part(name="text", kind="text"),
                Part(name="truncated", kind="flag", about="whether more follows"),
                Part(name="next_from", kind="number", about="where to read on", always=False),
            ),
            always=True,
        ),
        Tool(
            name="memory_write",
            about=(
                "Write down what should outlive this conversation. Target `memory` for durable facts (one line, one fact), `daily_log` for "
                "what happened, `heartbeat`, `bootstrap` (empty content when the first conversation is done), or a path ending in .md. "
                "The answer says whether it was written, waits for the owner (pending), or was refused and why."
            ),
            arguments=(
                Argument(
                    name="target",
                    kind="text",
                    about="memory, daily_log, heartbeat, bootstrap, path",
                    default="daily_log",
                ),
                Argument(name="content", kind="text", about="the text; empty only for bootstrap", default=""),
                Argument(
                    name="append",
                    kind="flag",
                    about="add at the end (true) or replace the whole document (false)",
                    default=True,
                ),
                Argument(name="section", kind="text", about="for memory: the heading to put it under", most=200),
                Argument(name="old_string", kind="text", about="to edit: the exact text to replace"),
                Argument(name="new_string", kind="text", about="to edit: what to put in its place"),
                Argument(name="replace_all", kind="flag", about="to edit: replace every occurrence", default=False),
                Argument(
                    name="reason", kind="text", about="why, for the owner who may read it", default="", most=1_000
                ),
            ),
            read_only=False,
            destructive=True,
            idempotent=False,
            answer=(
                Part(name="status", kind="text", about="written, pending, refused"),
                Part(name="path", kind="text"),
                Part(name="revision", kind="text", always=False),
                Part(name="proposal", kind="text", always=False),
                Part(name="rule", kind="text", always=False),
                Part(name="findings", kind="rows"),
                Part(name="reason", kind="text", always=False),
                Part(name="review", kind="text", about="how the owner decides", always=False),
            ),
            always=True,
        ),
        Tool(
            name="memory_tree",
            about="List what is in your home. Folders end with a slash.",
            arguments=(
                Argument(name="path", kind="text", about="a folder; empty for the whole home", default="", most=1024),
                Argument(name="depth", kind="number", about="how many levels", default=1, low=1, high=10),
            ),
            answer=(Part(name="path", kind="text"), Part(name="entries", kind="texts")),
        ),
        Tool(
            name="memory_history",
            about="What was changed when and by whom, newest first.",
            arguments=(
                Argument(name="path", kind="text", about="one document; empty for all", default="", most=1024),
                Argument(name="limit", kind="number", about="how many revisions", default=10, low=1, high=100),
                Argument(name="diff", kind="flag", about="also show what each revision changed", default=False),
            ),
            scopes=frozenset({Scope.MAIN, Scope.HEARTBEAT}),
            answer=(Part(name="revisions", kind="rows", about="id, time, actor, subject, diff"),),
        ),
        Tool(
            name="memory_forget",
            about=(
                "Ask the owner to have something forgotten: a text wherever it stands, or one line of a document. Use it when somebody "
                "asks you to forget. It always waits for the owner, who sees what would go."
            ),
            arguments=(
                Argument(name="text", kind="text", about="the words to forget, wherever they stand", most=10_000),
                Argument(name="path", kind="text", about="or a document, with line", most=1024),
                Argument(
                    name="line",
                    kind="number",
                    about="the line of that document, as memory_get counts",
                    low=1,
                    high=10_000_000,
                ),
                Argument(
                    name="reason", kind="text", about="why, for the owner who may read it", default="", most=1_000
                ),
            ),
            scopes=frozenset({Scope.MAIN, Scope.GROUP, Scope.CRON, Scope.HEARTBEAT}),
            read_only=False,
            destructive=True,
        ),
        Tool(
            name="memory_checkpoint",
            about="Commit what was written so far to history, with a note.",
            arguments=(Argument(name="note", kind="text", about="what was reached", default="", most=1_000),),
            scopes=frozenset({Scope.MAIN, Scope.CRON, Scope.HEARTBEAT}),
            read_only=False,
            answer=(Part(name="revision", kind="text", always=False), Part(name="skipped", kind="flag")),
        ),
        Tool(
            name="who_am_i",
            about="Who you are: your name, nature and the beginning of your soul. Use it when somebody asks who you are.",
            arguments=(),
            answer=(
                Part(name="agent_id", kind="text"),
                Part(name="model", kind="text", always=False),
                Part(name="workspace_dir", kind="text", always=False),
                Part(name="identity", kind="object", about="name, creature, vibe, emoji, avatar"),
                Part(name="soul_excerpt", kind="text", always=False),
            ),
        ),
        Tool(
            name="what_do_i_know",
            about=(
                "An outline of what you know for certain: the sections of your curated memory with their first lines. Use it when somebody "
                "asks what you know or remember; use memory_search to find something in particular."
            ),
            arguments=(
                Argument(name="section", kind="text", about="only sections whose heading holds this", most=200),
                Argument(name="limit", kind="number", about="how many sections", default=20, low=1, high=50),
            ),
            scopes=MAIN,
            answer=(
                Part(name="sections", kind="rows", about="heading, bullets, extra_bullets"),
                Part(name="truncated", kind="flag"),
            ),
        ),
        Tool(
            name="my_stats",
            about="How you live: sessions, memories stored and promoted, the last dream, and what you recalled most in seven days.",
            arguments=(),
            scopes=MAIN,
            answer=(
                Part(name="sessions_total", kind="number"),
                Part(name="memories_stored", kind="number"),
                Part(name="memories_promoted", kind="number"),
                Part(name="last_dream_ts", kind="text", always=False),
                Part(name="recall_events_7d", kind="number"),
                Part(name="top_concept_tags_7d", kind="rows", about="tag, count"),
                Part(name="workspace_files_present", kind="texts"),
            ),
        ),
        Tool(
            name="session_logs",
            about=(
                "What was said in your own conversations. list_sessions names them, read_session shows one from its beginning, recent the "
                "end of one (this one unless session_id says another), search finds entries by words in all of them."
            ),
            arguments=(
                Argument(
                    name="action",
                    kind="text",
                    about="what to do",
                    required=True,
                    one_of=("list_sessions", "read_session", "search", "recent"),
                ),
                Argument(name="session_id", kind="text", about="which session; recent defaults to this one", most=200),
                Argument(name="query", kind="text", about="for search: the words to find", most=2_000),
                Argument(name="limit", kind="number", about="how many at most; 50, for recent 10", low=1, high=500),
                Argument(
                    name="max_chars",
                    kind="number",
                    about="characters of each entry that are shown",
                    default=200,
                    low=20,
                    high=4_000,
                ),
            ),
            scopes=MAIN,
            answer=(
                Part(name="ok", kind="flag"),
                Part(name="sessions", kind="rows", always=False),
                Part(name="entries", kind="rows", always=False),
                Part(name="hits", kind="rows", always=False),
            ),
        ),
    )
}


def tools_in(scope: Scope, allowed: Sequence[str] = ("*",), *, without: Collection[str] = ()) -> tuple[Tool, ...]:
    """The tools that exist in a scope, of those that a pattern such as `memory_*` allows."""
    return tuple(
        tool
        for tool in TABLE.values()
        if scope in tool.scopes and tool.name not in without and any(fnmatchcase(tool.name, each) for each in allowed)
    )


def tools_for(site: Site, scope: Scope) -> tuple[Tool, ...]:
    """The tools an agent has in a scope: those of the table that the configuration allows it."""
    without = () if site.config.sessions.dir else ("session_logs",)
    return tools_in(scope, site.own.allowed_tools, without=without)


def chosen(name: str, there: Sequence[Tool]) -> Tool:
    """The tool of that name. Raises BadArguments; one that exists elsewhere only is not there."""
    names = {tool.name: tool for tool in there}
    if name in names:
        return names[name]
    near = get_close_matches(str(name)[:100], names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names) or 'none'}"
    raise BadArguments(f"there is no tool {printable(str(name), 60)!r} here; {hint}")
