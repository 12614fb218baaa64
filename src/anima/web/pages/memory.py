"""Memory: every document of the home, read with a mark beside each line, edited, and taken back.

Promise: documents are shown inert; a write is bound to the text that was read; what an undo or a restore would change is
shown before it is done. The tree is one walk, and what is too much for a page is left out and counted. A chosen line says
why it is there and which versions touched it; where it cannot be followed further, the last step says so. Not here:
writing (the API).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from typing import Any, Literal
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from anima import DocPath, Document, Entry, Revision, Scope, lines_of, unified
from anima.errors import BadArguments, NoSuchDocument, NoSuchRevision, StaleWrite
from anima.model import digest_of, fold
from anima.text import read_table
from anima.web.draw import marks, prose, source
from anima.web.pages import PageView, WebPage, asked_number
from anima.web.pages.agent import told_of
from anima.web.served import Served

MANY_LINES = 2_000  # of a document on one page
MOST_DOCUMENTS = 1_500  # on one page
MOST_COMPARED = 2_000  # lines of the part in which two versions differ; beyond, they are not compared
ALIKE = 0.3  # the share of words two lines have in common before one counts as the other, changed
_CHANGES = 10
_REVISIONS = 50
_NAMED = 8  # lines of other pages
_VERSIONS = 120  # through which a line is followed
_WAYS = ("read", "source", "edit", "history")
Node = dict[str, Any]  # a folder, or a document, of the tree
_WORD = re.compile(r"\w+")
_TEXTS = ("md", "txt", "toml", "json", "jsonl", "yaml", "yml", "csv")
_KINDS: dict[str, str] = read_table("web", "kinds")


def show(here: Served, request: Request) -> dict[str, Any] | Response:
    home, asked = here.home, request.query_params
    if asked.get("open"):
        path = DocPath.parse(asked["open"].strip())
        return RedirectResponse(_address(path.text) + ("" if home.exists(path) else "?as=edit"), status_code=303)
    folder = asked.get("folder", "").strip("/")
    every = home.list_all(folder)
    entries = [entry for entry in every if not _is_transcript(here, entry.path)]
    return {
        "folder": folder,
        "crumbs": _crumbs(folder),
        "nodes": _nodes(here, folder, entries[:MOST_DOCUMENTS]),
        "left_out": max(0, len(entries) - MOST_DOCUMENTS),
        "talks": len(every) - len(entries),
        "lately": list(told_of(here, here.home.past.log(limit=_CHANGES))),
        "undo": _undo(here, asked.get("undo")),
        "headings": here.headings(),
    }


def _address(path: str) -> str:
    return "/memory/" + quote(path)


def _crumbs(path: str) -> list[tuple[str, str]]:
    parts = path.split("/")[:-1] if path else []
    return [("/".join(parts[: n + 1]), part) for n, part in enumerate(parts)]


def _undo(here: Served, change: str | None) -> dict[str, Any] | None:
    """What taking a change back would do, shown before it is done."""
    if not change:
        return None
    found = next((done for done in here.home.past.changes() if done.id == change), None)
    if found is None:
        raise NoSuchRevision(f"there is no change {change[:40]} to take back", hint="a document's history lists them")
    try:
        return {"entry": found, "back": here.home.past.show_undo(change=change), "wrong": ""}
    except (StaleWrite, NoSuchRevision) as error:
        return {"entry": found, "back": None, "wrong": str(error), "is_late": type(error) is StaleWrite}


def _is_transcript(here: Served, path: str) -> bool:
    row = here.home.layout.row_of(DocPath.parse(path))
    return row.role == "sessions" or (row.policy == "closed" and row.kind == "session")


def _nodes(here: Served, folder: str, entries: Sequence[Entry]) -> list[Node]:
    """What stands in a folder: its documents, then its folders. Logs stand by month, the newest first; where all are of one
    month there is no folder for it."""
    start, layout = len(folder) + 1 if folder else 0, here.home.layout
    leaves, months, inside = list[Node](), dict[str, list[Node]](), dict[str, list[Entry]]()
    for entry in entries:
        name, slash, _ = entry.path[start:].partition("/")
        if slash:
            inside.setdefault(entry.path[: start + len(name)], []).append(entry)
            continue
        path = DocPath.parse(entry.path)
        is_text = path.key.rpartition(".")[2] in _TEXTS
        kind = _kind_of(here, path) if is_text else "file"
        leaf: Node = {"name": path.name, "path": entry.path, "kind": kind, "time": entry.time, "is_text": is_text}
        if fold(folder) == fold(layout.daily) and layout.date_of(path):
            months.setdefault(path.name[:7], []).insert(0, leaf)
        else:
            leaves.append(leaf)
    if len(months) == 1:
        leaves, months = [*months.popitem()[1], *leaves], {}
    for n, (name, logs) in enumerate(reversed(months.items())):
        leaves.append(_folder(f"{folder}#{name}", name, logs, is_open=n == 0))
    for at, held in inside.items():
        is_open = len(held) <= 12 or fold(at) == fold(layout.daily)
        leaves.append(_folder(at, at.rpartition("/")[2], _nodes(here, at, held), is_open=is_open))
    return leaves


def _folder(path: str, name: str, children: list[Node], *, is_open: bool) -> Node:
    count = sum(child.get("count", 1) for child in children)  # documents beneath
    return {"name": name, "path": path, "is_open": is_open, "count": count, "children": children}


def _kind_of(here: Served, path: DocPath) -> str:
    role = here.home.layout.row_of(path).role
    if role == "daily" and here.home.layout.date_of(path) is None:
        return "note"
    return _KINDS.get(role, role.replace("-", " "))


def document(here: Served, request: Request) -> dict[str, Any] | Response:
    home, asked = here.home, request.query_params
    path = DocPath.parse(request.path_params["path"])
    way = asked.get("as", "read")
    if way not in _WAYS:
        raise BadArguments(f"a document is shown as {', '.join(_WAYS)}")
    found: Document | None = None  # it is about to be made, or is gone and only its history is asked for
    try:
        found = home.read(path)
    except NoSuchDocument:
        if way != "edit" and not (way == "history" and home.past.log(path, limit=1)):
            raise
    row = home.layout.row_of(path)
    writable = path.is_markdown and row.policy != "closed"
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
        "row": row,
        "latest": home.past.log(path, limit=4),
        "kind": _kind_of(here, path),
        "named": _named(here, path) if way in ("read", "source") else (),
        "lines": [],
        "line": 0,
        "why": None,
        "revisions": [],
        "revision": None,
    }
    if way == "history":
        return given | _history(here, path, found, asked.get("revision"))
    if way == "edit":
        text = found.text if found else ""
        ends, breaks = text.count("\r\n"), text.count("\n")
        # Line ends of more than one kind cannot be kept by a text box.
        return given | {"mixed": "\r" in text and (ends != breaks or text.count("\r") != breaks)}
    assert found is not None
    return given | _read(here, found, way, request)


def _named(here: Served, path: DocPath) -> list[Any]:
    """Lines of other documents that name what a page is about: the links that lead to it."""
    if "/" not in path.text or here.home.layout.date_of(path) is not None:
        return []
    about = partial(here.home.index.about, listener=here.home.site.listener(Scope.MAIN), limit=_NAMED)
    found = about(path.name.removesuffix(".md").replace("-", " ").replace("_", " "))
    return [each for each in found.mentions if each.path != path.text]


def _read(here: Served, found: Document, way: str, request: Request) -> dict[str, Any]:
    total = len(lines_of(found.text))
    line, start = (asked_number(request, each, default=0, least=1, most=max(1, total)) for each in ("line", "from"))
    first = start or max(1, (line - 1) // MANY_LINES * MANY_LINES + 1)
    drawn = (source if way == "source" else prose)(found.text)
    marked = list(zip(drawn, marks(here.home.past.sources(found)), strict=True))
    why: dict[str, Any] | None = None
    if line:
        told = here.home.past.why(found.path, line)
        revisions = here.home.past.log(found.path, limit=_VERSIONS) if told.text.strip() else ()
        why = {"told": told, "past": list(line_steps(_versions(here, found, revisions), line))}
        why |= {"revisions": {r.id: r for r in revisions}, "cut": len(revisions) == _VERSIONS}
        said = told.text.strip().lstrip("> ")
        noted = (
            each for each in here.waits()[1] if each.entry.place == found.path and said and said in each.entry.text
        )
        why["noted"] = next(noted, None)  # what the owner may trust, or drop
    shown = marked[first - 1 : first - 1 + MANY_LINES]
    return {"lines": shown, "first": first, "many": MANY_LINES, "total": total, "line": line, "why": why}


def _history(here: Served, path: DocPath, found: Document | None, wanted: str | None) -> dict[str, Any]:
    revisions = here.home.past.log(path, limit=_REVISIONS)
    if not wanted:
        return {"revisions": revisions}
    known = next((r for r in revisions if r.id.startswith(wanted)), None) if len(wanted) >= 4 else None
    if known is None:
        raise NoSuchRevision(f"the history of {path} has no revision {wanted[:40]}")
    then = here.home.past.text_at(path, known.id)
    now = found.text if found else None
    back = "" if then is None else unified(now or "", then)
    shown = {"of": known, "diff": here.home.past.diff(known.id, path=path), "back": back, "base": digest_of(now)}
    return {"revisions": revisions, "revision": shown | {"gone": then is None, "same": then == now}}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryStep:
    """One version that touched a line: `changed` it, first had it (`written`), or is as far as it can be followed."""

    revision: str
    what: Literal["changed", "written", "lost"]
    before: str | None
    after: str

    @property
    def diff(self) -> str:
        return "" if self.before is None else unified(self.before + "\n", self.after + "\n")


def _versions(here: Served, found: Document, revisions: Iterable[Revision]) -> Iterator[tuple[str, str | None]]:
    """The versions of a document, newest first. What stands there now leads, when history does not hold it yet."""
    for n, revision in enumerate(revisions):
        text = here.home.past.text_at(found.path, revision.id)
        if n == 0 and text != found.text:
            yield "", found.text
        yield revision.id, text


def line_steps(versions: Iterable[tuple[str, str | None]], line: int) -> Iterator[HistoryStep]:
    """The steps of a line (from 1) of the first version given; versions come newest first. None: it was not there."""
    found = iter(versions)
    revision, text = next(found, ("", None))
    newer, at = _lines(text), line - 1
    if not 0 <= at < len(newer):
        return
    for older_revision, older_text in found:
        older = _lines(older_text)
        place = _place_before(older, newer, at)
        if place is None:
            is_lost = newer[at].strip() and newer[at] in older
            yield HistoryStep(revision=revision, what="lost" if is_lost else "written", before=None, after=newer[at])
            return
        if older[place] != newer[at]:
            yield HistoryStep(revision=revision, what="changed", before=older[place], after=newer[at])
        revision, newer, at = older_revision, older, place
    yield HistoryStep(revision=revision, what="written", before=None, after=newer[at])


def _lines(text: str | None) -> list[str]:
    return [line.rstrip("\r\n") for line in lines_of(text or "")]


def _place_before(older: Sequence[str], newer: Sequence[str], at: int) -> int | None:
    """Where a line of the newer version stood in the older one; None when it did not."""
    most = min(len(older), len(newer))
    head = next((n for n in range(most) if older[n] != newer[n]), most)
    tail = next((n for n in range(most - head) if older[-1 - n] != newer[-1 - n]), most - head)
    if at < head:
        return at
    if at >= len(newer) - tail:
        return at - len(newer) + len(older)
    old, new = older[head : len(older) - tail], newer[head : len(newer) - tail]
    if len(old) > MOST_COMPARED or len(new) > MOST_COMPARED:
        return None
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        into = at - head - j1
        if j1 <= at - head < j2 and tag == "equal":
            return head + i1 + into
        if j1 <= at - head < j2 and tag == "replace":
            share, _, place = max((_alike(old[i], newer[at]), -abs(i - i1 - into), i) for i in range(i1, i2))
            return head + place if share >= ALIKE else None
    return None


def _alike(one: str, other: str) -> float:
    words, more = set(_WORD.findall(one.casefold())), set(_WORD.findall(other.casefold()))
    return len(words & more) / len(words | more) if words | more else float(one.strip() == other.strip())


DOCUMENT = PageView(path="/{path:path}", template="document.html", show=document)
PAGES = (WebPage("memory", "Memory", 30, "m", (PageView(show=show), DOCUMENT), tab="Pages"),)
