"""Verbs about conversations: sessions session stats call."""

from __future__ import annotations

import json as js
import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anima.cli.show import (
    AgentOption,
    HomeOption,
    JsonOption,
    ScopeOption,
    SenderOption,
    bar,
    console,
    inert,
    open_home,
    say,
    say_json,
    whisper,
)
from anima.errors import BadArguments, NoSuchSession
from anima.model import Scope

if TYPE_CHECKING:
    from anima.home import Home
    from anima.sessions.listing import Listed
    from anima.sessions.replay import Damage, Turn
    from anima.upkeep.numbers import Figures

_POLL = 0.3
_STEPS = " ▁▂▃▄▅▆▇█"
_ROLES = {"user": "bold cyan", "assistant": "bold green", "tool": "yellow", "system": "dim"}


def add_to(app: typer.Typer) -> None:
    for verb in (sessions, session, stats, call):
        app.command(verb.__name__)(verb)


def sessions(
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many, the latest first.")] = 20,
    find: Annotated[str | None, typer.Option("--find", metavar="WORDS", help="Search what was said instead.")] = None,
    home: HomeOption = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """List conversations, the latest first, or find what was said in them.

    \b
    anima sessions
    anima sessions --find "boat licence"
    """
    with open_home(home, agent=agent) as opened:
        _check_kept(opened)
        if find is not None:
            _found(opened, find, limit, json)
            return
        rows = opened.transcripts.rows(opened.transcripts.owner())
        shown, total, zone, now = list(rows[:limit]), len(rows), opened.reading.zone(), opened.reading.now()
    if json:
        say_json({"sessions": shown, "total": total})
    elif not shown:
        say("No conversation was recorded yet. A session's first line begins its transcript.")
    else:
        _table(shown, zone, now)
        if total > len(shown):
            say(f"… and {total - len(shown):,} more; --limit shows them")


def _check_kept(home: Home) -> None:
    if not home.config.sessions.dir:
        raise NoSuchSession("no transcripts are kept here", hint="sessions.dir in anima.toml is empty")


def _table(rows: list[Listed], zone: Any, now: datetime) -> None:
    from rich.table import Table

    cells = [
        (
            row.id[:8],
            _when(row.updated_at, zone, now),
            f"{row.entries:,}" + ("" if row.closed else " •"),
            row.scope,
            inert(row.source_plugin or "–", lines=False),
            inert(row.persona or "–", lines=False),
            inert(row.summary, lines=False),
        )
        for row in rows
    ]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(("session", "when", "turns", "scope", "channel", "soul", "about")):
        width = max(len(column), *(len(cell[number]) for cell in cells)) if column != "about" else None
        table.add_column(
            column, no_wrap=True, overflow="ellipsis", min_width=width, justify="right" if column == "turns" else "left"
        )
    for cell in cells:
        table.add_row(*cell)
    console().print(table)
    if not all(row.closed for row in rows):
        say("• still open, or ended without a word")


def _when(moment: str, zone: Any, now: datetime) -> str:
    from anima.sessions.replay import time_of

    found = time_of(moment)
    if found is None:
        return "–"
    local = found.astimezone(zone)
    if local.date() == now.date():
        return f"today {local:%H:%M}"
    return f"{local:%a %d %b %H:%M}" if local.year == now.year else f"{local:%Y-%m-%d}"


def _found(home: Home, words: str, limit: int, json: bool) -> None:
    answer = home.transcripts.search(words, home.transcripts.owner(), limit=limit, max_chars=200)
    if json:
        say_json(answer)
        return
    from rich.text import Text

    for hit in answer.hits:
        head = Text(f"{hit.session_id[:8]}  {hit.timestamp[:16].replace('T', ' ')}  ", style="dim")
        head.append(hit.role, style=_ROLES.get(hit.role, ""))
        console().print(head)
        say(f"  {inert(hit.preview, lines=False)}")
    if not answer.hits:
        say("Nothing that was said holds these words.")
    for note in answer.notes:
        whisper(f"anima: {inert(note)}")


def session(
    id: Annotated[
        str, typer.Argument(metavar="ID", help="A session, or the beginning of its id; `last` for the latest.")
    ],
    follow: Annotated[bool, typer.Option("--follow", help="Go on while it goes on, until Ctrl-C.")] = False,
    last: Annotated[int | None, typer.Option(min=1, help="Only the last so many turns.")] = None,
    home: HomeOption = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Replay a conversation as it was recorded.

    \b
    anima session last
    anima session 22a7449d --last 20
    anima session 22a7449d --follow
    """
    if json and follow:
        raise BadArguments("--json prints one value, and --follow has no end; leave one of them out")
    with open_home(home, agent=agent) as opened:
        _check_kept(opened)
        row = _meant(opened, id)
        if json:
            page = opened.transcripts.read(
                row.id, opened.transcripts.owner(), limit=last or row.entries + 1, newest=True
            )
            say_json({"header": page.header, "entries": page.entries, "total": page.total, "damaged": page.damaged})
            return
        _header(opened, row)
        at = _replayed(opened, row, last)
        while follow:
            time.sleep(_POLL)
            at = _went_on(opened, row, at)


def _meant(home: Home, id: str) -> Listed:
    rows = home.transcripts.rows(home.transcripts.owner())
    if id == "last" and rows:
        return rows[0]
    found = [row for row in rows if row.id.startswith(id)]
    exact = [row for row in found if row.id == id]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if not found:
        raise NoSuchSession(f"{inert(id)}: there is no such session", hint="anima sessions lists them")
    raise BadArguments(f"{inert(id)} could be {', '.join(row.id[:12] for row in found[:5])}; write more of it")


def _header(home: Home, row: Listed) -> None:
    told = [row.id, row.scope, row.source_plugin, f"sender {row.sender_id}" if row.sender_id else "", row.persona or ""]
    console().print(inert("  ".join(part for part in told if part), lines=False), style="dim", soft_wrap=True)


def _replayed(home: Home, row: Listed, last: int | None) -> int:
    """Shows a session page by page, so that a long one needs no room; gives the number of the next entry."""
    at = max(0, row.entries - last) if last else 0
    return _went_on(home, row, at)


def _went_on(home: Home, row: Listed, at: int) -> int:
    asker = home.transcripts.owner()
    while True:
        page = home.transcripts.read(row.id, asker, start=at, limit=200)
        for turn in page.entries:
            _say_turn(home, turn)
        for each in page.damaged:
            if not each.torn or at == 0:
                _say_damage(each)
        done = len(page.entries) + sum(not each.torn for each in page.damaged)
        at += done
        if not done or at >= page.total:
            return at


def _say_turn(home: Home, turn: Turn) -> None:
    from rich.text import Text

    moment = turn.time
    clock = f"{moment.astimezone(home.reading.zone()):%H:%M:%S}" if moment else "        "
    head = Text(f"{clock} ", style="dim")
    head.append(f"{turn.role:<9} ", style=_ROLES.get(turn.role, ""))
    head.append(inert(turn.content))
    console().print(head, soft_wrap=True)


def _say_damage(damage: Damage) -> None:
    whisper(f"anima: line {damage.line} cannot be read: {damage.why}")


def stats(
    days: Annotated[int, typer.Option(min=1, max=3_650, help="How many days to draw.")] = 30,
    home: HomeOption = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """How the agent lives: conversations, recalls and memory over time.

    \b
    anima stats
    anima stats --days 90
    """
    from anima.upkeep.numbers import figures

    with open_home(home, agent=agent) as opened:
        found = figures(opened, days=days)
    if json:
        say_json(found)
    else:
        _draw(found)


def _draw(found: Figures) -> None:
    days = found.days
    say(f"{days[0].day:%d %b} to {days[-1].day:%d %b %Y}")
    for name, values, total in (
        ("sessions", [day.sessions for day in days], f"{found.sessions:,} in all, {found.entries:,} turns"),
        ("recalls", [day.recalls for day in days], f"{found.recalls:,} in all"),
        ("writes", [day.writes for day in days], f"{found.writes:,} in all"),
        (
            "memory",
            [day.memories for day in days],
            f"{counted(found.memories, 'line')}, {found.memory_chars:,} characters",
        ),
    ):
        say(f"{name:9} {spark(values)}  {total}")
    if found.dreams.last:
        told = f"{counted(found.dreams.nights, 'night')}, {counted(found.dreams.kept, 'line')} kept"
        say(f"{'dreams':9} {told}, last on {found.dreams.last:%d %b %Y}")
    if found.personas:
        most = found.personas[0][1]
        for soul, count in found.personas:
            say(f"{'soul':9} {bar(count, most)} {inert(soul, lines=False)}: {counted(count, 'session')}")


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def spark(values: list[int], width: int = 60) -> str:
    """A row of small bars, oldest first; more values than fit are drawn together, the largest of each group."""
    size = -(-len(values) // width)
    groups = [max(values[at : at + size]) for at in range(0, len(values), size)]
    most = max(groups, default=0)
    return "".join(_STEPS[0 if not value else max(1, round(8 * value / most))] for value in groups).replace(" ", "·")


def call(
    tool: Annotated[str | None, typer.Argument(help="A tool's name; without one, all are listed.")] = None,
    arguments: Annotated[str, typer.Argument(help="Its arguments as a JSON object.")] = "{}",
    scope: ScopeOption = Scope.MAIN,
    sender: SenderOption = None,
    taint: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="As if the session had read this: web, tool, skill, peer."),
    ] = None,
    home: HomeOption = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Call one of the agent's tools, as the agent would, and print what it answers.

    \b
    anima call
    anima call who_am_i
    anima call memory_search '{"query": "which phone does Ana use"}'
    anima call memory_write '{"content": "Ana moved to Lisbon"}' --taint web
    """
    with open_home(home, agent=agent) as opened, opened.session(scope=scope, sender=sender, channel="cli") as held:
        for origin in taint or ():
            held.taint(origin)
        if tool is None:
            _list_tools(held, json)
            return
        say_json(held.call(tool, _object(arguments)))


def _object(text: str) -> dict[str, Any]:
    try:
        found = js.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"the arguments are not JSON: {error}", hint='write \'{"query": "…"}\'') from None
    if not isinstance(found, dict):
        raise BadArguments("the arguments are a JSON object", hint='write \'{"query": "…"}\'')
    return found


def _list_tools(held: Any, json: bool) -> None:
    if json:
        say_json([{"name": tool.name, "about": tool.about, "schema": tool.schema()} for tool in held.tools()])
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("tool", "arguments", "what it is for"):
        table.add_column(column, overflow="fold")
    for tool in held.tools():
        given = ", ".join(a.name if a.required else f"{a.name}?" for a in tool.arguments)
        table.add_row(tool.name, given or "–", tool.about.partition(". ")[0].rstrip(".") + ".")
    console().print(table)
    say("anima call --json shows each whole, with its schema")
