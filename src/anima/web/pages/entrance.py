"""The entrance: a one-time code becomes a cookie and a key, and both are given back.

Promise: the code stands behind the `#` of the link, which browsers keep to themselves, so no log of any server holds it;
it works once. The cookie is HttpOnly and SameSite=Strict, and alone it opens nothing; the key is told once, to the script
that sent the code, which keeps it where only pages of this origin can read it. Not here: how a code is made (tokens).
"""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from anima.web.guard import who_of
from anima.web.problems import problem
from anima.web.served import Served
from anima.web.tokens import PAGE_LIFETIME

router = APIRouter(include_in_schema=False)
_WRONG = "Not this code. It was used, or is older than ten minutes."


@router.get("/login")
async def entrance(request: Request) -> Response:
    found: Response = request.app.state.drawing.page(request, "login.html", {"title": "Come in"})
    return found


@router.post("/login")
async def enter(request: Request) -> Response:
    here: Served = request.app.state.served
    given = parse_qs((await request.body())[:4_096].decode("utf-8", "replace"))
    halves = await run_in_threadpool(here.keyring.redeem, (given.get("code") or [""])[0].strip())
    if halves is None:
        return problem(403, _WRONG, hint="anima token link makes a new one")
    cookie, key = halves
    answer = JSONResponse({"key": key})
    answer.set_cookie(
        here.keyring.cookie,
        cookie,
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
    answer = Response(status_code=204)
    answer.delete_cookie(here.keyring.cookie, httponly=True, samesite="strict", path="/")
    return answer
