"""Settings: who you are, what asks first, who answers, what happens by itself, who is connected; and the home's health.

Promise: every value says where it comes from; what is not set from a page says why. No key of a service and no secret of a
token is ever drawn. Looking changes nothing. Not here: the acts (settings, the API).
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from anima import HomeError
from anima.agent.chats import models_of
from anima.agent.schedule import state_of
from anima.web.pages import PageView, WebPage
from anima.web.pages.today import connecting
from anima.web.served import Served

MOST_SNAPSHOTS = 20  # snapshots that are listed


def settings(here: Served, request: Request) -> dict[str, Any]:
    home = here.home
    rows = {key: {"value": value, "source": source} for key, value, source in home.settings()}
    given: dict[str, Any] = {"rows": rows, "rules": home.config.gate.rule, "wrong": ""}
    given |= {"models": (), "schedule": state_of(home.site.store), "zone": str(home.site.zone() or "the system’s")}
    given |= connecting(here) | {"tokens": here.keyring.all(), "seen": here.keyring.seen}
    try:
        return given | {"models": () if here.hosted else models_of(home).all()}
    except HomeError as error:
        return given | {"wrong": str(error)}


def health(here: Served, request: Request) -> dict[str, Any]:
    ledger, fault = None, ""
    try:
        ledger = here.home.past.audit()
    except HomeError as error:
        fault = str(error)
    given: dict[str, Any] = {"remarks": here.remarks(), "ledger": ledger, "fault": fault}
    given |= {"root": here.home.name, "dialect": here.home.dialect}
    # Snapshots by name alone: an archive holds the home's key, so none is given out here.
    given |= {"snapshots": [], "wrong": "", "next": None, "place": "", "many": MOST_SNAPSHOTS}
    if here.hosted:
        return given
    given["place"] = here.home.snapshots.place
    try:
        return given | {"snapshots": here.home.snapshots.all(), "next": here.home.next_snapshot()}
    except HomeError as error:
        return given | {"wrong": str(error)}


HEALTH = PageView(show=health, template="health.html")
PAGES = (
    WebPage("settings", "Settings", 60, "s", (PageView(show=settings),)),
    WebPage("settings/health", "Health", 61, "e", (HEALTH,), under="settings"),
)
