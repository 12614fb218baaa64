"""Self: who the agent is and where that is said, its soul, which soul was worn when, its peers; and what each listener
is told.

Promise: every field names its source; a picture comes from the home alone, never from the web; what a prompt leaves out
stands there with the reason. The prompt's own text is drawn only when it is asked for. Nothing is changed by looking.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response

from anima.errors import BadArguments, HomeError, NotFound
from anima.home import Home
from anima.model import DocPath, Scope
from anima.prompt.compose import Line, Prompt
from anima.prompt.identity import FIELDS, MAX_AVATAR_BYTES
from anima.prompt.persona import decide
from anima.web.pages import Page, View
from anima.web.prose import prose
from anima.web.served import Served

LISTENERS = {
    Scope.MAIN: ("You", "you, alone"),
    Scope.GROUP: ("Group", "anybody else in the room"),
    Scope.SUBAGENT: ("Sub-agent", "a helper the agent starts"),
    Scope.CRON: ("Cron", "a task that runs by the clock"),
    Scope.HEARTBEAT: ("Heartbeat", "the agent alone, looking around"),
}
_SIGNS = {
    "shown": ("✓", "shown"),
    "cut": ("✂", "cut"),
    "missing": ("?", "missing"),
    "hidden": ("–", "hidden"),
    "dropped": ("✂", "no room"),
    "empty": ("·", "empty"),
    "unreadable": ("✗", "unreadable"),
}
_WORN = 200
_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
}
_DATA = re.compile(r"data:(image/(?:png|jpeg|gif|webp|svg\+xml))((?:;[\w=.-]+)*),", re.IGNORECASE)
_WHY_NOT = {
    "missing": "the file it names is not in the home",
    "outside_workspace": "it names a place outside the home",
    "unsupported_extension": "it is no picture a page can show",
    "too_large": "it is larger than 2 MiB",
}


def show(here: Served, request: Request) -> dict[str, Any]:
    home = here.home
    return {
        "card": _card(home),
        "souls": _souls(home),
        "persona": _persona(home),
        "worn": _worn(home),
        "peers": home.peers(),
        "guide": _place(home, "agents"),
        "listeners": [_listener(home.prompt(scope=scope)) for scope in Scope],
    }


# -- the card ---------------------------------------------------------------------------------------------------------------


def _card(home: Home) -> dict[str, Any]:
    who, found = home.identity(), home.avatar()
    fields = [{"name": name, "said": getattr(who, name)} for name in FIELDS if name != "avatar"]
    why = _WHY_NOT.get(found.reason or "", found.reason or "")
    return {
        "name": who.name.value,
        "fields": fields,
        "avatar": found,
        "why": why,
        "face": who.emoji.value if who.emoji else "",
        "picture": found.kind in ("local", "data"),
        "place": _place(home, "identity"),
        "from": who.avatar.source,
    }


def _place(home: Home, role: str) -> str:
    """The document of a role; empty where this dialect has none, or the home does not."""
    path = home.layout.row(role).path if home.layout.has(role) else ""
    return path if path and home.exists(path) else ""


def picture(here: Served, request: Request) -> Response:
    """The avatar, when it is a picture of the home's own. It can run nothing, wherever it is opened."""
    found = here.home.avatar()
    if found.kind == "local" and found.value:
        path = DocPath.parse(found.value)
        data, kind = here.home.store.raw(path, most=MAX_AVATAR_BYTES), _TYPES.get(path.key.rpartition(".")[2], "")
    elif found.kind == "data" and found.value:
        data, kind = _from_data(found.value)
    else:
        raise NotFound("there is no picture of the agent in this home")
    headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
    return Response(data, media_type=kind or "application/octet-stream", headers=headers)


def _from_data(value: str) -> tuple[bytes, str]:
    head = _DATA.match(value)
    if not head or len(value) > 2 * MAX_AVATAR_BYTES:
        raise NotFound("the picture is of no kind a page can show")
    raw = unquote_to_bytes(value[head.end() :])
    try:
        return (base64.b64decode(raw) if ";base64" in head[2].lower() else raw), head[1].lower()
    except (binascii.Error, ValueError):
        raise NotFound("the picture in IDENTITY.md cannot be read") from None


# -- souls ------------------------------------------------------------------------------------------------------------------


def _souls(home: Home) -> list[dict[str, Any]]:
    """The soul, and the other one where there is one."""
    names = [home.layout.row("soul").path if home.layout.has("soul") else "SOUL.md", home.config.persona.file]
    found = []
    for name in dict.fromkeys(names):
        try:
            found.append({"path": name, "lines": list(prose(home.read(name).text)), "wrong": ""})
        except HomeError as error:
            if name == names[0]:
                found.append({"path": name, "lines": [], "wrong": str(error)})
    return found


def _persona(home: Home) -> dict[str, Any]:
    """When the other soul is worn. Chance is told, and not rolled: looking must not decide."""
    rule, now = home.config.persona, home.reading.now()
    decided = decide(replace(home.reading.persona_rule, chance=0.0), now, home.dice)
    times = [f"from {rule.at} for {rule.duration} each day"] if rule.at else []
    times += [f"by chance in {rule.chance * 100:g} % of conversations"] if rule.chance else []
    return {
        "file": rule.file,
        "present": home.exists(rule.file),
        "when": " and ".join(times),
        "now": f"{now:%H:%M}",
        "worn": decided.file,
    }


def _worn(home: Home) -> list[dict[str, Any]]:
    """What was worn, the latest first; conversations in a row that wore the same soul stand together."""
    if not home.books.begun:
        return []
    runs: list[dict[str, Any]] = []
    for record in list(home.books.ledger.records(kinds=("persona",)))[: -_WORN - 1 : -1]:
        file = str(record.fields.get("file", "none"))
        if not runs or runs[-1]["file"] != file:
            runs.append({"file": file, "rows": []})
        said = {name: str(record.fields.get(name, "")) for name in ("scope", "session")}
        runs[-1]["rows"].append({"time": record.time, **said})
    return runs


# -- what each listener is told ---------------------------------------------------------------------------------------------


def sees(here: Served, request: Request) -> dict[str, Any]:
    scope = Scope.parse(request.path_params["scope"])
    sender = request.query_params.get("sender") or None
    if sender is not None and len(sender) > 200:
        raise BadArguments("a sender's name has at most 200 characters")
    made = here.home.prompt(scope=scope, sender=sender)
    title, who = LISTENERS[scope]
    return {
        "title": f"What {title.lower()} sees",
        "scope": scope,
        "tabs": [(s, LISTENERS[s][0]) for s in Scope],
        "speaks": who,
        "sender": sender or "",
        "prompt": made,
        "told": _listener(made),
        "bands": [_band(here.home, made, line) for line in made.manifest],
        "owners": here.home.config.owner,
        "asked": request.query_params.get("text") == "yes",
    }


def _listener(made: Prompt) -> dict[str, Any]:
    title, who = LISTENERS[made.scope]
    counts: dict[str, int] = {}
    for line in made.manifest:
        counts[_SIGNS[line.status][1]] = counts.get(_SIGNS[line.status][1], 0) + 1
    return {
        "scope": made.scope,
        "title": title,
        "who": who,
        "chars": len(made.text),
        "most": made.limits.total,
        "stable": len(made.stable),
        "counts": counts,
        "persona": made.persona,
    }


def _band(home: Home, made: Prompt, line: Line) -> dict[str, Any]:
    sign, word = _SIGNS[line.status]
    most = made.limits.memory if line.role == "memory" and made.limits.memory else made.limits.file
    is_document = bool(line.path) and not line.path.endswith("/") and home.exists(line.path)
    return {
        "line": line,
        "sign": sign,
        "word": word,
        "most": most,
        "name": line.path or _NAMES.get(line.role, line.role),
        "link": line.path if is_document else "",
    }


_NAMES = {"runtime": "date, host, model, channel, tools", "extra": "prompt.extra of anima.toml"}

PAGE = Page(
    name="self",
    title="Self",
    order=20,
    key="s",
    views=(
        View(show=show),
        View(path="/picture", show=picture),
        View(path="/{scope}", template="sees.html", show=sees),
    ),
)
