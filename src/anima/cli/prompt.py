"""Commands that look at what the agent is told: prompt identity files read."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from anima.cli.command import (
    AGENT,
    HOME,
    SCOPE,
    SENDER,
    SET,
    Number,
    Reply,
    argument,
    command,
    documents,
    flag,
    need_trust,
    option,
)
from anima.cli.show import bar, console, flat, inert, say, show_notes, table
from anima.errors import BadArguments
from anima.model import DocPath, Runtime

if TYPE_CHECKING:
    from anima import Home, Prompt

PARTS = ("text", "stable", "volatile")
_STYLES = {"cut": "yellow", "dropped": "red", "missing": "dim", "hidden": "dim", "unreadable": "red"}


@command(
    SCOPE,
    SENDER,
    flag("--explain", help="Show file by file what was shown, cut, missing or hidden, and why."),
    option("--part", metavar="PART", default="text", help=f"What to print: {', '.join(PARTS)}."),
    option("--model", metavar="NAME", help="Named in the runtime block."),
    option("--channel", metavar="NAME", help="Named in the runtime block."),
    option("--session", metavar="ID", help="As this conversation is told it when it goes on; `last` for the latest."),
    AGENT,
    HOME,
    SET,
)
def prompt(
    home: Home,
    scope: str,
    sender: str | None,
    explain: bool,
    part: str,
    model: str | None,
    channel: str | None,
    session: str | None,
) -> Reply:
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
    if not sys.stdout.isatty():
        need_trust(home)
    if session is None:
        made = home.prompt(scope=scope, sender=sender, runtime=Runtime(model=model, channel=channel))
    else:  # what a model is told when a conversation goes on: what `chat` and `say` send, byte for byte
        from anima.agent.models import Models
        from anima.cli.sessions import listed_as

        named = listed_as(home.sessions.list(), session).id
        resumed = home.resume(named, model=model or Models.of(home).choice().name)
        resumed.leave()
        made = resumed.prompt
    fields = ("text", "stable", "volatile", "manifest", "scope", "dialect", "persona", "notes")
    value = {name: getattr(made, name) for name in fields}

    def show() -> None:
        if explain:
            return show_manifest(made)
        text = getattr(made, part)
        say(inert(text) if sys.stdout.isatty() else text)
        return show_notes(map(flat, made.notes))

    return Reply(value, show)


def show_manifest(made: Prompt) -> None:
    """Draws a prompt's manifest: each file with its verdict, its share of the budget, and why."""
    drawn = table("file", "verdict", "shown", "of", "budget", right=("shown", "of"))
    drawn.add_column("why", overflow="fold", style="dim")
    for line in made.manifest:
        drawn.add_row(
            flat(line.path or line.role),
            line.status,
            f"{line.chars_shown:,}",
            f"{line.chars_raw:,}",
            bar(line.chars_shown, made.limits.file, 12),
            flat(line.reason),
            style=_STYLES.get(line.status, ""),
        )
    out = console()
    out.print(drawn)
    share = f"{len(made.text):,} of {made.limits.total:,} characters"
    out.print(f"{made.scope}, {made.dialect}: {share} {bar(len(made.text), made.limits.total)}", soft_wrap=True)
    worn = flat(made.persona or "none")
    out.print(f"stable {len(made.stable):,}, volatile {len(made.volatile):,}; soul worn: {worn}", soft_wrap=True)
    for note in made.notes:
        out.print(f"! {flat(note)}", style="yellow", soft_wrap=True)


@command(
    flag("--worn", help="List which soul was worn in which conversation instead."),
    option("--limit", type=Number(int, 1, 1_000_000), default=20, help="With --worn: how many, the latest first."),
    AGENT,
)
def identity(home: Home, worn: bool, limit: int) -> Reply:
    """Show who the agent is, which source each field came from, and which soul it wears.

    \b
    Examples:
      anima identity
      anima identity --worn
      anima identity --agent scout --json
    """
    if worn:
        rows = home.identity.worn(limit)
        told = [
            f"{row.time:%Y-%m-%d %H:%M}  {row.file or 'none'}  ({row.scope}, session {row.session[:8]})" for row in rows
        ]
        return Reply(rows, list(map(flat, told)) or "No conversation was recorded yet, so no soul was worn in one.")
    who, avatar = home.identity.resolved(), home.identity.avatar()
    known = {name: getattr(who, name) for name in ("name", "creature", "vibe", "theme", "emoji")}
    value = {name: {"value": field.value, "source": field.source} for name, field in known.items() if field}
    lines = [f"{name:9} {flat(field.value)}  ({flat(field.source)})" for name, field in known.items() if field]
    why = f", {flat(avatar.reason)}" if avatar.reason else ""
    lines.append(f"avatar    {flat(avatar.source or '–')}  ({avatar.kind}{why})")
    value["avatar"] = {"kind": avatar.kind, "source": avatar.source, "reason": avatar.reason}
    soul, rest = _soul(home)
    return Reply({**value, "soul": soul}, [*lines, *rest])


def _soul(home: Home) -> tuple[dict[str, Any], list[str]]:
    """Which soul is worn now, and when the alternate one is."""
    rule, decision, present = home.config.persona, home.identity.persona(), home.exists(home.config.persona.file)
    value = {"file": decision.file, "worn": decision.worn, "why": decision.why, "at": rule.at}
    value |= {"duration": rule.duration, "chance": rule.chance, "alternate": rule.file, "present": present}
    times = [f"from {rule.at} for {rule.duration} each day"] if rule.at else []
    times += [f"by chance {rule.chance * 100:g} % of the time"] if rule.chance else []
    when = " and ".join(times) or "never (neither persona.at nor persona.chance is set)"
    return value, [
        f"soul      {flat(decision.file)}  (worn now, at {home.site.now():%H:%M})",
        f"          {flat(rule.file)}{'' if present else ' (there is no such file)'}: {when}",
    ]


@command(
    argument("folder", metavar="FOLDER", default="", help="A folder of the home."),
    option("--depth", metavar="N", type=Number(), default=2, help="How many levels, 1 to 10."),
)
def files(home: Home, folder: str, depth: int) -> Reply:
    """List what is in the home, and what each file is.

    \b
    Examples:
      anima files
      anima files memory --depth 1
    """
    rows = [(path, home.layout.row_of(DocPath.parse(path.rstrip("/"))).role) for path in home.tree(folder, depth)]
    lines = []
    for path, role in rows:
        above, _, name = path.rstrip("/").rpartition("/")
        indent = "  " * (above.count("/") + bool(above))
        own = f"{flat(name)}/" if path.endswith("/") else f"{flat(name):36} {role if role != 'note' else ''}"
        lines.append(f"{indent}{own}".rstrip())
    return Reply([{"path": path, "is_folder": path.endswith("/"), "role": role} for path, role in rows], lines)


@command(argument("path", metavar="PATH", help="A document, such as memory/2026-05-08.md.", offers=documents))
def read(home: Home, path: str) -> Reply:
    """Print a document as it stands.

    \b
    Examples:
      anima read MEMORY.md
      anima read memory/2026-05-08.md --json
    """
    document = home.read(path)

    def show() -> None:
        if sys.stdout.isatty():
            return say(inert(document.text).removesuffix("\n"))
        sys.stdout.flush()
        sys.stdout.buffer.write(document.text.encode("utf-8"))
        return None

    return Reply(document, show)
