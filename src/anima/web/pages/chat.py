"""Talking with the agent: one conversation as a letter with small print, and the list of them.

Promise: the script draws what was said as text and nothing else, from the API; cards of the conversation stand below it, as in
the inbox, and a yes counts for what was shown. Not here: turns (chats), the acts (the API).
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from anima.agent import PRACTICE
from anima.agent.chats import models_of, waiting
from anima.errors import HomeError
from anima.web.pages import PageView, WebPage
from anima.web.pages.deciding import card_of
from anima.web.served import Served

MOST_ROWS = 60


def chat(here: Served, request: Request) -> dict[str, Any]:
    """A conversation with what it left to decide, or where one begins."""
    id, rows = request.path_params.get("id", ""), here.chats.rows(MOST_ROWS)
    asked, noted = waiting(here.home, id) if id else ([], [])
    given = {"id": id, "rows": rows, "model": "", "practice": PRACTICE, "wrong": "", "hint": "", "noted": noted}
    given |= {"summary": next((row["summary"] for row in rows if row["id"] == id), "")}
    given |= {"waiting": [card_of(here, request, each) for each in asked]}
    try:
        return given | {"model": models_of(here.home).choice().name}
    except HomeError as error:
        return given | {"wrong": str(error), "hint": error.hint or ""}


PAGES = (WebPage("chat", "Chat", 10, "c", (PageView(show=chat), PageView(path="/{id}", show=chat))),)
