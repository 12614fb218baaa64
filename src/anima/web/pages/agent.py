"""What the agent did, who it is and how it is run: Today, History, Dreams; Agent and what each listener is told; Settings, Health.

Promise: sentences in the home's own words, inert; every field and value names its source, and what a prompt leaves out or no page
sets stands there with the reason. Looking changes nothing, and begins nothing where nothing was ever written. A picture comes
from the home alone; no key of a service and no secret of a token is ever drawn, a prompt's own text only when it is asked for.
Not here: the acts (the API), drawings (chart.html).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, timedelta
from itertools import groupby
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from anima import DocPath, HomeError, NoSuchRevision, Revision, Scope, time_of
from anima.agent import PRACTICE
from anima.agent.chats import CHANNEL, models_of
from anima.agent.schedule import heartbeat_of, state_of
from anima.web.draw import SCOPES, diff_lines, prose
from anima.web.pages import PageView, WebPage, asked_number, asked_text
from anima.web.served import Served

MOST_TOLD = 40  # revisions of two days
TALKED = 200  # conversations among which those of two days are looked for
MOST_LINES = 3  # of one revision
MANY = 40  # revisions of history on one page
_STAMP = re.compile(r"^\[\d\d:\d\d\] ")  # of a line in a daily log; when it was written stands beside it
CANDIDATES, NIGHTS, KEPT = 40, 10, 100  # candidates, nights of the diary, and lines of memory on the page of dreams
_WORN = 200  # conversations whose soul is told
MOST_SNAPSHOTS = 20  # snapshots that are listed


def today(here: Served, request: Request) -> dict[str, Any]:
    home, now = here.home, here.home.site.now()
    since = (now - timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    recent = [each for each in home.past.log(limit=MOST_TOLD) if each.time >= since]
    told = list(told_of(here, recent))
    given: dict[str, Any] = {"now": now, "night": None}
    given["waiting"], given["noted"] = here.waits()
    ours = [_standing(here, each) for each in told if each["actor"] in ("agent", "dreamer", "owner")]
    given["learned"] = [each for each in ours if each["lines"]]
    given["outside"] = [each for each in told if each["actor"] == "outside"]
    with suppress(HomeError):
        last = home.dreams.last if home.past.tip else None
        given["night"] = {"at": last, "told": next(iter(nights_of(here)), None)} if last and last >= since else None
    start = since.astimezone(UTC).isoformat()
    given["talks"] = [row for row in home.sessions.list(limit=TALKED) if row.updated_at >= start]
    # whether what the agent should do by itself is done by anybody: its heartbeat and routines that ask for something
    state = state_of(home.site.store)
    found = [entry.path for entry in home.list_all() if entry.path.startswith("routines/")]
    with suppress(HomeError):
        page = here.page_of("heartbeat")
        found += [page] if page and heartbeat_of(home.read(page).text, page, home.config.rituals) else []
    plan = {"on": state.on, "stopped": state.stopped, "pages": found}
    return given | {"schedule": plan, "guide": _guide(here, request)}


def history(here: Served, request: Request) -> dict[str, Any]:
    start = asked_number(request, "start", default=0, least=0, most=1_000_000)
    found = here.home.past.log(limit=start + MANY + 1)[start:]
    return {"told": list(told_of(here, found[:MANY])), "start": start, "many": MANY, "more": len(found) > MANY}


def told_of(here: Served, revisions: Iterable[Revision]) -> Iterator[dict[str, Any]]:
    """Revisions in words: who, when, what was written in them, and the change that an undo takes."""
    for each in revisions:
        lines = here.told.get(each.id)
        if lines is None:
            lines = here.told[each.id] = list(_written(here, each))
        ids = (each.batch or "").split() if each.paths else ()  # of a revision that a purge left empty, nothing
        row = {name: getattr(each, name) for name in ("id", "time", "actor", "rule", "subject", "paths", "session")}
        row["subject"] = _subject(each)
        yield row | {"lines": lines[:MOST_LINES], "more": len(lines) - MOST_LINES, "change": ids[-1] if ids else ""}


def _standing(here: Served, told: dict[str, Any]) -> dict[str, Any]:
    """What was told of a revision, without the lines that were taken back or moved on since."""
    texts = {path: here.home.site.text_of(DocPath.parse(path)) or "" for path, _ in told["lines"]}
    return told | {"lines": [(path, line) for path, line in told["lines"] if line in texts[path]]}


def _subject(revision: Revision) -> str:
    """What a revision did that wrote no line of memory, in words where its own are those of the engine."""
    if revision.paths and all("unreviewed/" in path for path in revision.paths):
        return "Noted for your review" if revision.actor == "agent" else "What was noted was reviewed"
    words = {"seed": "The pages of a new home", "sweep": "The diary of a night"}
    return words.get(revision.subject.partition(" ")[0]) or revision.subject.partition(": session ")[0]


def _written(here: Served, revision: Revision) -> Iterator[tuple[str, str]]:
    """(document, line) of what a revision put into memory."""
    if revision.subject.startswith("seed "):
        return
    path, layout, diary = "", here.home.layout, here.home.dreams.diary_path.text
    with suppress(HomeError):
        for line in diff_lines(here.home.past.diff(revision.id), 400):
            if line.kind == "file" and line.text.startswith("+++ "):
                path = line.text[4:].removeprefix("b/").strip()
            text = _STAMP.sub("", line.text.strip().lstrip("-*+ "))
            is_said = line.kind == "add" and text and text[0] not in "#<_" and path != diary
            if is_said and layout.row_of(DocPath.parse(path)).policy == "memory":
                yield path, text


def _guide(here: Served, request: Request) -> dict[str, Any] | None:
    """The steps of a beginning, each with whether it is done; None once all are, or where this browser hides it."""
    from anima.connect.hosts import HOSTS

    home, layout = here.home, here.home.layout
    if here.has_begun or request.cookies.get(f"guide-{request.app.state.homes.cookie}") == "hidden":
        return None
    talks, texts = home.sessions.list(), dict[str, str]()
    for role in ("user", "identity"):
        with suppress(HomeError):
            texts[role] = home.read(here.page_of(role)).text if layout.has(role) else ""
    programs = {"mcp", "http", *HOSTS}  # of somebody's, as the conversations they held are called
    seen = next((row for row in talks if row.source_plugin in programs), None)
    done = {
        "you": "**Name:** _(" not in texts.get("user", ""),
        "agent": "**Creature:** _(" not in texts.get("identity", ""),
        "connect": seen is not None,
        "remember": any(layout.curated in each.paths and each.what != "seed" for each in home.past.changes()),
        "talk": any(row.source_plugin == CHANNEL for row in talks),
    }
    here.has_begun = all(done.values())
    if here.has_begun:
        return None
    at = time_of(seen.updated_at) if seen else None
    return {"done": done, "zone": str(home.site.zone() or ""), "seen": at, **connecting(here)}


def connecting(here: Served) -> dict[str, Any]:
    """How an agent is connected: the block for its configuration, and the programs that are known by name."""
    from anima.connect.connections import contact_of, entry_of
    from anima.connect.hosts import HOSTS
    from anima.connect.settle import spool_of

    if here.hosted:  # the programs of this machine are not theirs: an agent comes in by its token
        server: dict[str, Any] = {"url": "/mcp", "headers": {"Authorization": "Bearer TOKEN"}}
        hosts = []
    else:
        server = entry_of(here.home)["mcpServers"]["anima"]
        hosts = [contact_of(spool_of(here.home, host.name), host) for host in HOSTS.values()]
    fields = (f'      "{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in server.items())
    block = '{\n  "mcpServers": {\n    "anima": {\n' + ",\n".join(fields) + "\n    }\n  }\n}"
    try:
        model = "" if here.hosted else models_of(here.home).choice().name
    except HomeError:
        model = ""
    return {"block": block, "hosts": hosts, "model": model, "practice": PRACTICE}


# -- dreams -----------------------------------------------------------------------------------------------------------------


def dreams(here: Served, request: Request) -> dict[str, Any]:
    """What `?part=` asks for, or all of it: a dry run is not made for the drawings alone, nor the other way round."""
    part, home = request.query_params.get("part"), here.home
    given: dict[str, Any] = {"older": asked_number(request, "older", default=0, least=0, most=1_000_000)}
    if part != "drawn":
        given |= {**_when(here), **_tonight(here), "kept": home.dreams.kept()[::-1][:KEPT], "back": "", "unread": ""}
        given["many_nights"] = NIGHTS
        with suppress(NoSuchRevision):  # no night can be taken back
            given["back"] = home.past.last_sweep()
        try:
            given["nights"] = nights_of(here)
        except HomeError as error:
            given |= {"nights": [], "unread": str(error)}
    if part != "night":
        given["days"] = home.upkeep.numbers().days
    return given


def _when(here: Served) -> dict[str, Any]:
    """When the next night comes, in the user's own time, and when the last one was."""
    asked, dreams = here.home.config.dream, here.home.dreams
    found: dict[str, Any] = {"asked": asked, "zone": here.home.site.zone(), "next": None, "due": None, "never": ""}
    found["last"] = dreams.last if here.home.past.tip else None
    try:
        return found | {"next": dreams.coming(), "due": dreams.due()}
    except HomeError as error:
        return found | {"never": str(error)}


def _tonight(here: Served) -> dict[str, Any]:
    """What a night would do now. Where nothing was ever written, nothing was asked for, and asking would begin it."""
    found: dict[str, Any] = {"plan": None, "candidates": [], "tonight": "", "wrong": ""}
    try:
        swept = here.home.dream(dry_run=True) if here.home.past.tip else None
    except HomeError as error:
        return found | {"wrong": str(error)}
    if swept is None or swept.plan is None:
        return found
    plan, promoted = swept.plan, [promotion.candidate for promotion in swept.plan.promotions]
    taken = {(each.note.path, each.note.line) for each in promoted}
    rest = [each for each in plan.considered if (each.note.path, each.note.line) not in taken]
    ranked = [(each, True) for each in promoted] + [(e, False) for e in sorted(rest, key=lambda e: -e.score.total)]
    tonight = swept.diff if plan.memory is not None else ""
    return found | {"plan": plan, "candidates": ranked, "many": CANDIDATES, "tonight": tonight}


def nights_of(here: Served) -> list[dict[str, Any]]:
    """The nights of the diary, newest first: it is cut at its headings. What the file begins with is no night, unless
    somebody wrote something there. Raises HomeError where it cannot be read."""
    text = here.home.dreams.diary()
    preface = text.removeprefix(here.home.dreams.opening).lstrip()
    nights: list[dict[str, Any]] = [{"title": None, "lines": []}]
    for line in prose(text):
        if line.kind == "h2":
            nights.append({"title": line, "lines": []})
        elif line.kind != "blank":
            nights[-1]["lines"].append(line)
    is_written = nights[0]["lines"] and preface and not preface.startswith("## ")
    return nights[:0:-1] + (nights[:1] if is_written else [])


# -- the agent --------------------------------------------------------------------------------------------------------------


def agent(here: Served, request: Request) -> dict[str, Any]:
    home = here.home
    prompts = [home.prompt(scope=scope) for scope in Scope]
    worn = groupby(home.identity.worn(_WORN), key=lambda worn: worn.file or "none")
    souls, names = [], [here.page_of("soul") or "SOUL.md", home.config.persona.file]
    for name in dict.fromkeys(names):
        try:
            souls.append({"path": name, "text": home.read(name).text, "wrong": ""})
        except HomeError as error:
            if name == names[0]:
                souls.append({"path": name, "text": "", "wrong": str(error)})
    return {
        "picture": request.scope["state"]["ticket"]("/agent/picture"),
        "place": _place(here, "identity"),
        "souls": souls,
        "worn": [(file, list(rows)) for file, rows in worn],
        "guide": _place(here, "agents"),
        "listeners": [(told, Counter(line.status for line in told.manifest)) for told in prompts],
    }


def _place(here: Served, role: str) -> str:
    """The document of a role; empty where this dialect has none, or the home does not."""
    path = here.page_of(role)
    return path if path and here.home.exists(path) else ""


def picture(here: Served, request: Request) -> Response:
    """The avatar, when it is a picture of the home's own. It can run nothing, wherever it is opened."""
    data, kind = here.home.identity.picture()
    headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
    return Response(data, media_type=kind, headers=headers)


def sees(here: Served, request: Request) -> dict[str, Any]:
    scope = Scope.parse(request.path_params["scope"])
    sender = asked_text(request, "sender", most=200)
    given = {"current": "agent/main", "title": f"Told to {SCOPES[scope]['choice']}", "scope": scope, "sender": sender}
    asked = request.query_params.get("text") == "yes"
    return given | {"asked": asked, "prompt": here.home.prompt(scope=scope, sender=sender or None)}


SEES = PageView(path="/{scope}", template="sees.html", show=sees)
VIEWS = (PageView(show=agent), PageView(path="/picture", show=picture), SEES)


# -- settings and health -----------------------------------------------------------------------------------------------


def settings(here: Served, request: Request) -> dict[str, Any]:
    home = here.home
    rows = {key: {"value": value, "source": source} for key, value, source in home.settings()}
    given: dict[str, Any] = {"rows": rows, "wrong": ""}
    given |= {"models": (), "schedule": state_of(home.site.store), "zone": str(home.site.zone() or "")}
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
    WebPage("today", "Today", 5, "h", (PageView(show=today),)),
    WebPage("history", "History", 33, "l", (PageView(show=history),), under="memory"),
    WebPage("dreams", "Dreams", 52, "d", (PageView(show=dreams),), under="agent"),
    WebPage("agent", "Agent", 50, "a", VIEWS, tab="Identity and soul"),
    WebPage("agent/main", "What each listener sees", 51, "w", (), under="agent"),
    WebPage("settings", "Settings", 60, "s", (PageView(show=settings),)),
    WebPage("settings/health", "Health", 61, "e", (HEALTH,), under="settings"),
)
