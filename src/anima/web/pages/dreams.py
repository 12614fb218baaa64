"""Dreams: the diary night by night, what tonight would keep and why, what became memory, and how memory grows.

Promise: looking writes nothing, and begins no books where there are none; all text of the home is shown inert; what
taking a night back would change is shown before it is done, and exactly that night is taken back. Not here: dreaming
itself (sweeps), the two writes (the API), how a drawing is made (chart.html).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from anima.dream.diary import OPENING, dreamed_on, fact_of, items
from anima.dream.material import BUDGET, Candidate, Gate, SweepPlan
from anima.dream.score import WEIGHTS, Preset
from anima.errors import HomeError, NoSuchRevision, StaleWrite
from anima.home import Home
from anima.model import Actor, DocPath
from anima.upkeep.numbers import figures
from anima.web import query
from anima.web.pages import Page, View
from anima.web.prose import ProseLine, prose
from anima.web.served import Served

MANY = 40  # candidates on the page
OPEN = 6  # of them before the rest is folded away
NIGHTS = 10  # of the diary on one page
KEPT = 100  # lines of memory that are listed
MOST_NIGHTS = 1_000_000
PARTS = {
    "frequency": "how often",
    "relevance": "how well it answered",
    "diversity": "by how many questions",
    "recency": "how lately",
    "consolidation": "on how many days",
    "conceptual": "how much it names",
    "boost": "seen on earlier nights",
}
_GATES = {  # a gate that was passed, and one that stopped the line
    "lasting": ("It is about what stays", "It is about a moment, not about what stays"),
    "recalls": ("It was asked for often enough", "It was asked for too seldom"),
    "questions": ("Enough questions led to it", "Too few questions led to it"),
    "days": ("It was asked for on enough days", "It was asked for on too few days"),
    "score": ("It weighs enough", "It does not weigh enough yet"),
    "age": ("It was asked for lately", "It was asked for too long ago"),
    "new": ("It is new", "Memory knows it already"),
    "not taken out": ("Nobody took it out", "It was taken out of memory before"),
    "still so": ("It is still so", "It is no longer so"),
    "trusted": ("Its words may be trusted", "Its words may not be trusted"),
    "room": ("There is room", "There is no room in memory"),
}
_COUNTED = ("lasting", "recalls", "questions", "days", "score")


def show(here: Served, request: Request) -> dict[str, Any]:
    """What `?part=` asks for, or all of it: a dry run is not made for the drawings alone, nor the other way round."""
    home, part = here.home, request.query_params.get("part")
    older = query.number(request, "older", default=0, least=0, most=MOST_NIGHTS)
    given: dict[str, Any] = {"older": older, "undo": None}
    if part != "drawn":
        given |= _tonight(home) | _diary(home, older)
        given |= {"when": _when(home), "kept": _kept(home), "back": _back(home), "curated": home.layout.curated}
        given["nothing"] = not (
            given["nights"] or given["candidates"] or given["kept"] or given["wrong"] or given["unread"]
        )
    if part != "night":
        given |= {"days": figures(home).days, "budget": BUDGET}
    if part is None and request.query_params.get("undo"):
        given["undo"] = _undo(home)
    return given


def _address(path: str, line: int) -> str:
    return f"/memory/{quote(path)}?line={line}#L{line}"


# -- when -----------------------------------------------------------------------------------------------------------------


def _when(home: Home) -> dict[str, Any]:
    """When the next night comes, in the user's own time, and when the last one was."""
    wanted, zone = home.config.dream, home.reading.zone()
    found: dict[str, Any] = {
        "enabled": wanted.enabled,
        "at": wanted.at,
        "zone": str(zone or "UTC"),
        "next": None,
        "due": False,
        "shown": "",
        "last": home.dreams.last if home.books.begun else None,
        "wrong": "",
    }
    if not wanted.enabled:
        return found
    try:
        coming, is_due = home.dreams.coming(), home.dreams.due() is not None
    except HomeError as error:
        return found | {"wrong": str(error)}
    return found | {"next": coming, "due": is_due, "shown": _local(home, coming)}


def _local(home: Home, moment: datetime) -> str:
    return f"{moment.astimezone(home.reading.zone()):%Y-%m-%d %H:%M}"


# -- tonight --------------------------------------------------------------------------------------------------------------


def _tonight(home: Home) -> dict[str, Any]:
    """What a night would do now. Without books nothing was ever asked for, and asking would begin them."""
    rules = home.dreams.rules()
    boosted = rules.name == "openclaw"
    legend = [(n, word) for n, (name, word) in enumerate(PARTS.items(), start=1) if boosted or name in WEIGHTS]
    found: dict[str, Any] = {
        "rules": rules,
        "legend": legend,
        "candidates": [],
        "left_out": 0,
        "open": OPEN,
        "promoted": 0,
        "retired": (),
        "moved": (),
        "wishes": (),
        "recalls": 0,
        "diff_text": "",
        "wrong": "",
    }
    if not home.books.begun:
        return found
    try:
        swept = home.dream(dry_run=True)
    except HomeError as error:
        return found | {"wrong": str(error)}
    plan = swept.plan
    if plan is None:
        return found
    ranked = _ranked(plan)
    return found | {
        "candidates": [_candidate(each, kept, plan.rules) for each, kept in ranked[:MANY]],
        "left_out": max(0, len(ranked) - MANY),
        "promoted": len(plan.promotions),
        "retired": plan.retirements,
        "moved": plan.moves,
        "wishes": plan.wishes,
        "recalls": plan.recalls,
        "diff_text": swept.diff if plan.changes_memory else "",
    }


def _ranked(plan: SweepPlan) -> list[tuple[Candidate, bool]]:
    """The promoted first, then the rest by score."""
    promoted = [promotion.candidate for promotion in plan.promotions]
    taken = {(each.note.path, each.note.line) for each in promoted}
    rest = [each for each in plan.considered if (each.note.path, each.note.line) not in taken]
    return [(each, True) for each in promoted] + [(e, False) for e in sorted(rest, key=lambda e: -e.score.total)]


def _candidate(each: Candidate, kept: bool, rules: Preset) -> dict[str, Any]:
    note, refusal = each.note, each.refusal
    parts = list(_parts(each))
    verdict = "Becomes memory" if kept else _GATES[refusal.name][1] if refusal and refusal.name in _GATES else ""
    return {
        "text": note.text,
        "place": f"{note.path}:{note.line}",
        "address": _address(note.path, note.line),
        "kept": kept,
        "verdict": verdict or f"It waits: at most {rules.limit} lines a night",
        "total": each.score.total,
        "parts": parts,
        "told": ", ".join(f"{part['word']} {part['value']:.2f}" for part in parts),
        "needs": rules.score,
        "mark": round(1000 * rules.score),
        "reasons": each.reasons,
        "since": each.since,
        "gates": [_gate(gate) for gate in each.gates],
    }


def _parts(each: Candidate) -> Iterator[dict[str, Any]]:
    """The parts of a score, weighed, one after the other along a bar of 1,000."""
    at = 0.0
    for number, (name, word) in enumerate(PARTS.items(), start=1):
        value = WEIGHTS.get(name, 1.0) * getattr(each.score, name)
        if value > 0:
            width = max(2, round(1000 * value) - 3)  # a gap tells parts apart without their colours
            yield {"number": number, "word": word, "value": value, "x": round(1000 * at), "width": width}
        at += value


def _gate(gate: Gate) -> dict[str, Any]:
    passed, stopped = _GATES.get(gate.name, (gate.name, gate.name))
    said = gate.said
    if gate.name in _COUNTED and " of " in said:
        have, _, need = said.partition(" of ")
        said = f"{have}; {need} needed"
    return {"passed": gate.passed, "word": passed if gate.passed else stopped, "said": said}


# -- the diary ------------------------------------------------------------------------------------------------------------


def _diary(home: Home, older: int) -> dict[str, Any]:
    """The nights, newest first, from the one that is asked for."""
    path, text, unread = home.dreams.diary_path.text, "", ""
    try:
        text = home.dreams.diary()
    except HomeError as error:
        unread = str(error)
    nights = list(_nights(text))[::-1]
    shown = nights[older : older + NIGHTS]
    return {
        "nights": shown,
        "all_nights": len(nights),
        "diary": path,
        "unread": unread,
        "many_nights": NIGHTS,
        "more": older + NIGHTS if older + NIGHTS < len(nights) else 0,
    }


def _nights(text: str) -> Iterator[dict[str, Any]]:
    """The diary cut at its headings. What the file begins with is no night, unless somebody wrote something there."""
    title: ProseLine | None = None
    lines: list[ProseLine] = []
    preface = text.removeprefix(OPENING) if text.startswith(OPENING) else text
    begins_with_a_night = preface.lstrip().startswith("## ")
    for line in prose(text):
        if line.kind != "h2":
            lines.append(line)
            continue
        if title is not None or not begins_with_a_night:
            yield from _night(title, lines)
        title, lines = line, []
    if text and (title is not None or preface.strip()):
        yield from _night(title, lines)


def _night(title: ProseLine | None, lines: list[ProseLine]) -> Iterator[dict[str, Any]]:
    lines = [line for line in lines if line.kind != "blank"]
    if title is not None or lines:
        name, line = (title.body, title.n) if title else ("Before the first night", 1)
        yield {"title": name, "line": line, "lines": lines}


# -- what became memory, and what can be taken back -----------------------------------------------------------------------


def _kept(home: Home) -> list[dict[str, Any]]:
    """The lines of MEMORY.md that dreams wrote, the newest night first."""
    path = DocPath.parse(home.layout.curated)
    if not home.books.begun or not home.exists(path):
        return []
    text, view = home.read(path).text, home.books.provenance
    if not view.knows(path):
        return []
    nights = dreamed_on(text)
    found = [
        {
            "fact": fact_of(item.raws[0])[0],
            "since": fact_of(item.raws[0])[1],
            "night": nights.get(item.line),
            "address": _address(path.text, item.line),
        }
        for item in items(text)
        if view.source(path, item.raws[0]).actor is Actor.DREAMER
    ]
    return found[::-1][:KEPT]


def _back(home: Home) -> str:
    """The last night that can be taken back; empty when there is none."""
    try:
        return home.keeping.last_sweep() if home.books.begun else ""
    except NoSuchRevision:
        return ""


def _undo(home: Home) -> dict[str, Any]:
    """What taking the last night back would change."""
    change = _back(home)
    if not change:
        raise NoSuchRevision("there is no night of dreaming to take back", hint="the diary tells of those there were")
    try:
        return {"change": change, "back": home.keeping.show_undo(change=change), "wrong": ""}
    except (StaleWrite, NoSuchRevision) as error:
        return {"change": change, "back": None, "wrong": str(error)}


PAGE = Page(name="dreams", title="Dreams", order=60, key="d", views=(View(show=show),))
