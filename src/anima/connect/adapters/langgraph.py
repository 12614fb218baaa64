"""LangGraph: a home as the graph's `BaseStore`, its tools, and what a model node is shown.

Promise: an item is a page of the home, `memory/topics/<namespace>/<key>.md`, its value as a block of JSON that a person can
read; a write passes the gate, and one that is not carried out raises `Refused` with the reason and what happens next. `shown`
puts the prompt before the messages and takes in what is new of them: a person's are the owner's; other agents', what a
service looked up, and a tool's are from outside unless it is the home's or stands in `own_tools`.

    home = LodgedStore(opened.session(scope="main"))
    graph.add_node("model", lambda state: {"messages": [model.invoke(home.shown(state["messages"]))]})
    graph.compile(store=home)
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from anima import Session, Tool
from anima.connect.adapters import Lodger, needed, parsed
from anima.errors import NotFound, Refused
from anima.model import Kind

with needed("langgraph", "LangGraph"):
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
    from langchain_core.tools import StructuredTool
    from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, PutOp, SearchItem, SearchOp

_BLOCK = re.compile(r"^```json\n(.*?)^```$", re.M | re.S)
_PLAIN, _RESERVED = re.compile(r"[a-z0-9_-]"), re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])\Z")
# Parts of a model's own answer; all others bring something in, as a service's own search does.
_OWN_WORK = {"text", "thinking", "redacted_thinking", "reasoning", "refusal", "tool_use", "tool_call", "function_call"}
_BY: dict[str, Callable[[Any, Any], bool]] = {"$eq": eq, "$ne": ne, "$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}


class LodgedStore(BaseStore):
    """The store, and the conversation of one graph."""

    def __init__(self, session: Session) -> None:
        self.session, self.prompt, self._lodger = session, session.prompt.text, Lodger(session)
        self.tools = [self._tool(tool) for tool in self._lodger.tools]
        self._top = f"{session.site.layout.topics}/"

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        return [self._do(op) for op in ops]

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        return await asyncio.to_thread(self.batch, ops)

    def _do(self, op: Any) -> Any:
        match op:
            case GetOp(namespace=namespace, key=key):
                return self._item(self._path(namespace, key))
            case PutOp(namespace=namespace, key=key, value=value):
                return self._put(self._path(namespace, key), value)
            case SearchOp():
                return self._search(op)
            case ListNamespacesOp():
                return self._namespaces(op)
        raise ValueError(f"there is no operation {type(op).__name__} here")

    def _path(self, namespace: Sequence[str], key: str) -> str:
        return f"{self._top}{'/'.join(map(_spelt, (*namespace, key)))}.md"

    def _item(self, path: str, score: float | None = None) -> Item | None:
        try:
            text = self.session.read(path)
        except NotFound:
            return None
        *namespace, key = (_unspelt(part) for part in path.removeprefix(self._top).removesuffix(".md").split("/"))
        found = _BLOCK.findall(text)
        value = parsed(found[-1]) if found else None
        when = self._times().get(path) or datetime.fromtimestamp(0, UTC)
        value = value if isinstance(value, dict) else {"text": text}
        given = {"namespace": tuple(namespace), "key": key, "value": value, "created_at": when, "updated_at": when}
        return Item(**given) if score is None else SearchItem(**given, score=score)

    def _times(self) -> dict[str, datetime | None]:
        return {seen.path: seen.time for seen in self.session.documents() if seen.path.startswith(self._top)}

    def _put(self, path: str, value: object) -> None:
        """An item in its place; None takes it out."""
        if value is None:
            if path not in self._times():
                return
            answer = self.session.change(Kind.DELETE, path)
        else:
            name = _unspelt(path.rpartition("/")[2].removesuffix(".md")).replace("<", " ")
            page = f"# {' '.join(name.split())}\n\n```json\n{json.dumps(value, ensure_ascii=False, indent=2)}\n```\n"
            answer = self.session.call("memory_write", {"target": path, "content": page, "append": False})
        if answer["status"] != "written":
            why = f"{path} was not written ({answer['status']}): {answer.get('reason', '')}"
            raise Refused(why, rule=answer.get("rule") or "", hint=answer.get("review"))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        inside = self._top + "".join(f"{_spelt(part)}/" for part in op.namespace_prefix)
        if op.query:
            hits = self.session.call("memory_search", {"query": op.query, "limit": 20})["hits"]
            scores = {hit["path"]: hit["score"] for hit in reversed(hits)}
            paths = sorted(scores, key=scores.__getitem__, reverse=True)
        else:
            scores, paths = {}, sorted(self._times())
        found = (self._item(path, scores.get(path, 0.0)) for path in paths if path.startswith(inside))
        fitting = [item for item in found if isinstance(item, SearchItem) and _fits(item.value, op.filter or {})]
        return fitting[op.offset : op.offset + op.limit]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        folders = (path.removeprefix(self._top).split("/")[:-1] for path in self._times())
        found = {tuple(map(_unspelt, folder)) for folder in folders if folder}
        for asked in op.match_conditions or ():
            found = {each for each in found if _matches(each, asked.path, asked.match_type == "suffix")}
        cut = sorted({each[: op.max_depth] for each in found})
        return cut[op.offset : op.offset + op.limit]

    def shown(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """What a model is shown: the prompt, then these messages, of which what is new is taken in."""
        for number, message in enumerate(messages):
            self._take(message, message.id or f"{number}-{_digest(message)}")
        return [SystemMessage(self.prompt), *messages]

    def heard(self, message: BaseMessage) -> BaseMessage:
        """What the model answers, on record at once."""
        self._take(message, message.id or _digest(message), ours=True)
        return message

    def past(self) -> list[BaseMessage]:
        """The conversation so far, for a graph that takes it up without a checkpoint of its own."""
        found: list[BaseMessage] = []
        for number, (who, id, turn) in enumerate(self._lodger.past()):
            if who == "call":
                call = {"name": str(turn.name), "args": (turn.call or {}).get("arguments") or {}, "id": id}
                result = ToolMessage(turn.content, tool_call_id=id, name=turn.name, id=f"result-{number}")
                found += [AIMessage("", tool_calls=[call], id=f"asked-{number}"), result]
            else:
                made = AIMessage if who == "model" else HumanMessage
                found.append(made(turn.content, id=turn.message_id or f"past-{number}"))
        for message in found:
            is_result = isinstance(message, ToolMessage)
            self._lodger.is_new(f"{message.name} {message.id} {_digest(message)}" if is_result else message.id)
        return found

    def _take(self, message: BaseMessage, id: str, *, ours: bool = False) -> None:
        """Takes in a message that is new. An id that was seen proves nothing: an answer that was not `heard`, and other words
        under an id of the owner's, are from outside, and known by who says them and what."""
        text = message.content if isinstance(message.content, str) else str(message.text)
        who = message.name or message.type
        exact = f"{who} {id} {_digest(message)}"
        types = {part.get("type") for part in message.content if isinstance(part, dict)}
        brought = types - (_OWN_WORK if isinstance(message, AIMessage) else {"text"})
        if (brought or "tool_outputs" in message.additional_kwargs) and self._lodger.is_new(f"parts {exact}"):
            self._lodger.attached()
        if isinstance(message, ToolMessage):
            if self._lodger.is_new(exact):
                self._lodger.outside(message.name or "tool", {}, text, message.tool_call_id)
        elif isinstance(message, AIMessage) and (ours or (not message.name and self._lodger.knows(text))):
            self._lodger.model(text, exact if message.name else id)
        elif isinstance(message, HumanMessage) and not message.name and self._lodger.knows(text, id):
            self._lodger.owner(text, id)
        else:
            self._lodger.other(who, text, exact)

    def _tool(self, tool: Tool) -> StructuredTool:
        def call(**given: Any) -> str:
            return self._lodger.call(tool.name, given)

        return StructuredTool(name=tool.name, description=tool.about, args_schema=tool.schema(), func=call)


def _spelt(part: str) -> str:
    """A part of a namespace as a name of a file: what no name may hold is written as its bytes. Two never become one."""
    plain = _PLAIN if not _RESERVED.match(part) else re.compile("(?!)")
    return "".join(c if plain.match(c) else "".join(f"={byte:02x}" for byte in c.encode()) for c in part) or "="


def _unspelt(name: str) -> str:
    raw = re.sub(r"=([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), name.rstrip("="))
    return raw.encode("latin-1", "replace").decode("utf-8", "replace")


def _fits(value: Any, asked: Any) -> bool:
    """Whether a value is as a filter asks: equal, part by part, or by an operator."""
    if not isinstance(asked, dict):
        return bool(value == asked)
    if not any(key in _BY for key in asked):
        return isinstance(value, dict) and all(_fits(value.get(key), each) for key, each in asked.items())
    return all(_BY[key](value, other) for key, other in asked.items())


def _matches(namespace: tuple[str, ...], path: Sequence[str], at_the_end: bool) -> bool:
    part = namespace[-len(path) :] if at_the_end else namespace[: len(path)]
    return len(part) == len(path) and all(wanted in ("*", each) for each, wanted in zip(part, path, strict=True))


def _digest(message: BaseMessage) -> str:
    return hashlib.sha256(f"{message.type}\n{message.content}".encode()).hexdigest()[:24]
