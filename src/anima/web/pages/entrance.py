"""The entrance: a one-time code becomes a cookie, and a cookie is given back.

Promise: the code stands behind the `#` of the link, which browsers keep to themselves, so no log of any server holds it;
it works once. The cookie is HttpOnly and SameSite=Strict. Not here: how a code is made (tokens).
"""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from anima.web.guard import who_of
from anima.web.served import Served
from anima.web.tokens import PAGE_LIFETIME

router = APIRouter(include_in_schema=False)


@router.get("/login")
async def entrance(request: Request) -> Response:
    return _draw(request, wrong=False)


@router.post("/login")
async def enter(request: Request) -> Response:
    here: Served = request.app.state.served
    given = parse_qs((await request.body())[:4_096].decode("utf-8", "replace"))
    secret = await run_in_threadpool(here.keyring.redeem, (given.get("code") or [""])[0].strip())
    if secret is None:
        return _draw(request, wrong=True)
    answer = RedirectResponse("/", status_code=303)
    answer.set_cookie(
        here.keyring.cookie,
        secret,
        max_age=int(PAGE_LIFETIME.total_seconds()),
        httponly=True,
        samesite="strict",
        path="/",
    )
    return answer


@router.post("/logout")
async def leave(request: Request) -> Response:
    here: Served = request.app.state.served
    await run_in_threadpool(here.keyring.revoke, who_of(request.scope).id)
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(here.keyring.cookie, httponly=True, samesite="strict", path="/")
    return answer


def _draw(request: Request, *, wrong: bool) -> Response:
    found: Response = request.app.state.drawing.page(
        request, "login.html", {"title": "Come in", "wrong": wrong}, status=403 if wrong else 200
    )
    return found
