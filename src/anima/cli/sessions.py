"""Commands about conversations: sessions stats call."""

from __future__ import annotations

import json as js
import time
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any

from anima.cli import show
from anima.cli.command import Reply, command, is_owner, listed_as, need_trust
from anima.cli.show import bar, console, counted, flat, inert, say, say_json, table, whisper
from anima.errors import BadArguments, NoSuchSession
from anima.model import Origin

if TYPE_CHECKING:
    from anima import Home, Listed, Tool

_POLL = 0.3
_STEPS = "·▁▂▃▄▅▆▇█"
_ROLES = {"user": "bold cyan", "assistant": "bold green", "tool": "yellow", "system": "dim"}


@command(owners=lambda given: given["clear"])
def sessions(
    home: Home, id: str | None, limit: int, find: str | None, follow: bool, clear: bool, json: bool
) -> Reply | None:
    if not home.sessions.kept:
        raise NoSuchSession("no transcripts are kept here", hint="sessions.dir in anima.toml is empty")
    if id is not None:
        return _one(home, id, limit, follow=follow, clear=clear, json=json)
    if follow or clear:
        raise BadArguments("say which conversation", hint="anima sessions lists them")
    if find is not None:
        answer = home.sessions.find(find, limit=limit, max_chars=200)
        return Reply(answer, lambda: _show_found(answer))
    rows = home.sessions.list(limit=limit)
    zone, now = home.site.zone(), home.site.now()

    def shown() -> None:
        if not rows:
            return say("No conversation was recorded yet. A session's first line begins its transcript.")
        _show_rows(rows, zone, now)
        total = counted(rows.total, "conversation")
        return say(total if len(rows) >= rows.total else f"{len(rows):,} of {total}; --limit shows more")

    return Reply({"sessions": rows, "total": rows.total}, shown)


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
            flat(row.summary or ("(calls of tools alone)" if row.entries else "(nothing was said)")),
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


def _show_found(answer: Any) -> None:
    from rich.text import Text

    for hit in answer.hits:
        head = Text(f"{hit.session_id[:8]}  {hit.timestamp[:16].replace('T', ' ')}  ", style="dim")
        console().print(head.append(hit.role, style=_ROLES.get(hit.role, "")))
        say(f"  {flat(hit.preview)}")
    if not answer.hits:
        say("Nothing that was said holds these words.")
    show.notes(answer.notes)


def _one(home: Home, id: str, limit: int, *, follow: bool, clear: bool, json: bool) -> Reply | None:
    """Replays a conversation as it was recorded, or vouches for what it has read."""
    if json and follow:
        raise BadArguments("--json prints one value, and --follow has no end; leave one of them out")
    row = listed_as(home.sessions.list(), id)
    if clear:
        home.sessions.clear(row.id)
        return Reply({"cleared": row.id}, f"cleared: {row.id[:8]}; what it had read from outside no longer counts")
    if json:
        page = home.sessions.read(row.id, limit=limit, newest=True)
        value = {"header": page.header, "entries": page.entries, "total": page.total, "damaged": page.damaged}
        return Reply(value, "")
    told = [row.id, row.scope, row.source_plugin, f"sender {row.sender_id}" if row.sender_id else "", row.persona or ""]
    console().print(flat("  ".join(part for part in told if part)), style="dim", soft_wrap=True)
    if row.entries > limit:
        say(f"… {row.entries - limit:,} turns before these; --limit shows more")
    at = _replay(home, row.id, max(0, row.entries - limit))
    while follow:
        time.sleep(_POLL)
        at = _replay(home, row.id, at)
    return None


def _replay(home: Home, id: str, at: int) -> int:
    """Shows a session from an entry on, page by page, so that a long one needs no room; gives the next entry's number."""
    from rich.text import Text

    while True:
        page = home.sessions.read(id, start=at, limit=200)
        for turn in page.entries:
            local = turn.time.astimezone(home.site.zone()) if turn.time else None
            head = Text(f"{local:%H:%M:%S} " if local else " " * 9, style="dim")
            head.append(f"{turn.role:<9} ", style=_ROLES.get(turn.role, ""))
            console().print(head.append(inert(turn.text)), soft_wrap=True)
        for each in page.damaged:
            if not each.torn or at == 0:
                whisper(f"anima: line {each.line} cannot be read: {each.why}")
        done = len(page.entries) + sum(not each.torn for each in page.damaged)
        at += done
        if not done or at >= page.total:
            return at


@command()
def stats(home: Home, days: int) -> Reply:
    found = home.upkeep.numbers(days=days)
    drawn, dreams = found.days, found.dreams
    memory = f"{counted(found.memories, 'line')}, {found.memory_chars:,} characters"
    rows = (
        ("sessions", [day.sessions for day in drawn], f"{found.sessions:,} in all, {found.entries:,} turns"),
        ("recalls", [day.recalls for day in drawn], f"{found.recalls:,} in all"),
        ("writes", [day.writes for day in drawn], f"{found.writes:,} in all"),
        ("memory", [day.memories for day in drawn], memory),
    )
    lines = [f"{drawn[0].day:%d %b} to {drawn[-1].day:%d %b %Y}"]
    lines += [f"{name:9} {spark(values)}  {total}" for name, values, total in rows]
    if dreams.last:
        told = f"{counted(dreams.nights, 'night')}, {counted(dreams.kept, 'line')} kept"
        lines.append(f"{'dreams':9} {told}, last on {dreams.last:%d %b %Y}")
    for soul, count in found.personas:
        lines.append(f"{'soul':9} {bar(count, found.personas[0][1])} {flat(soul)}: {counted(count, 'session')}")
    return Reply(found, lines)


def spark(values: list[int], width: int = 60) -> str:
    """A row of small bars, oldest first; more values than fit are drawn together, the largest of each group."""
    size = -(-len(values) // width)
    groups = [max(values[at : at + size]) for at in range(0, len(values), size)]
    most = max(groups, default=0)
    return "".join(_STEPS[0 if not value else max(1, round(8 * value / most))] for value in groups)


@command()
def call(
    home: Home, tool: str | None, arguments: Sequence[str], read: Sequence[str], as_owner: bool, **who: Any
) -> Reply:
    if not is_owner(as_owner):
        need_trust(home)
    with home.session(**who, channel="cli" if who["sender"] is None else None) as held:
        for origin in (*read, *(() if is_owner(as_owner) else (Origin.HOST,))):
            held.taint(origin)
        if tool is not None:
            answer = held.call(tool, _named(arguments, held.tools(), tool))
            return Reply(answer, lambda: say_json(answer))
        tools = held.tools()

    def shown() -> None:
        drawn = table("tool", "arguments", "what it is for")
        for each in tools:
            given = ", ".join(a.name if a.required else f"{a.name}?" for a in each.arguments)
            drawn.add_row(each.name, given or "–", each.about.partition(". ")[0].rstrip(".") + ".")
        console().print(drawn)
        say("anima call --json shows each whole, with its schema")

    return Reply([{"name": each.name, "about": each.about, "schema": each.schema()} for each in tools], shown)


def _named(given: Sequence[str], tools: Sequence[Tool], tool: str) -> dict[str, Any]:
    """The arguments of a call: `name=value`, where what is no text in the tool's schema is JSON; or all as one object."""
    hint = 'write query=…, or one JSON object: \'{"query": "…"}\''
    meant = next((each for each in tools if each.name == tool), None)
    texts = {a.name for a in meant.arguments if a.kind == "text"} if meant else set()
    found: dict[str, Any] = {}
    for word in given if meant else ():  # a tool that is not there is what is told, whatever it was given
        name, equals, value = word.partition("=")
        named = bool(equals) and name.isidentifier()
        try:
            read: Any = value if named and name in texts else js.loads(value if named else word)
        except (ValueError, RecursionError) as error:
            raise BadArguments(f"{name if named else 'the arguments'}: this is no JSON: {error}", hint=hint) from None
        if not named and not isinstance(read, dict):
            raise BadArguments("the arguments are a JSON object", hint=hint)
        found |= {name: read} if named else read
    return found
