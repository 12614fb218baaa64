"""Tidy: what memory could do without, shown with its evidence, and done when you say so.

Promise: the page is there at once, and the look at memory comes after it; looking changes nothing; all text of the home is
shown inert; what a button does is what was shown beside it, and an undo stands here afterwards. Not here: the acts (the
API), finding (the home).
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from anima import Done, HomeError
from anima.web.pages import PageView, WebPage
from anima.web.served import Served, is_ticked

MANY = 50  # suggestions of a part
DONE = 5  # changes that can be undone here
_ROUND = 200  # changes among which those are looked for


def show(here: Served, request: Request) -> dict[str, Any]:
    """The page at once, with what is known; the look itself is made for `?part=found`."""
    afresh = is_ticked(request, "afresh")
    try:
        is_asked = afresh or request.query_params.get("part") == "found"
        looked = here.tidiness.look(afresh=afresh) if is_asked else here.tidiness.known()
    except HomeError as error:
        return {"wrong": str(error)}
    return {"wrong": "", "looked": looked, "many": MANY, "done": _done(here) if looked else []}


def _done(here: Served) -> list[Done]:
    """What was tidied lately and not taken back since."""
    entries = here.home.past.changes(limit=_ROUND)
    undone = {entry.of for entry in entries if entry.what == "undo"}
    return [entry for entry in entries if entry.what == "tidy" and entry.id not in undone][:DONE]


PAGE = WebPage(name="tidy", title="Tidy", order=65, key="y", views=(PageView(show=show),))
