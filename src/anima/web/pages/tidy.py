"""Tidy: what memory could do without, shown with its evidence, and done when you say so.

Promise: the page is there at once, and the look at memory comes after it; looking changes nothing; all text of the home is
shown inert; what a button does is what was shown beside it, and an undo stands here afterwards. Not here: the acts (the
API), finding (tidying).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from anima.errors import HomeError
from anima.home import Home
from anima.upkeep.hygiene import Line
from anima.upkeep.tidy import Suggestion
from anima.web import query
from anima.web.pages import Page, View
from anima.web.served import Served
from anima.web.tidy import Looked

MANY = 50  # suggestions of a part
DONE = 5  # changes that can be undone here
LONG = 600  # characters of a line; the diff has all of them
_ROUND = 200  # changes among which those are looked for
_HOW = {
    "exact": "The same text",
    "punctuation": "The same words",
    "dates": "The same date in another notation",
    "reworded": "The same in other words",
    "contained": "One says all the other says",
    "meaning": "The same meaning",
}
_PARTS = (  # kind, title, what it is, whether all of it can be done at once
    (
        "archive",
        "Old logs",
        "Older than their folder keeps them. A log is moved to the archive, where search still finds it.",
        True,
    ),
    ("merge", "Said twice", "One line is enough. Nothing goes that is not said elsewhere.", True),
    ("choose", "Contradictions", "Both cannot hold, and only you can tell which does.", False),
)


def show(here: Served, request: Request) -> dict[str, Any]:
    """The page at once, with what is known; the look itself is made for `?part=found`."""
    given: dict[str, Any] = {"looked": None, "parts": [], "wrong": "", "done": [], "nothing": False}
    part = request.query_params.get("part")
    try:
        is_asked = part == "found" or query.ticked(request, "afresh")
        looked = here.tidiness.look(afresh=query.ticked(request, "afresh")) if is_asked else here.tidiness.known()
    except HomeError as error:
        return given | {"wrong": str(error)}
    if looked is None:
        return given
    parts = [_part(looked, *row) for row in _PARTS]
    return given | {"looked": looked, "parts": parts, "done": _done(here.home), "nothing": not looked.found}


def _part(looked: Looked, kind: str, title: str, about: str, at_once: bool) -> dict[str, Any]:
    of_it = {id: one for id, one in looked.found.items() if one.kind == kind}
    cards = [_card(id, one) for id, one in islice(of_it.items(), MANY)]
    return {
        "kind": kind,
        "title": title,
        "about": about,
        "at_once": at_once,
        "total": len(of_it),
        "cards": cards,
        "left_out": len(of_it) - len(cards),
        "ids": " ".join(card["id"] for card in cards),
    }


def _card(id: str, one: Suggestion) -> dict[str, Any]:
    if one.kind == "archive":
        return {
            "id": id,
            "path": one.path,
            "address": _address(one.path),
            "to": one.to,
            "evidence": ", ".join(one.evidence),
        }
    if one.kind == "choose":
        return {"id": id, "why": _begun("; ".join(one.evidence)), "lines": _choices(one)}
    shown = [_told(said) for said in one.evidence]
    going = [{**_shown(line), **why} for line, why in zip(one.remove, shown, strict=True)]
    return {
        "id": id,
        "keep": _shown(one.keep) if one.keep else None,
        "going": going,
        "diff": one.diff,
        "files": len({line.path for line in one.remove}),
        "how": going[0]["how"],
    }


def _begun(said: str) -> str:
    return said[:1].upper() + said[1:]


def _told(said: str) -> Mapping[str, str]:
    """How a line is the same, in words, and what shows it."""
    how, _, evidence = said.partition(": ")
    return {"how": _HOW.get(how, how), "evidence": evidence}


def _choices(one: Suggestion) -> list[dict[str, Any]]:
    days = {line.day for line in one.between}
    newest = max((day for day in days if day), default=None) if len(days) > 1 and None not in days else None
    return [
        {
            **_shown(line),
            "number": number,
            "day": line.day,
            "newer": newest is not None and line.day == newest,
            "diff": one.keeping(line).diff,
        }
        for number, line in enumerate(one.between, start=1)
    ]


def _shown(line: Line) -> dict[str, Any]:
    text = line.text.removeprefix("- ")  # the diff has the line as it stands
    return {
        "text": text if len(text) <= LONG else text[:LONG] + "…",
        "place": f"{line.path}:{line.number}",
        "address": _address(line.path, line.number),
        "under": line.under[:120],
        "trusted": line.trusted,
    }


def _address(path: str, number: int | None = None) -> str:
    return f"/memory/{quote(path)}" + (f"?line={number}#L{number}" if number else "")


def _done(home: Home) -> list[Any]:
    """What was tidied lately and not taken back since."""
    entries = home.keeping.changes(limit=_ROUND) if home.books.begun else []
    undone = {entry.of for entry in entries if entry.what == "undo"}
    return [entry for entry in entries if entry.what == "tidy" and entry.id not in undone][:DONE]


PAGE = Page(name="tidy", title="Tidy", order=65, key="y", views=(View(show=show),))
