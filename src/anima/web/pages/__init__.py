"""Pages, the way in, and how to add a page: a function in a module here and a template of the page's name.

    # web/pages/dreams.py
    def show(here: Served, request: Request) -> dict[str, Any]:  # runs in a thread; names for the template, beside `here` and `home`
        return {"diary": here.home.read("DREAMS.md")}

    PAGES = (WebPage("dreams", "Dreams", 60, "d", (PageView(show=show),)),)

`templates/dreams.html` extends `layout.html` and fills the blocks `main` and, when it has one, `panel` (the third column, a
sheet on a phone). /dreams then stands in the rail, or with `under="agent"` among the tabs of that page; no other file is
touched. `PageView(path="/{night}", template="night.html", show=…)` is a view more. A list with detail: rows `a.entry[data-id]`
in an element with `data-list`, and `#detail` in the panel; a row's address gives its detail as `?part=detail`. Live parts: an
element with `id`, `data-live="/dreams?part=list"` and `data-on="change decided"` is fetched again when such an event comes, as
the template's block of that name, children matched by `id`, but one that is being edited (`data-busy`). Writes go to /api/v1 by
`anima.send(method, path, body)` of the script. Text of documents is shown by the filter `inert`, diffs by `diff(text)`.

Promise: views run behind the guard, for the owner alone. Not here: the guard, the API.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, quote

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from anima import Scope
from anima.errors import BadArguments, printable
from anima.web.guard import Problem, who_of
from anima.web.served import Served
from anima.web.tokens import PAGE_LIFETIME

Shown = Mapping[str, Any] | Response  # a Response is sent as it is: a picture, another address
Show = Callable[[Served, Request], Shown]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    """One address of a page. `path` is what follows the page's own; `template` is the page's own when none is named."""

    show: Show
    path: str = ""
    template: str = ""


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page of the rail, or of the tabs of the one it is `under`. `key`, after g, opens it: `g i` is the inbox; `tab` is its
    name among tabs."""

    name: str
    title: str
    order: int
    key: str
    views: tuple[PageView, ...]
    under: str = ""
    tab: str = ""


MOVED = {"/self": "/agent", "/health": "/settings/health"}  # where pages stood before


@cache
def all_pages() -> tuple[WebPage, ...]:
    modules = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    return tuple(sorted((page for module in modules for page in module.PAGES), key=lambda page: page.order))


def router() -> APIRouter:
    made = APIRouter(include_in_schema=False)
    made.include_router(_entrance)
    for page in all_pages():
        for view in page.views:
            made.add_api_route(f"/{page.name}{view.path}", _drawn(page, view), methods=["GET"])
    for old, new in MOVED.items():
        made.add_api_route(old + "{rest:path}", _moved(new), methods=["GET"])
    return made


def _moved(new: str) -> Callable[[Request], Response]:
    def lead(request: Request) -> Response:
        rest = quote(str(request.path_params["rest"]))
        asked = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(new + rest + asked if rest[:1] in ("", "/") else "/", status_code=303)

    return lead


def _drawn(page: WebPage, view: PageView) -> Callable[[Request], Response]:
    def draw(request: Request) -> Response:  # no coroutine, so it runs in a thread
        here: Served = request.state.served
        shown = view.show(here, request)
        if isinstance(shown, Response):
            return shown
        given = {"current": page.name, "title": page.title, "here": here, "home": here.home, **shown}
        found: HTMLResponse = request.app.state.drawing.page(request, view.template or f"{page.name}.html", given)
        return found

    return draw


# -- what a page was asked for: the parameters of its address; whatever stands there gives a value or BadArguments ------------


MOST_CHARS = 4_000


def asked_text(request: Request, name: str, *, most: int = MOST_CHARS) -> str:
    found = request.query_params.get(name, "").strip()
    if len(found) > most:
        raise BadArguments(f"{name} has at most {most:,} characters, and this has {len(found):,}", hint="shorten it")
    return found


def asked_number(request: Request, name: str, *, default: int, least: int, most: int) -> int:
    raw = request.query_params.get(name, "").strip()
    if not raw:
        return default
    if not raw.isascii() or not raw.isdigit() or len(raw) > 9 or not least <= int(raw) <= most:
        raise BadArguments(f"{name} is a number from {least} to {most:,}, not {printable(raw, 40)}")
    return int(raw)


def asked_scope(request: Request, *, unsaid: Scope | None) -> Scope | None:
    """The scope that was chosen; `unsaid` where none was."""
    raw = request.query_params.get("scope", "").strip()
    if len(raw) > 40:
        raise BadArguments(f"the scopes are {', '.join(Scope)}")
    return Scope.parse(raw) if raw else unsaid


def is_ticked(request: Request, name: str) -> bool:
    return request.query_params.get(name, "") not in ("", "0")


# -- the entrance: a one-time code becomes a cookie and a key, and both are given back ---------------------------------------
#
# The code stands behind the `#` of the link, which browsers keep to themselves, so no log of any server holds it; it works
# once. The cookie is HttpOnly and SameSite=Strict, and alone it opens nothing; the key is told once, to the script that
# sent the code, which keeps it where only pages of this origin can read it.

_entrance = APIRouter()


@_entrance.get("/")
async def first(request: Request) -> Response:
    return RedirectResponse(f"/{all_pages()[0].name}", status_code=303)


@_entrance.get("/login")
async def come_in(request: Request) -> Response:
    found: Response = request.app.state.drawing.page(request, "login.html", {"title": "Come in"})
    return found


@_entrance.post("/login")
async def enter(request: Request) -> Response:
    homes = request.app.state.homes
    given = parse_qs((await request.body())[:4_096].decode("utf-8", "replace"))
    halves = await homes.redeem((given.get("code") or [""])[0].strip())
    if halves is None:
        return Problem(403, homes.not_this[0], hint=homes.not_this[1])
    (cookie, key), age = halves, int(PAGE_LIFETIME.total_seconds())
    answer = JSONResponse({"key": key})
    answer.set_cookie(homes.cookie, cookie, max_age=age, **_kept(homes))
    return answer


@_entrance.post("/logout")
async def leave(request: Request) -> Response:
    homes = request.app.state.homes
    await run_in_threadpool(request.state.served.keyring.revoke, who_of(request.scope).id)
    answer = Response(status_code=204)
    answer.delete_cookie(homes.cookie, **_kept(homes))
    return answer


def _kept(homes: Any) -> dict[str, Any]:
    return {"httponly": True, "samesite": "strict", "path": "/", "secure": homes.is_secure}
