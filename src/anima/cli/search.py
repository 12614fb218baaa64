"""Commands that find, search about index; that look back and take back: history diff undo restore why audit; and about
conversations: sessions stats call.
"""

from __future__ import annotations

import json as js
import re
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime, tzinfo
from typing import TYPE_CHECKING, Any

from anima.cli import show
from anima.cli.command import Reply, command, day_of, is_owner, listed_as, need_trust, unless_dry
from anima.cli.show import bar, called, console, counted, flat, inert, plain, say, say_json, shortened, table, whisper
from anima.errors import BadArguments, HomeError, NoSuchSession
from anima.model import Origin, cited

if TYPE_CHECKING:
    from anima import Home, Listed, Revision, Tool

APPROVED = "approved"  # the rule of the gate that carries out the owner's yes, whoever wished for it


@command()
def search(home: Home, query: str, at: str | None, explain: bool, json: bool, **asked: Any) -> Reply:
    try:
        moment = datetime.fromisoformat(at) if at else None
    except ValueError:
        raise BadArguments(f"--at {at}: write a day or a moment, such as 2026-05-08 or 2026-05-08T14:30") from None
    answer = home.search(query, at=moment, explain=explain or json, **asked)
    more = "citation is_hybrid from_fts from_vector"
    hits = [plain(hit) | show.picked(hit, more) for hit in answer] if json else []
    return Reply({"hits": hits, "notes": answer.notes}, lambda: _show_hits(answer, query, explain))


def _show_hits(answer: Any, query: str, explain: bool) -> None:
    from rich.text import Text

    out = show.console()
    words = [re.escape(word) for word in re.findall(r"\w{3,}", query)]
    for hit in answer:
        head = Text(f"{bar(round(hit.score * 100), 100, 8)} {hit.score:.2f}  ", style="dim")
        head.append(inert(hit.citation), style="bold cyan")
        head.append(f"  {hit.date}" if hit.date and str(hit.date) not in hit.path.text else "", style="dim")
        if hit.fts_rank is None and hit.vector_rank is None:  # found for what stands around it alone
            head.append("  found for the lines around it", style="dim")
        out.print(head, soft_wrap=True)
        snippet = Text("  " + _snippet(hit.text, 400))
        if words:
            snippet.highlight_regex(re.compile("|".join(words), re.IGNORECASE), style="bold yellow")
        out.print(snippet, soft_wrap=True)
        if explain and hit.why:
            parts = "  ".join(f"{name} {value:.3f}" for name, value in hit.why.items())
            ranks = f"(words rank {hit.fts_rank or '–'}, meaning rank {hit.vector_rank or '–'})"
            out.print(f"  {parts}  {ranks}", style="dim", soft_wrap=True)
    show.notes(answer.notes)


def _snippet(text: str, limit: int = 160) -> str:
    return shortened(" ".join(inert(text).split()), limit)


@command()
def index(home: Home, rebuild: bool, backfill: bool, watch: bool, json: bool) -> Reply | None:
    if watch and json:
        raise BadArguments("--json prints one value, and --watch has no end; leave one of them out")
    with show.progress_bar("indexing") as progress:
        report = home.index(rebuild=rebuild, progress=progress)
        made = home.backfill(progress) if backfill else 0

    def shown() -> None:
        read = f"{report.put:,} read ({report.units:,} units, {report.embedded:,} new vectors)"
        say(f"{report.documents:,} documents; {read}, {report.dropped:,} dropped, {report.seconds:.1f} s")
        if backfill:
            say(f"{made:,} missing vectors made")
        show.notes(report.notes)

    if not watch:
        return Reply({**asdict(report), "backfilled": made}, shown)
    shown()
    say(f"watching {home.name}; Ctrl-C ends it")
    for seen in home.index.watch():
        say(f"{seen.put} read, {seen.dropped} dropped, {seen.seconds * 1000:.0f} ms")
    return None


@command()
def about(home: Home, name: str, limit: int, at: str | None, scope: str) -> Reply:
    day = day_of(at, "--at")
    found = home.index.about(name, home.site.listener(scope), limit=limit, at=day)
    return Reply(found, lambda: _show_about(found, name, day))


def _show_about(found: Any, name: str, day: date | None) -> None:
    if found.page:
        say(inert(found.page.text.rstrip()))
        say(f"  ({found.page.path})")
    for fact in found.facts:
        one = f"since {fact.since}" if fact.since else f"until {fact.until}" if fact.until else "undated"
        span = f"{fact.since} to {fact.until}" if fact.since and fact.until else one
        say(f"{span:<25}  {_snippet(fact.text)}  ({fact.path}#L{fact.line})")
    if day and not found.facts:
        say(f"No line says what held of {inert(name)} on {day}.")
    if found.linked:
        say("named with: " + ", ".join(f"{inert(other)} ({count})" for other, count in found.linked))
    for mention in found.mentions:
        say(f"{mention.day or '          '}  {_snippet(mention.text)}  ({mention.path}#L{mention.line})")
    if not found.mentions and not found.page and not day:
        say(f"Nothing here names {inert(name)}.")
    elif found.total > len(found.mentions):
        say(f"… and {found.total - len(found.mentions)} more; --limit shows them")


# -- looking back, and taking back -------------------------------------------------------------------------------------


@command()
def history(home: Home, path: str | None, limit: int, json: bool) -> Reply:
    revisions = home.past.log(path, limit=limit)
    if path and not revisions and not home.exists(path):
        show.document(home, path)
    problem = home.past.problem
    with show.patient("reading what was changed"):
        told = [] if json else [_happened(home, each) for each in revisions]

    def shown() -> None:
        if problem:
            whisper(f"anima: history is broken: {inert(problem)}")
        if not revisions:
            return say(f"{inert(path)}: nothing was written there yet." if path else "Nothing was written yet.")
        drawn = show.table(*(short := ("revision", "when (UTC)", "who", "change")), "what", whole=short)
        for each, what in zip(revisions, told, strict=True):
            who = "owner" if each.rule == APPROVED else each.actor
            numbers = (each.batch or "").split()
            change = f"{numbers[0]}…{numbers[-1]}" if len(numbers) > 1 else each.batch or ""
            drawn.add_row(each.id[:8], f"{each.time:%Y-%m-%d %H:%M}", who, change, inert(what))
        show.console().print(drawn)
        more = "; --limit shows more" if len(revisions) == limit else ""
        return say(f"{counted(len(revisions), 'revision')}{more}")

    return Reply(revisions, shown)


def _happened(home: Home, revision: Revision) -> str:
    """What a revision did, in words: the line that it changed, rather than why; `--json` has the reason."""
    if revision.paths and all("unreviewed/" in path for path in revision.paths):
        return "noted for your review" if revision.actor == "agent" else "what was noted was reviewed"
    about, colon, words = revision.subject.partition(": ")
    about += f", as the {revision.actor} proposed" if revision.rule == APPROVED else ""
    verb, subject = about.partition(" ")[0], f"{about}{colon}{words}"
    if verb != "undo" and not (revision.reason and verb in ("write", "note", "approve", "keep")):
        return subject
    try:
        kept = next((path for path in revision.paths if "unreviewed/" not in path), None)  # not the list of what waits
        lines = home.past.diff(revision.id, path=kept).split("\n")
    except HomeError:  # an earlier revision cannot be read
        return subject
    changed: dict[str, list[str]] = {"+": [], "-": []}
    for line in lines:
        text = re.sub(r"\A[-*+ ]*(\[\d\d:\d\d\] )?", "", line[1:].strip())  # without the signs of a list or a log
        if line[:1] in changed and line[:3] not in ("+++", "---") and text and text[0] != "#":
            changed[line[0]].append(shortened(home.sessions.redact(text)[0], 60))
    came, went = changed["+"][:1], changed["-"][:1]
    if verb != "undo":
        return f"{about}: {came[0]}" if came else subject
    told = [*(f"brought back “{line}”" for line in came), *(f"took out “{line}”" for line in went)]
    return f"{about}: {' and '.join(told)}" if told else about


@command()
def diff(home: Home, revision: str, other: str | None, path: str | None) -> Reply:
    found = home.past.diff(revision, other, path=path)
    return Reply({"diff": found}, lambda: show.diff(found))


@command(owners=unless_dry)
def undo(home: Home, change: str | None, session: str | None, sweep: bool, dry_run: bool) -> Reply:
    change = home.past.last_sweep() if sweep else change
    found = home.past.show_undo(change=change, session=session)
    receipts = () if dry_run else home.undo(change, session=session, content=found.content)

    def shown() -> None:
        show.diff(found.diff)
        verb = "would take back" if dry_run else "took back"
        say(f"{verb} change {', '.join(found.ids)}" if found.files else "there was nothing left of it to take back")

    return Reply({"undone": found.ids, "diff": found.diff, "receipts": receipts}, shown)


@command(owners=unless_dry)
def restore(home: Home, path: str, at: str) -> Reply:
    receipt = home.past.restore(path, at=at)
    changed = home.past.diff(receipt.revision) if receipt.revision else ""
    return Reply(receipt, lambda: show.diff(f"{changed}restored: {receipt.path.text} as of {at}"))


@command()
def why(home: Home, place: str, line: str | None) -> Reply:
    if (named := cited(f"{place}:{line}" if line else place)) is None:
        raise BadArguments(f"say which line, as {flat(show.document(home, place).path.text)}:14")
    found = home.past.why(*named[:2])
    change, revision = found.source.change, (found.revision or "none")[:8]
    told = inert(found.sentence) + (f" (change {change}, revision {revision})" if change else "")
    return Reply(found, f"{found.path}:{found.line}  {inert(found.text)}\n{told}")


@command()
def audit(home: Home, action: str, limit: int) -> Reply:
    if action not in ("verify", "log"):
        raise BadArguments(f"audit does verify or log, not {action!r}")
    if action == "log":
        entries = home.past.changes(limit=limit)
        lines = [
            f"{each.id:>6}  {each.time:%Y-%m-%d %H:%M}  {each.actor:8} {each.what:8} {inert(', '.join(each.paths))}"
            for each in entries
        ]
        return Reply(entries, lines)
    found = home.past.audit()
    renewed, torn = found.renewed, f", and a torn last line of {found.torn} bytes" if found.torn else ""
    told = f"The ledger is whole: {found.records:,} records{torn}."
    if not found.ok:
        told = f"The ledger is not whole: {found.fault.what if found.fault else 'unknown'}"
    elif renewed:
        told += f"\n{show.table_of('search')['audit']['renewed'].format(renewed)}"
    value = {"ok": found.ok, "records": found.records, "fault": found.fault, "torn": found.torn}
    return Reply(value | {"renewed": renewed.time if renewed else None}, told, 0 if found.ok else 1)


# -- conversations ------------------------------------------------------------------------------------------------------------

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
    names = "session when turns scope channel soul about".split()
    drawn = table(*names, right=("turns",), whole=names)
    for number, column in enumerate(drawn.columns):
        width = max(len(names[number]), *(len(cell[number]) for cell in cells))
        column.overflow, column.min_width = "ellipsis", width if names[number] != "about" else None
    for cell in cells:
        drawn.add_row(*cell)
    console().print(drawn)
    if not all(row.closed for row in rows):
        say("• not ended: under way, or left so that it may go on")


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
        return Reply(show.picked(page, "header entries total damaged"), "")
    told = [row.id, row.scope, row.source_plugin, f"sender {row.sender_id}" if row.sender_id else "", row.persona or ""]
    console().print(flat("  ".join(part for part in told if part)), style="dim", soft_wrap=True)
    if row.entries > limit:
        say(f"… {row.entries - limit:,} turns before these; --limit shows more")
    at = _replay(home, row.id, max(0, row.entries - limit))
    while follow:
        time.sleep(0.3)
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
    return "".join("·▁▂▃▄▅▆▇█"[0 if not value else max(1, round(8 * value / most))] for value in groups)


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
        say(f"{called('call')} --json shows each whole, with its schema")

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
