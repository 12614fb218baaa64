"""Verbs that look back and take back: history diff undo restore why audit."""

from __future__ import annotations

from typing import Annotated

import typer

from anima.cli.diffs import show_diff
from anima.cli.show import HomeOption, JsonOption, console, inert, open_home, place_of, say, say_json, whisper
from anima.errors import BadArguments


def add_to(app: typer.Typer) -> None:
    for verb in (history, diff, undo, restore, why, audit):
        app.command(verb.__name__)(verb)


def history(
    path: Annotated[str | None, typer.Argument(help="One document; default all.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many, newest first.")] = 20,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """What was changed when and by whom, newest first.

    \b
    anima history
    anima history MEMORY.md --limit 5
    """
    with open_home(home) as opened:
        revisions = opened.history(path, limit=limit)
        problem = opened.books.history_problem if opened.books.begun else None
    if json:
        say_json(revisions)
        return
    if problem:
        whisper(f"anima: history is broken: {inert(problem)}")
    if not revisions:
        say("Nothing was written yet.")
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("revision", "when (UTC)", "who", "change", "what"):
        table.add_column(column, overflow="fold")
    for found in revisions:
        table.add_row(
            found.id[:8], f"{found.time:%Y-%m-%d %H:%M}", found.actor, found.batch or "", inert(found.subject)
        )
    console().print(table)


def diff(
    revision: Annotated[str, typer.Argument(help="A revision from anima history.")],
    other: Annotated[str | None, typer.Argument(help="A second one: show what lies between.")] = None,
    path: Annotated[str | None, typer.Option("--path", help="Only one document.")] = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """What a revision changed.

    \b
    anima diff a3f9c2
    anima diff a3f9c2 7be01d --path MEMORY.md
    """
    with open_home(home) as opened:
        found = opened.diff(revision, other, path=path)
    if json:
        say_json({"diff": found})
    else:
        show_diff(found)


def undo(
    change: Annotated[
        str | None, typer.Argument(help="A change's number from anima history; default the newest.")
    ] = None,
    session: Annotated[str | None, typer.Option(help="Everything one session wrote.")] = None,
    sweep: Annotated[bool, typer.Option("--sweep", help="What the last night of dreaming changed.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be taken back.")] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Take back a change, or all of a session. Undoing is a change too, so it can be undone.

    \b
    anima undo                    the newest change
    anima undo 18                 change 18, also when other lines changed since
    anima undo --session 22a7449d-76a8-4224-9d2c-9c948af0105e --dry-run
    anima undo --sweep            the last night of dreaming
    """
    with open_home(home) as opened:
        change = opened.keeping.last_sweep() if sweep else change
        shown = opened.keeping.show_undo(change=change, session=session)
        receipts = () if dry_run else opened.undo(change, session=session, content=shown.content)
    if json:
        say_json({"undone": shown.ids, "diff": shown.diff, "receipts": receipts})
        return
    show_diff(shown.diff)
    verb = "would take back" if dry_run else "took back"
    say(f"{verb} change {', '.join(shown.ids)}" if shown.files else "there was nothing left of it to take back")


def restore(
    path: Annotated[str, typer.Argument(help="A document, also one that was deleted.")],
    at: Annotated[
        str, typer.Option("--at", help="A revision, a day or a moment: a3f9c2, 2026-05-08, 2026-05-08T14:30")
    ],
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Write a document as it stood then.

    \b
    anima restore MEMORY.md --at 2026-05-08
    """
    with open_home(home) as opened:
        receipt = opened.restore(path, at=at)
    if json:
        say_json(receipt)
    else:
        say(f"restored: {inert(receipt.path.text)} as of {inert(at)}")


def why(
    place: Annotated[str, typer.Argument(help="A line, as PATH:LINE.")],
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Where a line came from: who wrote it, when, after reading what, and who approved it.

    \b
    anima why MEMORY.md:14
    """
    path, line = place_of(place)
    if line is None:
        raise BadArguments("say which line: anima why MEMORY.md:14")
    with open_home(home) as opened:
        found = opened.why(path, line)
    if json:
        say_json(found)
        return
    say(f"{found.path}:{found.line}  {inert(found.text)}")
    say(
        inert(found.sentence)
        + (f" (change {found.source.change}, revision {(found.revision or 'none')[:8]})" if found.source.change else "")
    )


def audit(
    action: Annotated[str, typer.Argument(help="`verify` checks the ledger; `log` lists its changes.")] = "verify",
    limit: Annotated[int, typer.Option(help="For log: how many, newest first.")] = 30,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Check that the ledger is whole, or list what it says. Exit 1 when it is not.

    \b
    anima audit verify
    anima audit log --limit 10
    """
    if action not in ("verify", "log"):
        raise BadArguments(f"audit does verify or log, not {action!r}")
    with open_home(home) as opened:
        if action == "log":
            entries = opened.keeping.changes(limit=limit)
            if json:
                say_json(entries)
            for entry in () if json else entries:
                say(
                    f"{entry.id:>6}  {entry.time:%Y-%m-%d %H:%M}  {entry.actor:8} {entry.what:8} {inert(', '.join(entry.paths))}"
                )
            return
        found = opened.audit()
    if json:
        renewed = found.renewed.time if found.renewed else None
        say_json(
            {"ok": found.ok, "records": found.records, "fault": found.fault, "torn": found.torn, "renewed": renewed}
        )
    elif found.ok:
        say(
            f"The ledger is whole: {found.records:,} records"
            + (f", and a torn last line of {found.torn} bytes" if found.torn else "")
            + "."
        )
        if found.renewed:
            say(
                f"A repair began it anew on {found.renewed.time:%Y-%m-%d %H:%M} UTC: what stands before record {found.renewed.n:,} "
                "was carried over from a damaged one, and is proven only since then."
            )
    else:
        say(f"The ledger is not whole: {found.fault.what if found.fault else 'unknown'}")
    raise typer.Exit(0 if found.ok else 1)
