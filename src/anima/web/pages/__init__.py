"""Pages, and how to add one: a module here and a template of the same name.

    # web/pages/dreams.py
    def show(here: Served, request: Request) -> dict[str, Any]:      # runs in a thread; gives the template its names
        return {"title": "Dreams", "diary": here.home.read("DREAMS.md")}

    PAGE = WebPage(name="dreams", title="Dreams", order=60, key="m", views=(PageView(show=show),))

`templates/dreams.html` begins with `{% extends "layout.html" %}` and fills the blocks `main` and, when it has one,
`panel` (the third column). A page at /dreams then stands in the navigation; no other file is touched. More views:
`PageView(path="/{night}", template="night.html", show=…)` is /dreams/{night}; `request.path_params` has the night.

Live parts: an element with `id`, `data-live="/dreams?part=list"` and `data-on="change decided"` is fetched again when
such an event comes; the answer is the template's block of that name, and its children are matched by `id`. A child that
is being edited (`data-busy`) is left alone. Writes go to /api/v1 by `anima.send(method, path, body)` of the script,
which adds the key of the page. Show text of documents with the filter `inert`, and diffs with `diff(text)`; macros of
`templates/shared.html` that all pages may use are named in drawing.

Promise: views run behind the guard, for the owner alone. Not here: the guard, the API.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from anima.web.served import Served

Show = Callable[
    [Served, Request], Mapping[str, Any] | Response
]  # a Response is sent as it is: a picture, another address


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    """One address of a page. `path` is what follows the page's own; `template` is the page's own when none is named."""

    show: Show
    path: str = ""
    template: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """A page in the navigation. `key`, after g, opens it: `g i` is the inbox."""

    name: str
    title: str
    order: int
    key: str
    views: tuple[PageView, ...]


@cache
def all_pages() -> tuple[WebPage, ...]:
    """Every page, in the order of the navigation."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    pages: list[WebPage] = [import_module(f"{__name__}.{name}").PAGE for name in names if name != "entrance"]
    return tuple(sorted(pages, key=lambda page: (page.order, page.name)))


def router() -> APIRouter:
    """The routes of every page, and those of the entrance."""
    from anima.web.pages import entrance

    made = APIRouter(include_in_schema=False)
    made.include_router(entrance.router)
    made.add_api_route("/", _home, methods=["GET"])
    for page in all_pages():
        for view in page.views:
            made.add_api_route(f"/{page.name}{view.path}", _drawn(page, view), methods=["GET"])
    return made


async def _home(request: Request) -> Response:
    return RedirectResponse(f"/{all_pages()[0].name}", status_code=303)


def _drawn(page: WebPage, view: PageView) -> Callable[[Request], Any]:
    def draw(request: Request) -> Response:
        shown = view.show(request.app.state.served, request)
        if isinstance(shown, Response):
            return shown
        given = {"current": page.name, "title": page.title, **shown}
        found: HTMLResponse = request.app.state.drawing.page(request, view.template or f"{page.name}.html", given)
        return found

    async def answer(request: Request) -> Response:
        return await run_in_threadpool(draw, request)

    return answer
