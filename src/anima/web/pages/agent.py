"""Agent: who the agent is and where that is said, its soul, which soul was worn when, its peers; and what each listener
is told.

Promise: every field names its source; a picture comes from the home alone, never from the web; what a prompt leaves out
stands there with the reason. The prompt's own text is drawn only when it is asked for. Nothing is changed by looking.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from anima import BadArguments, HomeError, Scope
from anima.web.pages import PageView, WebPage
from anima.web.served import SCOPES, Served

_WORN = 200  # conversations whose soul is told


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
    path = here.home.layout.row(role).path if here.home.layout.has(role) else ""
    return path if path and here.home.exists(path) else ""


def _souls(here: Served) -> list[dict[str, str]]:
    """The soul, and the other one where there is one."""
    layout, found = here.home.layout, []
    names = [layout.row("soul").path if layout.has("soul") else "SOUL.md", here.home.config.persona.file]
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
    sender = request.query_params.get("sender", "")
    if len(sender) > 200:
        raise BadArguments("a sender's name has at most 200 characters")
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
PAGES = (
    WebPage("agent", "Agent", 50, "a", VIEWS, tab="Identity and soul"),
    WebPage("agent/main", "What each listener sees", 51, "w", (), under="agent"),
)
