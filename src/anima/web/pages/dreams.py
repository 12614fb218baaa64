"""Dreams: the diary night by night, what tonight would keep and why, what became memory, and how memory grows.

Promise: looking writes nothing, and begins nothing where nothing was ever written; all text of the home is shown inert;
a night is taken back where every change is, once it was shown what that does. Not here: dreaming itself (the home), the
write (the API), how a drawing is made (chart.html).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from starlette.requests import Request

from anima import HomeError, NoSuchRevision
from anima.web.draw import ProseLine, prose
from anima.web.pages import PageView, WebPage
from anima.web.served import Served, asked_number

MANY = 40  # candidates on the page
NIGHTS = 10  # of the diary on one page
KEPT = 100  # lines of memory that are listed
MOST_NIGHTS = 1_000_000


def show(here: Served, request: Request) -> dict[str, Any]:
    """What `?part=` asks for, or all of it: a dry run is not made for the drawings alone, nor the other way round."""
    part = request.query_params.get("part")
    older = asked_number(request, "older", default=0, least=0, most=MOST_NIGHTS)
    given: dict[str, Any] = {"older": older}
    if part != "drawn":
        given |= {
            **_when(here),
            **_tonight(here),
            **_diary(here),
            "kept": here.home.dreams.kept()[::-1][:KEPT],
            "back": _last_night(here),
            "curated": here.home.layout.curated,
        }
    if part != "night":
        given |= {"days": here.home.upkeep.numbers().days, "budget": here.home.dreams.budget}
    return given


def _when(here: Served) -> dict[str, Any]:
    """When the next night comes, in the user's own time, and when the last one was."""
    asked, dreams = here.home.config.dream, here.home.dreams
    found: dict[str, Any] = {"asked": asked, "zone": here.home.site.zone(), "next": None, "due": False, "never": ""}
    found["last"] = dreams.last if here.home.past.tip else None
    try:
        return found | ({"next": dreams.coming(), "due": dreams.due() is not None} if asked.enabled else {})
    except HomeError as error:
        return found | {"never": str(error)}


def _tonight(here: Served) -> dict[str, Any]:
    """What a night would do now. Where nothing was ever written, nothing was asked for, and asking would begin it."""
    found: dict[str, Any] = {
        "rules": here.home.dreams.rules(),
        "plan": None,
        "candidates": [],
        "tonight": "",
        "wrong": "",
    }
    if not here.home.past.tip:
        return found
    try:
        swept = here.home.dream(dry_run=True)
    except HomeError as error:
        return found | {"wrong": str(error)}
    plan = swept.plan
    if plan is None:
        return found
    promoted = [promotion.candidate for promotion in plan.promotions]
    taken = {(each.note.path, each.note.line) for each in promoted}
    rest = [each for each in plan.considered if (each.note.path, each.note.line) not in taken]
    ranked = [(each, True) for each in promoted] + [(e, False) for e in sorted(rest, key=lambda e: -e.score.total)]
    tonight = swept.diff if plan.changes_memory else ""
    return found | {"plan": plan, "candidates": ranked, "many": MANY, "tonight": tonight}


def _diary(here: Served) -> dict[str, Any]:
    """The nights, newest first, from the one that is asked for."""
    path, nights, unread = here.home.dreams.diary_path.text, list[dict[str, Any]](), ""
    try:
        nights = nights_of(here)
    except HomeError as error:
        unread = str(error)
    return {"nights": nights, "many_nights": NIGHTS, "diary": path, "unread": unread}


def nights_of(here: Served) -> list[dict[str, Any]]:
    """The nights of the diary, newest first. Raises HomeError where it cannot be read."""
    return list(_nights(here.home.dreams.diary(), here.home.dreams.opening))[::-1]


def _nights(text: str, opening: str) -> Iterator[dict[str, Any]]:
    """The diary cut at its headings. What the file begins with is no night, unless somebody wrote something there."""
    title: ProseLine | None = None
    lines: list[ProseLine] = []
    preface = text.removeprefix(opening)
    begins_with_a_night = preface.lstrip().startswith("## ")
    for line in prose(text):
        if line.kind != "h2":
            lines += [line] if line.kind != "blank" else []
            continue
        if title is not None or (lines and not begins_with_a_night):
            yield {"title": title, "lines": lines}
        title, lines = line, []
    if title is not None or (lines and preface.strip()):
        yield {"title": title, "lines": lines}


def _last_night(here: Served) -> str:
    """The last night that can be taken back; empty when there is none."""
    try:
        return here.home.past.last_sweep()
    except NoSuchRevision:
        return ""


PAGES = (WebPage("dreams", "Dreams", 52, "d", (PageView(show=show),), under="agent"),)
