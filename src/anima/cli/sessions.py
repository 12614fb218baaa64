"""Commands about conversations: sessions session stats call."""

from __future__ import annotations

import json as js
import time
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any

from anima.cli.command import (
    AGENT,
    HOME,
    JSON,
    SCOPE,
    SENDER,
    Number,
    Reply,
    argument,
    command,
    flag,
    is_owner,
    option,
)
from anima.cli.show import bar, console, counted, flat, inert, say, say_json, show_notes, table, whisper
from anima.errors import BadArguments, NoSuchSession
from anima.model import Origin

if TYPE_CHECKING:
    from anima import Figures, Home, Listed, Turn

_POLL = 0.3
_STEPS = "·▁▂▃▄▅▆▇█"
_ROLES = {"user": "bold cyan", "assistant": "bold green", "tool": "yellow", "system": "dim"}


@command(
    option("--limit", type=Number(int, 1, 1_000_000), default=20, help="How many, the latest first."),
    option("--find", metavar="WORDS", help="Search what was said instead."),
    HOME,
    AGENT,
    JSON,
)
def sessions(home: Home, limit: int, find: str | None) -> Reply:
    """List conversations, the latest first, or find what was said in them.

    \b
    anima sessions
    anima sessions --find "boat licence"
    """
    _need_transcripts(home)
    if find is not None:
        return _found(home, find, limit)
    shown = home.sessions.list(limit=limit)
    zone, now = home.site.zone(), home.site.now()

    def show() -> None:
        if not shown:
            return say("No conversation was recorded yet. A session's first line begins its transcript.")
        _show_rows(shown, zone, now)
        if shown.total > len(shown):
            say(f"… and {shown.total - len(shown):,} more; --limit shows them")
        return None

    return Reply({"sessions": shown, "total": shown.total}, show)


def _need_transcripts(home: Home) -> None:
    if not home.sessions.kept:
        raise NoSuchSession("no transcripts are kept here", hint="sessions.dir in anima.toml is empty")


def _show_rows(rows: Sequence[Listed], zone: tzinfo | None, now: datetime) -> None:
    from rich.table import Table

    cells = [
        (
            row.id[:8],
            _when(row.updated_at, zone, now),
            f"{row.entries:,}" + ("" if row.closed else " •"),
            row.scope,
            flat(row.source_plugin or "–"),
            flat(row.persona or "–"),
            flat(row.summary),
        )
        for row in rows
    ]
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(("session", "when", "turns", "scope", "channel", "soul", "about")):
        width = max(len(column), *(len(cell[number]) for cell in cells)) if column != "about" else None
        drawn.add_column(column, no_wrap=True, overflow="ellipsis", min_width=width)
    drawn.columns[2].justify = "right"
    for cell in cells:
        drawn.add_row(*cell)
    console().print(drawn)
    if not all(row.closed for row in rows):
        say("• still open, or ended without a word")


def _when(moment: str, zone: tzinfo | None, now: datetime) -> str:
    try:
        found = datetime.fromisoformat(moment)
        local = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(zone)
    except (ValueError, OverflowError):
        return "–"
    if local.date() == now.date():
        return f"today {local:%H:%M}"
    return f"{local:%a %d %b %H:%M}" if local.year == now.year else f"{local:%Y-%m-%d}"


def _found(home: Home, words: str, limit: int) -> Reply:
    answer = home.sessions.find(words, limit=limit, max_chars=200)

    def show() -> None:
        from rich.text import Text

        for hit in answer.hits:
            head = Text(f"{hit.session_id[:8]}  {hit.timestamp[:16].replace('T', ' ')}  ", style="dim")
            console().print(head.append(hit.role, style=_ROLES.get(hit.role, "")))
            say(f"  {flat(hit.preview)}")
        if not answer.hits:
            say("Nothing that was said holds these words.")
        show_notes(answer.notes)

    return Reply(answer, show)


@command(
    argument("id", metavar="ID", help="A session, or the beginning of its id; `last` for the latest."),
    flag("--follow", help="Go on while it goes on, until Ctrl-C."),
    option("--last", type=Number(int, 1), help="Only the last so many turns."),
    flag(
        "--clear", help="Vouch for what it has read from outside so far; it counts when the session is taken up again."
    ),
    HOME,
    AGENT,
    JSON,
    owners=lambda given: given["clear"],
)
def session(home: Home, id: str, follow: bool, last: int | None, clear: bool, json: bool) -> Reply | None:
    """Replay a conversation as it was recorded, or vouch for what it has read.

    \b
    anima session last
    anima session 22a7449d --last 20
    anima session 22a7449d --follow
    anima session 22a7449d --clear
    """
    if json and follow:
        raise BadArguments("--json prints one value, and --follow has no end; leave one of them out")
    _need_transcripts(home)
    row = _meant(home.sessions.list(), id)
    if clear:
        home.sessions.clear(row.id)
        return Reply({"cleared": row.id}, f"cleared: {row.id[:8]}; what it had read from outside no longer counts")
    if json:
        page = home.sessions.read(row.id, limit=last or row.entries + 1, newest=True)
        value = {"header": page.header, "entries": page.entries, "total": page.total, "damaged": page.damaged}
        return Reply(value, "")
    told = [row.id, row.scope, row.source_plugin, f"sender {row.sender_id}" if row.sender_id else "", row.persona or ""]
    console().print(flat("  ".join(part for part in told if part)), style="dim", soft_wrap=True)
    at = _replay(home, row.id, max(0, row.entries - last) if last else 0)
    while follow:
        time.sleep(_POLL)
        at = _replay(home, row.id, at)
    return None


def _meant(rows: Sequence[Listed], id: str) -> Listed:
    if id == "last" and rows:
        return rows[0]
    found = [row for row in rows if row.id.startswith(id)]
    exact = [row for row in found if row.id == id]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if not found:
        raise NoSuchSession(f"{inert(id)}: there is no such session", hint="anima sessions lists them")
    raise BadArguments(f"{inert(id)} could be {', '.join(row.id[:12] for row in found[:5])}; write more of it")


def _replay(home: Home, id: str, at: int) -> int:
    """Shows a session from an entry on, page by page, so that a long one needs no room; gives the next entry's number."""
    while True:
        page = home.sessions.read(id, start=at, limit=200)
        for turn in page.entries:
            _show_turn(turn, home.site.zone())
        for each in page.damaged:
            if not each.torn or at == 0:
                whisper(f"anima: line {each.line} cannot be read: {each.why}")
        done = len(page.entries) + sum(not each.torn for each in page.damaged)
        at += done
        if not done or at >= page.total:
            return at


def _show_turn(turn: Turn, zone: tzinfo | None) -> None:
    from rich.text import Text

    head = Text(f"{turn.time.astimezone(zone):%H:%M:%S} " if turn.time else " " * 9, style="dim")
    head.append(f"{turn.role:<9} ", style=_ROLES.get(turn.role, ""))
    console().print(head.append(inert(turn.text)), soft_wrap=True)


@command(option("--days", type=Number(int, 1, 3_650), default=30, help="How many days to draw."), HOME, AGENT, JSON)
def stats(home: Home, days: int) -> Reply:
    """How the agent lives: conversations, recalls and memory over time.

    \b
    anima stats
    anima stats --days 90
    """
    found = home.upkeep.numbers(days=days)
    return Reply(found, lambda: _draw(found))


def _draw(found: Figures) -> None:
    days = found.days
    say(f"{days[0].day:%d %b} to {days[-1].day:%d %b %Y}")
    memory = f"{counted(found.memories, 'line')}, {found.memory_chars:,} characters"
    for name, values, total in (
        ("sessions", [day.sessions for day in days], f"{found.sessions:,} in all, {found.entries:,} turns"),
        ("recalls", [day.recalls for day in days], f"{found.recalls:,} in all"),
        ("writes", [day.writes for day in days], f"{found.writes:,} in all"),
        ("memory", [day.memories for day in days], memory),
    ):
        say(f"{name:9} {spark(values)}  {total}")
    if found.dreams.last:
        told = f"{counted(found.dreams.nights, 'night')}, {counted(found.dreams.kept, 'line')} kept"
        say(f"{'dreams':9} {told}, last on {found.dreams.last:%d %b %Y}")
    for soul, count in found.personas:
        say(f"{'soul':9} {bar(count, found.personas[0][1])} {flat(soul)}: {counted(count, 'session')}")


def spark(values: list[int], width: int = 60) -> str:
    """A row of small bars, oldest first; more values than fit are drawn together, the largest of each group."""
    size = -(-len(values) // width)
    groups = [max(values[at : at + size]) for at in range(0, len(values), size)]
    most = max(groups, default=0)
    return "".join(_STEPS[0 if not value else max(1, round(8 * value / most))] for value in groups)


@command(
    argument("tool", default=None, help="A tool's name; without one, all are listed."),
    argument("arguments", default="{}", help="Its arguments as a JSON object."),
    SCOPE,
    SENDER,
    option("--taint", metavar="ORIGIN", multiple=True, help="As if the session had read this: web, tool, skill, peer."),
    HOME,
    AGENT,
    JSON,
)
def call(
    home: Home,
    tool: str | None,
    arguments: str,
    scope: str,
    sender: str | None,
    taint: Sequence[str],
    as_owner: bool,
) -> Reply:
    """Call one of the agent's tools, as the agent would, and print what it answers.

    \b
    anima call
    anima call who_am_i
    anima call memory_search '{"query": "which phone does Ana use"}'
    anima call memory_write '{"content": "Ana moved to Lisbon"}' --taint web
    """
    with home.session(scope=scope, sender=sender, channel="cli" if sender is None else None) as held:
        for origin in (*taint, *(() if is_owner(as_owner) else (Origin.HOST,))):
            held.taint(origin)
        if tool is not None:
            answer = held.call(tool, _object(arguments))
            return Reply(answer, lambda: say_json(answer))
        tools = held.tools()

    def show() -> None:
        drawn = table("tool", "arguments", "what it is for")
        for each in tools:
            given = ", ".join(a.name if a.required else f"{a.name}?" for a in each.arguments)
            drawn.add_row(each.name, given or "–", each.about.partition(". ")[0].rstrip(".") + ".")
        console().print(drawn)
        say("anima call --json shows each whole, with its schema")

    return Reply([{"name": each.name, "about": each.about, "schema": each.schema()} for each in tools], show)


def _object(text: str) -> dict[str, Any]:
    try:
        found = js.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"the arguments are not JSON: {error}", hint='write \'{"query": "…"}\'') from None
    if not isinstance(found, dict):
        raise BadArguments("the arguments are a JSON object", hint='write \'{"query": "…"}\'')
    return found
