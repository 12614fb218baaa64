"""Shapes: rows of the tool table, documents, answers and errors as the protocol wants to have them.

Promise: pure; whatever is said of an error holds no path of this machine. Not here: any call (serving).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types

from anima import HomeError, NoSuchDocument, Tool
from anima.model import Entry

PREFIX = "home:///"
MARKDOWN = "text/markdown"
PAGE = 200
TEMPLATE = types.ResourceTemplate(
    name="document",
    title="A document of the home",
    uri_template="home:///{+path}",
    mime_type=MARKDOWN,
    description="Any document you may see, by its path: home:///memory/2026-05-08.md",
)


def tools_of(rows: Iterable[Tool]) -> list[types.Tool]:
    """The rows of the tool table as the protocol writes them."""
    return [_tool(row) for row in rows]


def _tool(row: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        read_only_hint=row.read_only,
        destructive_hint=row.destructive,
        idempotent_hint=row.idempotent,
        open_world_hint=False,
    )
    return types.Tool(
        name=row.name,
        title=row.name.replace("_", " ").capitalize(),
        description=row.about,
        input_schema=row.schema(),
        output_schema=row.answer_schema(),
        annotations=hints,
        _meta={"anthropic/alwaysLoad": True} if row.always else None,
    )


def answered(answer: dict[str, Any]) -> types.CallToolResult:
    text = json.dumps(answer, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=answer)


def failed(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=sentence)], is_error=True)


def sentence_of(error: HomeError, *, root: str) -> str:
    """An error as a sentence the model can act on."""
    hint = error.hint
    if isinstance(error, NoSuchDocument):
        hint = "memory_tree lists what is there"
    elif hint and hint.startswith("anima "):
        hint = f"the owner can help: {hint}"
    said = f"{error}; {hint}" if hint else str(error)
    return said.replace(root, "the home")


# -- documents ---------------------------------------------------------------------------------------------------------


def uri_of(path: str) -> str:
    return PREFIX + quote(path)


def path_of(uri: str) -> str | None:
    """The path in an address of ours, also in one written with two slashes; None for any other address."""
    scheme, colon, rest = uri.partition(":")
    if scheme.casefold() != "home" or not colon or not rest.startswith("//"):
        return None
    try:
        return unquote(rest.lstrip("/"), errors="strict") or None
    except UnicodeDecodeError:
        return None


def resource(entry: Entry) -> types.Resource:
    return types.Resource(
        uri=uri_of(entry.path),
        name=entry.path,
        mime_type=MARKDOWN,
        size=entry.size,
        annotations=types.Annotations(last_modified=entry.time.isoformat()),
    )


def page_of(entries: Sequence[Entry], cursor: str | None) -> tuple[list[types.Resource], str | None]:
    """One page of a list that is sorted by path, and the cursor of the next. Raises ValueError for a cursor that is none."""
    after = base64.b64decode(cursor, altchars=b"-_", validate=True).decode() if cursor else ""
    rest = [entry for entry in entries if entry.path > after]
    more = len(rest) > PAGE
    shown = rest[:PAGE]
    return [resource(e) for e in shown], base64.urlsafe_b64encode(shown[-1].path.encode()).decode() if more else None
