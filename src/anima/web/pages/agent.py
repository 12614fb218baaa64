"""Agent: who the agent is and where that is said, its soul, which soul was worn when, its peers; what each listener is told; and
Settings: what asks first, who answers, what happens by itself, who is connected; and the home's health.

Promise: every field and value names its source; what is not set from a page, and what a prompt leaves out, stands there with
the reason. A picture comes from the home alone, never from the web; no key of a service and no secret of a token is ever
drawn; a prompt's own text only when it is asked for. Nothing is changed by looking. Not here: the acts (the API).
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from anima import HomeError, Scope
from anima.agent.chats import models_of
from anima.agent.schedule import state_of
from anima.web.draw import SCOPES
from anima.web.pages import PageView, WebPage, asked_text
from anima.web.pages.today import connecting
from anima.web.served import Served

_WORN = 200  # conversations whose soul is told
MOST_SNAPSHOTS = 20  # snapshots that are listed


def show(here: Served, request: Request) -> dict[str, Any]:
    home = here.home
    prompts = [home.prompt(scope=scope) for scope in Scope]
    return {
        "identity": home.identity.resolved(),
        "avatar": home.identity.avatar(),
        "picture": request.scope["state"]["ticket"]("/agent/picture"),
        "place": _place(here, "identity"),
        "souls": _souls(here),
        "rule": home.config.persona,
        "other_is_there": home.exists(home.config.persona.file),
        "now": here.home.site.now(),
        "worn_now": home.identity.persona(roll=False).file,
        "worn": [
            (file, list(rows))
            for file, rows in groupby(home.identity.worn(_WORN), key=lambda worn: worn.file or "none")
        ],
        "peers": home.identity.peers(),
        "guide": _place(here, "agents"),
        "listeners": [(told, Counter(line.status for line in told.manifest)) for told in prompts],
    }


def _place(here: Served, role: str) -> str:
    """The document of a role; empty where this dialect has none, or the home does not."""
    path = here.page_of(role)
    return path if path and here.home.exists(path) else ""


def _souls(here: Served) -> list[dict[str, str]]:
    """The soul, and the other one where there is one."""
    found, names = [], [here.page_of("soul") or "SOUL.md", here.home.config.persona.file]
    for name in dict.fromkeys(names):
        try:
            found.append({"path": name, "text": here.home.read(name).text, "wrong": ""})
        except HomeError as error:
            if name == names[0]:
                found.append({"path": name, "text": "", "wrong": str(error)})
    return found


def picture(here: Served, request: Request) -> Response:
    """The avatar, when it is a picture of the home's own. It can run nothing, wherever it is opened."""
    data, kind = here.home.identity.picture()
    headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
    return Response(data, media_type=kind, headers=headers)


def sees(here: Served, request: Request) -> dict[str, Any]:
    """What one listener is told."""
    scope = Scope.parse(request.path_params["scope"])
    sender = asked_text(request, "sender", most=200)
    listening = next(each for each in SCOPES if each.scope is scope)
    return {
        "current": "agent/main",
        "title": f"Told to {listening.choice}",
        "listening": listening,
        "scope": scope,
        "sender": sender,
        "prompt": here.home.prompt(scope=scope, sender=sender or None),
        "exists": here.home.exists,
        "owners": here.home.config.owner,
        "asked": request.query_params.get("text") == "yes",
    }


SEES = PageView(path="/{scope}", template="sees.html", show=sees)
VIEWS = (PageView(show=show), PageView(path="/picture", show=picture), SEES)


# -- settings and health -----------------------------------------------------------------------------------------------


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
    WebPage("agent", "Agent", 50, "a", VIEWS, tab="Identity and soul"),
    WebPage("agent/main", "What each listener sees", 51, "w", (), under="agent"),
    WebPage("settings", "Settings", 60, "s", (PageView(show=settings),)),
    WebPage("settings/health", "Health", 61, "e", (HEALTH,), under="settings"),
)
