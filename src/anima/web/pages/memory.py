"""Memory: every document of the home, read with a mark beside each line, edited, and taken back.

Promise: documents are shown inert; a write is bound to the text that was read; what an undo or a restore would change is
shown before it is done. A chosen line says why it is there and which versions touched it. Not here: writing (the API).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from anima.errors import BadArguments, HomeError, NoSuchDocument, NoSuchRevision, StaleWrite
from anima.home import Home
from anima.layout.table import Policy, Row
from anima.memory.inbox import diff_of_texts
from anima.model import DocPath, Document, Scope, digest_of
from anima.store.git import Revision
from anima.text.markdown import lines_of, sections
from anima.web.marks import WORDS, doubtful, marks
from anima.web.memory import browse, kind_of
from anima.web.pages import Page, View
from anima.web.pages.self import LISTENERS
from anima.web.past import Step, line_steps
from anima.web.prose import prose, source
from anima.web.served import Served

MANY_LINES = 2_000  # of a document on one page
_CHANGES = 12
_REVISIONS = 50
_VERSIONS = 120  # through which a line is followed
_WAYS = ("read", "source", "edit", "history")
_VERBS = {
    "write": "wrote",
    "append": "added to",
    "move": "moved",
    "delete": "deleted",
    "undo": "took back a change of",
    "restore": "brought back",
    "approve": "wrote, with your yes,",
}
_POLICIES = {
    Policy.IDENTITY: "It asks, and only you approve, here or at a terminal.",
    Policy.ASK: "It asks you first.",
    Policy.MEMORY: "It may from a conversation with you alone that has read nothing foreign; else it asks.",
    Policy.RITUAL: "It may delete it; else it asks.",
    Policy.CLOSED: "No tool writes it.",
}


# -- all of it --------------------------------------------------------------------------------------------------------------


def show(here: Served, request: Request) -> dict[str, Any] | Response:
    home, asked = here.home, request.query_params
    if asked.get("open"):
        path = DocPath.parse(asked["open"].strip())
        return RedirectResponse(_address(path.text) + ("" if home.exists(path) else "?as=edit"), status_code=303)
    folder = asked.get("folder", "").strip("/")
    found = browse(home, folder)
    return {
        "folder": folder,
        "crumbs": _crumbs(folder),
        "nodes": found.nodes,
        "left_out": found.left_out,
        "talks": found.talks,
        "changes": _changes(home),
        "undo": _undo(home, asked.get("undo")),
        "words": WORDS,
        "verbs": _VERBS,
        "headings": _headings(home),
        "curated": home.layout.curated,
        "today": home.layout.daily_path(home.reading.today()).text,
    }


def _address(path: str) -> str:
    return "/memory/" + quote(path)


def _crumbs(path: str) -> list[tuple[str, str]]:
    """The folders above a path, each with its name."""
    parts = path.split("/")[:-1] if path else []
    return [("/".join(parts[: n + 1]), part) for n, part in enumerate(parts)]


def _changes(home: Home) -> list[Any]:
    return home.keeping.changes(limit=_CHANGES) if home.books.begun else []


def _headings(home: Home) -> list[str]:
    try:
        found = sections(home.read(home.layout.curated).text)
    except HomeError:
        return []
    return list(dict.fromkeys(s.title for s in found if s.level == 2 and not s.claimed))[:50]


def _undo(home: Home, change: str | None) -> dict[str, Any] | None:
    """What taking a change back would do, shown before it is done."""
    if not change:
        return None
    found = next((e for e in home.keeping.changes() if e.id == change), None)
    if found is None:
        raise NoSuchRevision(
            f"there is no change {change[:40]} to take back", hint="the page of a document lists its history"
        )
    try:
        return {"entry": found, "back": home.keeping.show_undo(change=change), "wrong": ""}
    except (StaleWrite, NoSuchRevision) as error:
        return {"entry": found, "back": None, "wrong": str(error)}


# -- one document -----------------------------------------------------------------------------------------------------------


def document(here: Served, request: Request) -> dict[str, Any] | Response:
    home, asked = here.home, request.query_params
    path = DocPath.parse(request.path_params["path"])
    way = asked.get("as", "read")
    if way not in _WAYS:
        raise BadArguments(f"a document is shown as {', '.join(_WAYS)}")
    found = _found(home, path, way)
    row = home.layout.row_of(path)
    writable = path.is_markdown and row.policy is not Policy.CLOSED
    if way == "edit" and not writable:
        raise BadArguments(
            f"{path} cannot be edited here: only Markdown documents can", hint="use an editor of your own"
        )
    given = {
        "title": path.name,
        "place": path.text,
        "address": _address(path.text),
        "crumbs": _crumbs(path.text),
        "way": way,
        "found": found,
        "writable": writable,
        "facts": _facts(home, path, row, found),
        "kind": kind_of(home, path),
        "lines": [],
        "first": 1,
        "more": 0,
        "many": MANY_LINES,
        "total": 0,
        "line": 0,
        "why": None,
        "mixed": False,
        "revision": None,
        "revisions": [],
    }
    if way == "history":
        return given | _history(home, path, found, asked.get("revision"))
    if way == "edit":
        return given | {"mixed": found is not None and _is_mixed(found.text)}
    assert found is not None
    return given | _read(home, found, way, asked.get("from"), asked.get("line"))


def _found(home: Home, path: DocPath, way: str) -> Document | None:
    """The document; None where it is about to be made, or is gone and only its history is asked for."""
    try:
        return home.read(path)
    except NoSuchDocument:
        if way == "edit" or (way == "history" and _revisions(home, path, 1)):
            return None
        raise


def _is_mixed(text: str) -> bool:
    """Whether line ends are of more than one kind, which a text box cannot keep."""
    return "\r" in text and (text.count("\r\n") != text.count("\n") or text.count("\r") != text.count("\n"))


def _facts(home: Home, path: DocPath, row: Row, found: Document | None) -> dict[str, Any]:
    return {
        "sees": _sees(row),
        "policy": _POLICIES[row.policy],
        "doubt": doubtful(home, found) if found else 0,
        "time": found.time if found else None,
        "chars": len(found.text) if found else 0,
        "latest": _revisions(home, path, 4),
    }


def _sees(row: Row) -> str:
    names = [LISTENERS[scope][0].lower() for scope in Scope if scope in row.scopes]
    if not names or row.form is None:
        return "Never in a prompt; found by search when you ask."
    when = " (today’s and yesterday’s)" if row.form == "daily" else ""
    return f"In the prompt of {', '.join(names)}{when}."


def _number(raw: str | None, name: str, most: int) -> int:
    """A line's number, from 1; 0 when none is given."""
    if raw is None or raw == "":
        return 0
    if not (raw.isascii() and raw.isdigit() and len(raw) < 9 and 1 <= int(raw) <= max(1, most)):
        raise BadArguments(f"{name} is a line of the document, from 1 to {most}")
    return int(raw)


def _read(home: Home, found: Document, way: str, start: str | None, chosen: str | None) -> dict[str, Any]:
    total = len(lines_of(found.text))
    line = _number(chosen, "line", total)
    first = _number(start, "from", total) or max(1, (line - 1) // MANY_LINES * MANY_LINES + 1)
    drawn = (source if way == "source" else prose)(found.text)
    shown = [
        {"line": each, "mark": mark}
        for each, mark in zip(drawn, marks(home, found), strict=True)
        if first <= each.n < first + MANY_LINES
    ]
    more = first + MANY_LINES if first + MANY_LINES <= total else 0
    return {
        "lines": shown,
        "first": first,
        "more": more,
        "total": total,
        "line": line,
        "why": _why(home, found, line) if line else None,
    }


# -- one line ---------------------------------------------------------------------------------------------------------------


def _why(home: Home, found: Document, line: int) -> dict[str, Any]:
    told = home.why(found.path, line)
    revisions = {r.id: r for r in _revisions(home, found.path, _VERSIONS)} if told.text.strip() else {}
    steps = line_steps(_versions(home, found, list(revisions)), line)
    past = [{"step": step, "revision": revisions.get(step.revision), "diff": _step_diff(step)} for step in steps]
    source = told.source
    return {
        "told": told,
        "source": source,
        "read": sorted(source.taint),
        "past": past,
        "cut": len(revisions) == _VERSIONS,
    }


def _versions(home: Home, found: Document, revisions: list[str]) -> Iterator[tuple[str, str | None]]:
    """The versions of a document, newest first. What stands there now leads, when history does not hold it yet."""
    for n, revision in enumerate(revisions):
        text = home.keeping.text_at(found.path, revision)
        if n == 0 and text != found.text:
            yield "", found.text
        yield revision, text


def _step_diff(step: Step) -> str:
    return "" if step.before is None else diff_of_texts(step.before + "\n", step.after + "\n")


def _revisions(home: Home, path: DocPath, limit: int) -> tuple[Revision, ...]:
    """The newest versions; none, and nothing is made, where nobody ever wrote through us."""
    return home.history(path, limit=limit) if home.books.begun else ()


# -- its past ---------------------------------------------------------------------------------------------------------------


def _history(home: Home, path: DocPath, found: Document | None, wanted: str | None) -> dict[str, Any]:
    revisions = _revisions(home, path, _REVISIONS)
    if not wanted:
        return {"revisions": revisions, "revision": None}
    known = next((r for r in revisions if r.id.startswith(wanted)), None) if len(wanted) >= 4 else None
    if known is None:
        raise NoSuchRevision(f"the history of {path} has no revision {wanted[:40]}")
    then = home.keeping.text_at(path, known.id)
    now = found.text if found else None
    back = "" if then is None or then == now else diff_of_texts(now or "", then)
    shown = {
        "of": known,
        "diff": home.diff(known.id, path=path),
        "back": back,
        "gone": then is None,
        "same": then == now,
        "base": digest_of(now) if now is not None else "",
    }
    return {"revisions": revisions, "revision": shown}


PAGE = Page(
    name="memory",
    title="Memory",
    order=30,
    key="m",
    views=(View(show=show), View(path="/{path:path}", template="document.html", show=document)),
)
