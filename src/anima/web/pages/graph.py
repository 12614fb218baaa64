"""Graph: who and what the home speaks of, drawn, and as a list that says the same.

Promise: the list is the data; the drawing is made from it in the browser, and without a script the list remains. Choosing
a name shows what `anima about` says. Names are shown inert.
"""

from __future__ import annotations

import threading
from datetime import date
from typing import Any
from weakref import WeakKeyDictionary

from starlette.requests import Request

from anima.errors import BadArguments, printable
from anima.home import Home
from anima.model import Scope
from anima.search.about import About, look_up
from anima.search.graph import MOST, Graph, links_of, plain
from anima.web import query
from anima.web.pages import Page, View
from anima.web.served import Served

KINDS = (
    ("person", "People", "●"),
    ("name", "Other names", "○"),
    ("topic", "Topics", "■"),
    ("document", "Documents", "◆"),
)
PAGE_CHARS = 1_500
MENTIONS, MONTHS = 12, 12
_SIGN = {kind: sign for kind, _, sign in KINDS}
_AGES = ((30, 0), (120, 1), (365, 2))  # days since it was last named, and how faded it is drawn

_kept: WeakKeyDictionary[Home, tuple[int, int, Graph]] = WeakKeyDictionary()
_mutex = threading.Lock()


def show(here: Served, request: Request) -> dict[str, Any]:
    home = here.home
    most = query.number(request, "most", default=MOST, least=1, most=MOST)
    graph, today = _graph(home, most), home.reading.today()
    ties: dict[int, list[str]] = {}
    for edge in graph.edges:
        ties.setdefault(edge.one, []).append(f"{edge.other}*{edge.weight}{'l' if edge.linked else ''}")
    nodes = [
        {"node": node, "sign": _SIGN[node.kind], "age": _age(node.last, today), "ties": " ".join(ties.get(n, ()))}
        for n, node in enumerate(graph.nodes)
    ]
    counts = {kind: sum(node.kind == kind for node in graph.nodes) for kind, _, _ in KINDS}
    return {"graph": graph, "nodes": nodes, "kinds": KINDS, "counts": counts, "most": most, "about": None}


def _graph(home: Home, most: int) -> Graph:
    """Made again when a document's path, size or time is another."""
    seen = hash(tuple((entry.path, entry.size, entry.time) for entry in home.list_all()))
    with _mutex:
        held = _kept.get(home)
    if held is not None and held[:2] == (seen, most):
        return held[2]
    made = links_of(home, scope=Scope.MAIN, most=most)
    with _mutex:
        _kept[home] = (seen, most, made)
    return made


def _age(last: date | None, today: date) -> int:
    """From 0, lately, to 3, long ago. What has no day does not fade."""
    days = (today - last).days if last else 0
    return next((age for most, age in _AGES if days <= most), 3)


def about(here: Served, request: Request) -> dict[str, Any]:
    name = query.text(request, "name", most=200)
    if not name:
        raise BadArguments("say a name", hint="choose one in the graph")
    found = look_up(here.home, name, scope=Scope.MAIN, limit=MENTIONS)
    graph = _graph(here.home, MOST)
    node = next((node for node in graph.nodes if plain(node.name) == plain(name)), None)
    text = found.page.text if found.page else ""
    return {
        "title": printable(name, 80),
        "found": found,
        "node": node,
        "page": text[:PAGE_CHARS],
        "cut": len(text) > PAGE_CHARS,
        "months": _months(here.home, found),
        "sign": _SIGN[node.kind] if node else "○",
    }


def _months(home: Home, found: About) -> list[int]:
    """How often it was named in each of the last months, from every mention."""
    every = found if found.total <= MENTIONS else look_up(home, found.name, scope=Scope.MAIN, limit=5_000)
    today = home.reading.today()
    counts = [0] * MONTHS
    for mention in every.mentions:
        back = (today.year - mention.day.year) * 12 + today.month - mention.day.month if mention.day else MONTHS
        if 0 <= back < MONTHS:
            counts[MONTHS - 1 - back] += 1
    return counts


PAGE = Page(
    name="graph",
    title="Graph",
    order=70,
    key="g",
    views=(View(show=show), View(path="/about", template="about.html", show=about)),
)
