"""Verbs that look at what the agent is told: prompt identity persona files read."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from anima.cli.show import (
    AgentOption,
    HomeOption,
    JsonOption,
    ScopeOption,
    SenderOption,
    SetOption,
    bar,
    console,
    inert,
    open_home,
    say,
    say_json,
    whisper,
)
from anima.errors import BadArguments
from anima.model import DocPath, Runtime, Scope

if TYPE_CHECKING:
    from anima.prompt.compose import Prompt

PARTS = ("text", "stable", "volatile")
_STYLES = {"cut": "yellow", "dropped": "red", "missing": "dim", "hidden": "dim", "unreadable": "red"}


def add_to(app: typer.Typer) -> None:
    for verb in (prompt, identity, persona, files, read):
        app.command(verb.__name__)(verb)


def prompt(
    scope: ScopeOption = Scope.MAIN.value,
    sender: SenderOption = None,
    explain_: Annotated[
        bool, typer.Option("--explain", help="Show file by file what was shown, cut, missing or hidden, and why.")
    ] = False,
    part: Annotated[str, typer.Option(metavar="PART", help=f"What to print: {', '.join(PARTS)}.")] = "text",
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Named in the runtime block.")] = None,
    channel: Annotated[str | None, typer.Option(metavar="NAME", help="Named in the runtime block.")] = None,
    agent: AgentOption = None,
    home: HomeOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Print the exact system prompt for whoever is listening.

    \b
    Examples:
      anima prompt                            the owner, alone
      anima prompt --scope group --explain    what a group sees, and what it does not
      anima prompt --sender ana               for somebody who is not the owner
      anima prompt --part stable              what stays the same while memory grows
      anima prompt --set prompt.style=xml --json
    """
    if part not in PARTS:
        raise BadArguments(f"--part is {', '.join(PARTS)}, not {part!r}")
    with open_home(home, set_, agent) as opened:
        made = opened.prompt(scope=scope, sender=sender, runtime=Runtime(model=model, channel=channel))
    if json:
        say_json(
            {
                "text": made.text,
                "stable": made.stable,
                "volatile": made.volatile,
                "manifest": made.manifest,
                "scope": made.scope,
                "dialect": made.dialect,
                "persona": made.persona,
                "notes": made.notes,
            }
        )
    elif explain_:
        explain(made)
    else:
        text = getattr(made, part)
        say(inert(text) if sys.stdout.isatty() else text)
        for note in made.notes:
            whisper(f"anima: {inert(note, lines=False)}")


def explain(made: Prompt) -> None:
    """Draws a prompt's manifest: each file with its verdict, its share of the budget, and why."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("file", overflow="fold")
    table.add_column("verdict")
    table.add_column("shown", justify="right")
    table.add_column("of", justify="right")
    table.add_column("budget")
    table.add_column("why", overflow="fold", style="dim")
    for line in made.manifest:
        table.add_row(
            inert(line.path or line.role, lines=False),
            line.status,
            f"{line.chars_shown:,}",
            f"{line.chars_raw:,}",
            bar(line.chars_shown, made.limits.file, 12),
            inert(line.reason, lines=False),
            style=_STYLES.get(line.status, ""),
        )
    out = console()
    out.print(table)
    share = f"{len(made.text):,} of {made.limits.total:,} characters"
    out.print(f"{made.scope}, {made.dialect}: {share} {bar(len(made.text), made.limits.total)}", soft_wrap=True)
    worn = inert(made.persona or "none", lines=False)
    out.print(f"stable {len(made.stable):,}, volatile {len(made.volatile):,}; soul worn: {worn}", soft_wrap=True)
    for note in made.notes:
        out.print(f"! {inert(note, lines=False)}", style="yellow", soft_wrap=True)


def identity(agent: AgentOption = None, home: HomeOption = None, json: JsonOption = False) -> None:
    """Show who the agent is, and which source each field came from.

    \b
    Examples:
      anima identity
      anima identity --agent scout --json
    """
    with open_home(home, agent=agent) as opened:
        who, avatar = opened.identity(), opened.avatar()
    fields = {name: getattr(who, name) for name in ("name", "creature", "vibe", "theme", "emoji")}
    if json:
        found = {name: {"value": f.value, "source": f.source} for name, f in fields.items() if f}
        say_json({**found, "avatar": {"kind": avatar.kind, "source": avatar.source, "reason": avatar.reason}})
        return
    for name, field in fields.items():
        if field:
            say(f"{name:9} {inert(field.value, lines=False)}  ({inert(field.source, lines=False)})")
    why = f", {inert(avatar.reason, lines=False)}" if avatar.reason else ""
    say(f"avatar    {inert(avatar.source or '–', lines=False)}  ({avatar.kind}{why})")


def persona(
    log: Annotated[bool, typer.Option("--log", help="Show which soul was worn in which session.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="With --log: how many, the latest first.")] = 20,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Show which soul is worn now, and when the alternate one is.

    \b
    Examples:
      anima persona
      anima persona --log
    """
    if log:
        _persona_log(home, limit, json)
        return
    with open_home(home) as opened:
        rule, decision, now = opened.config.persona, opened.persona(), opened.reading.now()
        present = opened.exists(rule.file)
    if json:
        say_json(
            {
                "file": decision.file,
                "worn": decision.worn,
                "why": decision.why,
                "at": rule.at,
                "duration": rule.duration,
                "chance": rule.chance,
                "alternate": rule.file,
                "present": present,
            }
        )
        return
    say(f"worn now ({now:%H:%M}): {inert(decision.file, lines=False)}")
    times = [f"from {rule.at} for {rule.duration} each day"] if rule.at else []
    times += [f"by chance {rule.chance * 100:g} % of the time"] if rule.chance else []
    when = " and ".join(times) or "never (neither persona.at nor persona.chance is set)"
    say(f"{inert(rule.file, lines=False)}{'' if present else ' (there is no such file)'}: {when}")


def _persona_log(home: str | None, limit: int, json: bool) -> None:
    """What the ledger says was worn, the latest first."""
    with open_home(home) as opened:
        worn = list(opened.books.ledger.records(kinds=("persona",))) if opened.books.begun else []
        zone = opened.reading.zone()
        rows = [{"time": record.time.astimezone(zone), **record.fields} for record in worn[: -limit - 1 : -1]]
    if json:
        say_json(rows)
        return
    for row in rows:
        told = f"{row['time']:%Y-%m-%d %H:%M}  {row.get('file', 'none')}  ({row.get('scope')}, session {str(row.get('session'))[:8]})"
        say(inert(told, lines=False))
    if not rows:
        say("No conversation was recorded yet, so no soul was worn in one.")


def files(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder of the home.", show_default=False)] = "",
    depth: Annotated[int, typer.Option(metavar="N", help="How many levels, 1 to 10.")] = 2,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """List what is in the home, and what each file is.

    \b
    Examples:
      anima files
      anima files memory --depth 1
    """
    with open_home(home) as opened:
        rows = [
            (path, opened.layout.row_of(DocPath.parse(path.rstrip("/"))).role) for path in opened.tree(folder, depth)
        ]
    if json:
        say_json([{"path": path, "is_folder": path.endswith("/"), "role": role} for path, role in rows])
        return
    for path, role in rows:
        indent = "  " * path.rstrip("/").count("/")
        name = path.rstrip("/").rpartition("/")[2]
        if path.endswith("/"):
            say(f"{indent}{inert(name, lines=False)}/")
        else:
            say(f"{indent}{inert(name, lines=False):36} {role if role != 'note' else ''}".rstrip())


def read(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A document, such as memory/2026-05-08.md.")],
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Print a document as it stands.

    \b
    Examples:
      anima read MEMORY.md
      anima read memory/2026-05-08.md --json
    """
    with open_home(home) as opened:
        document = opened.read(path)
    if json:
        say_json(document)
    elif sys.stdout.isatty():
        say(inert(document.text).removesuffix("\n"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(document.text.encode("utf-8"))
