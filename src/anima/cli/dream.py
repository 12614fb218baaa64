"""The verb that dreams: dream."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anima.cli.diffs import show_diff
from anima.cli.show import HomeOption, JsonOption, SetOption, inert, open_home, patient, say, say_json
from anima.errors import BadArguments

if TYPE_CHECKING:
    from anima.dream.material import Candidate
    from anima.dream.sweep import Sweep

MOST_EXPLAINED = 40


def add_to(app: typer.Typer) -> None:
    app.command("dream")(dream)


def dream(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change, as a diff.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show each candidate: its score in parts, and each gate.")
    ] = False,
    since: Annotated[str | None, typer.Option(metavar="DAY", help="Count only searches from this day on.")] = None,
    preset: Annotated[
        str | None, typer.Option(help="By whose rules: anima, nexo or openclaw. Default: the configuration's.")
    ] = None,
    home: HomeOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Dream now: what searches speak for becomes memory, what is no longer so leaves it.

    It reads the daily logs and what the agent searched for, and writes MEMORY.md, DREAMS.md, memory/topics/ and bank/ in
    one change, which `anima undo --sweep` takes back. Your own lines are never touched.

    \b
    anima dream --dry-run
    anima dream --explain
    anima dream --since 2026-04-01 --preset nexo --dry-run
    """
    with open_home(home, set_) as opened, patient("dreaming: reading what was noted and asked for"):
        swept = opened.dream(dry_run=dry_run, preset=preset, since=_day(since))
    if json:
        say_json(_row(swept))
        return
    if explain and swept.plan:
        for candidate in swept.plan.considered[:MOST_EXPLAINED]:
            _show(candidate)
    if swept.diff:
        show_diff(swept.diff)
    say(_told(swept))


def _day(since: str | None) -> date | None:
    try:
        return date.fromisoformat(since) if since else None
    except ValueError:
        raise BadArguments(f"--since takes a day such as 2026-04-01, not {since!r}") from None


def _told(swept: Sweep) -> str:
    plan = swept.plan
    if swept.status in ("nothing", "busy", "refused") or plan is None:
        return f"{swept.status}: {inert(swept.said)}"
    kept, gone, moved = len(plan.promotions), len(plan.retirements), len(plan.moves)
    counts = f"{kept} kept, {gone} no longer so, {moved} moved out, {len(plan.considered)} considered"
    waiting = f"; {len(swept.proposals)} wait for you: anima pending" if swept.proposals else ""
    back = f" (change {swept.change}; anima undo --sweep takes it back)" if swept.change else ""
    return f"{swept.status}: {counts}{back}{waiting}"


def _show(candidate: Candidate) -> None:
    note, parts = candidate.note, candidate.score
    say(
        f"{'+' if candidate.passed else ' '} {parts.total:.2f}  {inert(note.text[:100])}  ({inert(note.path)}:{note.line})"
    )
    names = ("frequency", "relevance", "diversity", "recency", "consolidation", "conceptual")
    say("        " + "  ".join(f"{name} {getattr(parts, name):.2f}" for name in names))
    for reason in candidate.reasons:
        say(f"        {inert(reason)}")
    for gate in candidate.gates:
        say(f"        {'pass' if gate.passed else 'STOP'}  {gate.name}: {inert(gate.said[:120])}")


def _row(swept: Sweep) -> dict[str, Any]:
    plan = swept.plan
    found: dict[str, Any] = {
        "status": swept.status,
        "change": swept.change,
        "revision": swept.revision,
        "said": swept.said,
        "proposals": swept.proposals,
        "diff": swept.diff,
    }
    if plan is None:
        return found
    return found | {
        "preset": plan.rules.name,
        "recalls": plan.recalls,
        "themes": plan.themes,
        "promoted": [{"line": p.line, **_candidate(p.candidate)} for p in plan.promotions],
        "retired": [
            {"fact": r.held.fact, "since": r.since, "until": r.until, "by": r.by.text} for r in plan.retirements
        ],
        "moved": [held.fact for held in plan.moves],
        "diary": plan.diary,
        "considered": [_candidate(c) for c in plan.considered],
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "text": candidate.note.text,
        "path": candidate.note.path,
        "line": candidate.note.line,
        "score": candidate.score,
        "evidence": candidate.evidence,
        "lasting": candidate.lasting,
        "reasons": candidate.reasons,
        "gates": candidate.gates,
    }
