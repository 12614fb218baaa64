"""Health: sentences about the home, each with what to do; its snapshots; and who may come in.

Promise: it looks when it is asked to and changes nothing by itself.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from anima.errors import HomeError
from anima.web.pages import PageView, WebPage
from anima.web.served import Served

MANY = 20  # snapshots that are listed


def show(here: Served, request: Request) -> dict[str, Any]:
    ledger, fault = None, ""
    try:
        ledger = here.home.past.audit()
    except HomeError as error:
        fault = str(error)
    return {
        "remarks": here.remarks(),
        "ledger": ledger,
        "fault": fault,
        "tokens": here.keyring.all(),
        "root": here.home.name,
        "dialect": here.home.dialect,
        **_snapshots(here),
    }


def _snapshots(here: Served) -> dict[str, Any]:
    """Those that are kept, by name alone: an archive holds the home's key, so none is given out here."""
    given: dict[str, Any] = {
        "snapshots": [],
        "wrong": "",
        "next": None,
        "place": here.home.snapshots.place,
        "many": MANY,
    }
    try:
        return given | {"snapshots": here.home.snapshots.all(), "next": here.home.next_snapshot()}
    except HomeError as error:
        return given | {"wrong": str(error)}


PAGE = WebPage(name="health", title="Health", order=80, key="h", views=(PageView(show=show),))
