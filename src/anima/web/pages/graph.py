"""Graph: who and what the home speaks of, drawn, and as a list that says the same.

Promise: the list is the data; the drawing is made from it in the browser, and without a script the list remains. Choosing
a name shows what `anima about` says. Names are shown inert.
"""

from __future__ import annotations

from datetime import date
from typing import Any

from starlette.requests import Request

from anima.errors import BadArguments, printable
from anima.web.pages import PageView, WebPage
from anima.web.served import Served, asked_number, asked_text

KINDS = (
    ("person", "People", "●"),
    ("name", "Other names", "○"),
    ("topic", "Topics", "■"),
    ("document", "Documents", "◆"),
)
MOST = 500
MENTIONS, MONTHS = 12, 12
_SIGN = {kind: sign for kind, _, sign in KINDS}
_AGES = ((30, 0), (120, 1), (365, 2))  # days since it was last named, and how faded it is drawn


def show(here: Served, request: Request) -> dict[str, Any]:
    most = asked_number(request, "most", default=MOST, least=1, most=MOST)
    graph, today = here.graph(most), here.home.site.today()
    ties: dict[int, list[str]] = {}
    for edge in graph.edges:
        ties.setdefault(edge.one, []).append(f"{edge.other}*{edge.weight}{'l' if edge.linked else ''}")
    nodes = [
        {"node": node, "sign": _SIGN[node.kind], "age": _age(node.last, today), "ties": " ".join(ties.get(n, ()))}
        for n, node in enumerate(graph.nodes)
    ]
    counts = {kind: sum(node.kind == kind for node in graph.nodes) for kind, _, _ in KINDS}
    return {"graph": graph, "nodes": nodes, "kinds": KINDS, "counts": counts, "most": most}


def _age(last: date | None, today: date) -> int:
    """From 0, lately, to 3, long ago. What has no day does not fade."""
    days = (today - last).days if last else 0
    return next((age for most, age in _AGES if days <= most), 3)


def about(here: Served, request: Request) -> dict[str, Any]:
    name = asked_text(request, "name", most=200)
    if not name:
        raise BadArguments("say a name", hint="choose one in the graph")
    found = here.about(name, limit=MENTIONS)
    node = here.graph(MOST).named(name)
    return {
        "title": printable(name, 80),
        "found": found,
        "node": node,
        "sign": _SIGN[node.kind] if node else "○",
        "months": _months(here, name, found),
    }


def _months(here: Served, name: str, found: Any) -> list[int]:
    """How often it was named in each of the last months, from every mention."""
    every, today = found if found.total <= MENTIONS else here.about(name, limit=5_000), here.home.site.today()
    counts = [0] * MONTHS
    for mention in every.mentions:
        back = (today.year - mention.day.year) * 12 + today.month - mention.day.month if mention.day else MONTHS
        if 0 <= back < MONTHS:
            counts[MONTHS - 1 - back] += 1
    return counts


PAGE = WebPage(
    name="graph",
    title="Graph",
    order=70,
    key="g",
    views=(PageView(show=show), PageView(path="/about", template="about.html", show=about)),
)
