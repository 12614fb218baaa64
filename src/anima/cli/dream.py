"""The command that dreams: dream."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from anima.cli.command import HOME, JSON, SET, Reply, command, flag, option
from anima.cli.show import inert, patient, say, show_diff
from anima.errors import BadArguments

if TYPE_CHECKING:
    from anima import Candidate, Home, Sweep

MOST_EXPLAINED = 40


@command(
    flag("--dry-run", help="Only show what would change, as a diff."),
    flag("--explain", help="Show each candidate: its score in parts, and each gate."),
    option("--since", metavar="DAY", help="Count only searches from this day on."),
    option("--preset", help="By whose rules: anima, nexo or openclaw. Default: the configuration's."),
    HOME,
    SET,
    JSON,
)
def dream(home: Home, dry_run: bool, explain: bool, since: str | None, preset: str | None) -> Reply:
    """Dream now: what searches speak for becomes memory, what is no longer so leaves it.

    It reads the daily logs and what the agent searched for, and writes MEMORY.md, DREAMS.md, memory/topics/ and bank/ in
    one change, which `anima undo --sweep` takes back. Your own lines are never touched.

    \b
    anima dream --dry-run
    anima dream --explain
    anima dream --since 2026-04-01 --preset nexo --dry-run
    """
    with patient("dreaming: reading what was noted and asked for"):
        swept = home.dream(dry_run=dry_run, preset=preset, since=_day(since))

    def show() -> None:
        for candidate in swept.plan.considered[:MOST_EXPLAINED] if explain and swept.plan else ():
            _show_candidate(candidate)
        if swept.diff:
            show_diff(swept.diff)
        say(_outcome(swept))

    return Reply(_fields(swept), show)


def _day(since: str | None) -> date | None:
    try:
        return date.fromisoformat(since) if since else None
    except ValueError:
        raise BadArguments(f"--since takes a day such as 2026-04-01, not {since!r}") from None


def _outcome(swept: Sweep) -> str:
    plan = swept.plan
    if swept.status in ("nothing", "busy", "refused") or plan is None:
        return f"{swept.status}: {inert(swept.said)}"
    kept, gone, moved = len(plan.promotions), len(plan.retirements), len(plan.moves)
    counts = f"{kept} kept, {gone} no longer so, {moved} moved out, {len(plan.considered)} considered"
    waiting = f"; {len(swept.proposals)} wait for you: anima review" if swept.proposals else ""
    back = f" (change {swept.change}; anima undo --sweep takes it back)" if swept.change else ""
    return f"{swept.status}: {counts}{back}{waiting}"


def _show_candidate(candidate: Candidate) -> None:
    note, parts = candidate.note, candidate.score
    mark = "+" if candidate.passed else " "
    say(f"{mark} {parts.total:.2f}  {inert(note.text[:100])}  ({inert(note.path)}:{note.line})")
    names = ("frequency", "relevance", "diversity", "recency", "consolidation", "conceptual")
    say("        " + "  ".join(f"{name} {getattr(parts, name):.2f}" for name in names))
    for reason in candidate.reasons:
        say(f"        {inert(reason)}")
    for gate in candidate.gates:
        say(f"        {'pass' if gate.passed else 'STOP'}  {gate.name}: {inert(gate.said[:120])}")


def _fields(swept: Sweep) -> dict[str, Any]:
    names = ("status", "change", "revision", "said", "proposals", "diff")
    found: dict[str, Any] = {name: getattr(swept, name) for name in names}
    if (plan := swept.plan) is None:
        return found
    retired = [{"fact": r.held.fact, "since": r.since, "until": r.until, "by": r.by.text} for r in plan.retirements]
    return found | {
        "preset": plan.rules.name,
        "recalls": plan.recalls,
        "themes": plan.themes,
        "promoted": [{"line": p.line, **_candidate(p.candidate)} for p in plan.promotions],
        "retired": retired,
        "moved": [held.fact for held in plan.moves],
        "diary": plan.diary,
        "considered": [_candidate(candidate) for candidate in plan.considered],
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    note, names = candidate.note, ("score", "evidence", "lasting", "reasons", "gates")
    found = {"text": note.text, "path": note.path, "line": note.line}
    return found | {name: getattr(candidate, name) for name in names}
