"""The verbs that move a home: export, import."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from anima.cli.show import HomeOption, JsonOption, counted, inert, open_home, progress_bar, say, say_json, whisper
from anima.errors import BadArguments

if TYPE_CHECKING:
    from anima.backup.export import Exported
    from anima.backup.import_ import Imported

_SHOWN = 20


def add_to(app: typer.Typer) -> None:
    app.command("export")(export)
    app.command("import")(import_)


def export(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A new folder or file; - is standard output (jsonl).")
    ],
    format: Annotated[
        str,
        typer.Option("--format", metavar="F", help="markdown, jsonl, or a dialect: anima openclaw nexo carapace …"),
    ] = "markdown",
    no_sessions: Annotated[bool, typer.Option("--no-sessions", help="Leave the transcripts out.")] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Write everything in the home to a folder of Markdown, to lines of JSON, or as another system keeps it.

    \b
    anima export ~/aria-copy
    anima export aria.jsonl --format jsonl
    anima export ~/workspace --format openclaw --no-sessions
    """
    to_stdout = target == "-"
    if to_stdout and json:
        raise BadArguments("standard output cannot hold both the export and --json", hint="name a file")
    with open_home(home) as opened, progress_bar("exporting") as step:
        done = opened.export(
            sys.stdout.buffer if to_stdout else target, format=format, sessions=not no_sessions, progress=step
        )
    if json:
        say_json(done)
    else:
        _show_exported(done, whisper if to_stdout else say)


def _show_exported(done: Exported, tell: Callable[[str], None]) -> None:
    tell(
        f"{inert(done.target)}: {counted(done.documents, 'document')}, {counted(done.sessions, 'transcript')}, "
        f"{counted(done.files, 'other file')}, {done.bytes:,} bytes."
    )
    tell("It holds everything, private parts too; keep it as you keep the home.")
    if done.moved:
        stand = "file stands where {} keeps it" if len(done.moved) == 1 else "files stand where {} keeps them"
        tell(f"{len(done.moved):,} {stand.format(done.format)}; .anima-export.json leads back.")
    _list("left out", [f"{path}: {why}" for path, why in done.left_out])


def import_(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A folder, or a file of an export as jsonl.")],
    format: Annotated[
        str, typer.Option("--format", metavar="F", help="auto, markdown, jsonl, or the dialect the folder is.")
    ] = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would come in.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Write over documents that differ; undo takes it back.")
    ] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Take in an export, or a folder of another system. Nothing that stands here is overwritten unless you say so.

    \b
    anima import ~/old-workspace --dry-run
    anima import aria.jsonl
    anima import ~/old-workspace --replace
    """
    with open_home(home) as opened, progress_bar("importing") as step:
        done = opened.import_from(
            os.path.expanduser(source), format=format, dry_run=dry_run, replace=replace, progress=step
        )
    if json:
        say_json(done)
    else:
        _show_imported(done, source)


def _show_imported(done: Imported, source: str) -> None:
    would = "Would come in" if done.dry_run else "Came in"
    say(
        f"{would}: {counted(len(done.copied), 'document')}, {counted(len(done.sessions), 'transcript')}, "
        f"{counted(len(done.files), 'other file')}. Already here: {len(done.present):,}."
    )
    for path in (*done.copied, *done.sessions, *done.files) if done.dry_run else ():
        say(f"  {inert(path)}")
    if done.replaced:
        verb = "Would be replaced" if done.dry_run else "Replaced"
        say(f"{verb}: {', '.join(map(inert, done.replaced[:_SHOWN]))}{' …' if len(done.replaced) > _SHOWN else ''}")
    if done.changes:
        one, last = len(done.changes) == 1, done.changes[-1]
        named = ", ".join(done.changes[:_SHOWN]) + (" …" if len(done.changes) > _SHOWN else "")
        say(
            f"Change {last}; anima undo {last} takes it back."
            if one
            else f"Changes {named}; anima undo {last} takes the last of them back."
        )
    if done.differs:
        _list("differs", done.differs)
        whisper("Those stand here with another text, and were left as they are; --replace writes documents over.")
    if done.doubtful:
        _list("look at", [f"{path}: {why}" for path, why in done.doubtful])
        whisper("Those lines look like an attack or a secret, and what you import is trusted as your own words are.")
    _list("forgotten", [f"{path}: {counted(lines, 'line')} left out" for path, lines in done.forgotten])
    _list("left out", [f"{path}: {why}" for path, why in done.left_out])


def _list(what: str, lines: Sequence[str]) -> None:
    for line in lines[:_SHOWN]:
        whisper(f"{what}: {inert(line, lines=False)}")
    if len(lines) > _SHOWN:
        whisper(f"… and {len(lines) - _SHOWN:,} more; --json lists them all")
