"""The command that forgets: forget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from anima.cli.command import HOME, JSON, Reply, command, flag, option, unless_dry, words
from anima.cli.show import counted, flat, inert, need_person, plain, say, show_notes, whisper

if TYPE_CHECKING:
    from anima import Forgetting, Home

_SHOWN = 60
_NAMES = {
    "line": "line{s}",
    "dreamed": "dreamed line{s}",
    "layer": "line{s} of other people's layers",
    "proposal": "waiting change{s}",
    "transcript": "line{s} of transcripts",
    "torn": "piece{s} put aside after a crash",
    "history": "revision{s} of history",
    "file": "other file{s}",
    "snapshot": "snapshot{s}",
}


@command(
    words("text", required=False, help="These words, wherever they stand."),
    option("--pattern", help="What fits a regular expression."),
    option("--line", metavar="PATH:LINE", help="One line, and whatever says the same."),
    option("--session", metavar="ID", help="What was said and written in a session."),
    option("--sender", metavar="ID", help="What a person said, and their layer."),
    option("--origin", help="What came from there: web, tool, skill, peer, …"),
    option("--since", metavar="TIME", help="What was written since a day or moment."),
    option("--until", metavar="TIME", help="What was written until a day or moment."),
    flag("--purge", help="Also from history, other files and free pages."),
    flag("--dry-run", help="Only list what would go, and why."),
    flag("--yes", help="Do not ask."),
    HOME,
    JSON,
    owners=unless_dry,
)
def forget(home: Home, text: str | None, dry_run: bool, yes: bool, json: bool, **asked: Any) -> Reply:
    """Forget something wherever it stands, so that it stays forgotten. Exit 1 when something still holds it.

    \b
    anima forget walnuts --dry-run
    anima forget "555-0199" --purge
    anima forget --session 22a7449d --since 2026-05-08
    """
    found = home.forget(text=text, **asked, dry_run=True)
    if not json:
        _show_plan(found)
    if not dry_run:
        if not yes:
            _ask(found)
        found = home.forget(text=text, **asked)
    value = {**plain(found), "counts": found.counts}
    return Reply(value, lambda: None if dry_run else _show_done(found), 1 if found.done and found.left else 0)


def _ask(found: Forgetting) -> None:
    need_person(
        "forgetting needs a person at a terminal, or --yes; nothing was forgotten",
        hint="--dry-run only lists what would go",
    )
    purged = " History cannot bring back what is purged." if found.purge else ""
    click.confirm(f"Forget {counted(sum(found.counts.values()), 'thing')}?{purged}", abort=True, err=True)


def _show_plan(found: Forgetting) -> None:
    if not found.touched:
        say("Nothing holds it.")
    for each in found.touched[:_SHOWN]:
        more = f" ({each.count})" if each.count > 1 else ""
        text = f"  {flat(each.text)}" if each.text else ""
        say(f"{each.place:10} {inert(each.where)}{more}  {inert(each.why)}{text}")
    if len(found.touched) > _SHOWN:
        say(f"… and {len(found.touched) - _SHOWN:,} more; --json lists them all")
    _show_left(found)
    show_notes(found.notes, "note")


def _show_left(found: Forgetting) -> None:
    for where, why in found.left:
        whisper(f"left: {inert(where)}: {inert(why)}")


def _show_done(found: Forgetting) -> None:
    found_in = ((count, _NAMES.get(place, place)) for place, count in found.counts.items())
    told = ", ".join(f"{count:,} {name.format(s='' if count == 1 else 's')}" for count, name in found_in)
    say(f"Forgotten: {told or 'nothing held it'}." + (f" Change {found.change}." if found.change else ""))
    # the other notes were told before it was asked
    show_notes([note for note in found.notes if "older snapshots are removed" in note], "note")
    _show_left(found)
    if not found.left:
        say("Every byte was read again: nothing holds it." if found.purge else "Looked again: nothing there holds it.")
