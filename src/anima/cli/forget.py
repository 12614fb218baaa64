"""The verb that forgets: forget."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from anima.cli.show import HomeOption, JsonOption, inert, open_home, say, say_json, whisper
from anima.errors import Refused

if TYPE_CHECKING:
    from anima.forget.forget import Forgetting

_SHOWN = 60
_NAMES = {
    "line": "lines",
    "dreamed": "dreamed lines",
    "layer": "lines of other people's layers",
    "proposal": "waiting changes",
    "transcript": "lines of transcripts",
    "torn": "pieces put aside after a crash",
    "history": "revisions of history",
    "file": "files that are no documents",
    "snapshot": "snapshots",
}


def add_to(app: typer.Typer) -> None:
    app.command("forget")(forget)


def forget(
    text: Annotated[
        list[str] | None, typer.Option(help="These words, wherever they stand; may be given again.")
    ] = None,
    pattern: Annotated[str | None, typer.Option(help="What fits a regular expression.")] = None,
    line: Annotated[str | None, typer.Option(metavar="PATH:LINE", help="One line, and whatever says the same.")] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="What was said and written in a session.")] = None,
    sender: Annotated[str | None, typer.Option(metavar="ID", help="What a person said, and their layer.")] = None,
    origin: Annotated[str | None, typer.Option(help="What came from there: web, tool, skill, peer, …")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="What was written since a day or moment.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="What was written until a day or moment.")] = None,
    purge: Annotated[bool, typer.Option("--purge", help="Also from history, other files and free pages.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would go, and why.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Forget something wherever it stands, so that it stays forgotten. Exit 1 when something still holds it.

    \b
    anima forget --text "555-0199" --dry-run
    anima forget --text "555-0199" --purge
    anima forget --session 22a7449d --since 2026-05-08
    """
    asked = {
        "text": text or None,
        "pattern": pattern,
        "line": line,
        "session": session,
        "sender": sender,
        "origin": origin,
        "since": since,
        "until": until,
    }
    with open_home(home) as opened:
        found = opened.forget(**asked, purge=purge, dry_run=True)  # type: ignore[arg-type]
        if not json:
            _show(found)
        if not dry_run:
            _ask(found, yes)
            found = opened.forget(**asked, purge=purge)  # type: ignore[arg-type]
    if json:
        say_json({**_fields(found), "counts": found.counts})
    elif not dry_run:
        _show_done(found)
    raise typer.Exit(1 if found.done and found.left else 0)


def _fields(found: Forgetting) -> dict[str, object]:
    return {name: getattr(found, name) for name in found.__dataclass_fields__}


def _ask(found: Forgetting, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused(
            "forgetting needs a person at a terminal, or --yes; nothing was forgotten",
            rule="terminal",
            hint="--dry-run only lists what would go",
        )
    count = sum(found.counts.values())
    typer.confirm(
        f"Forget {count} thing{'' if count == 1 else 's'}? History cannot bring back what is purged."
        if found.purge
        else f"Forget {count} thing{'' if count == 1 else 's'}?",
        abort=True,
        err=True,
    )


def _show(found: Forgetting) -> None:
    if not found.touched:
        say("Nothing holds it.")
    for each in found.touched[:_SHOWN]:
        more = f" ({each.count})" if each.count > 1 else ""
        text = f"  {inert(each.text, lines=False)}" if each.text else ""
        say(f"{each.place:10} {inert(each.where)}{more}  {inert(each.why)}{text}")
    if len(found.touched) > _SHOWN:
        say(f"… and {len(found.touched) - _SHOWN:,} more; --json lists them all")
    _show_left(found)


def _show_left(found: Forgetting) -> None:
    for where, why in found.left:
        whisper(f"left: {inert(where)}: {inert(why)}")
    for note in found.notes:
        whisper(f"note: {inert(note)}")


def _show_done(found: Forgetting) -> None:
    told = ", ".join(f"{count:,} {_NAMES.get(place, place)}" for place, count in found.counts.items())
    say(f"Forgotten: {told or 'nothing held it'}." + (f" Change {found.change}." if found.change else ""))
    for note in found.notes:
        if "older snapshots are removed" in note:  # the others were told before it was asked
            whisper(f"note: {inert(note)}")
    if found.left:
        for where, why in found.left:
            whisper(f"left: {inert(where)}: {inert(why)}")
    else:
        say("Every byte was read again: nothing holds it." if found.purge else "Looked again: nothing there holds it.")
