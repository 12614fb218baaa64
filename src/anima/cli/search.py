"""Commands that find, search about index; and that look back and take back: history diff undo restore why audit."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from anima.cli import show
from anima.cli.command import Reply, command, day_of, unless_dry
from anima.cli.show import bar, counted, inert, plain, say, shortened, whisper
from anima.errors import BadArguments, HomeError, NotFound, meant
from anima.model import DocPath

if TYPE_CHECKING:
    from anima import Home, Revision

_MARKS = re.compile(r"\A[-*+ ]*(\[\d\d:\d\d\] )?")  # what a line of a list or of a log begins with


@command()
def search(home: Home, query: str, at: str | None, explain: bool, json: bool, **asked: Any) -> Reply:
    try:
        moment = datetime.fromisoformat(at) if at else None
    except ValueError:
        raise BadArguments(f"--at {at}: write a day or a moment, such as 2026-05-08 or 2026-05-08T14:30") from None
    answer = home.search(query, at=moment, explain=explain or json, **asked)
    more = ("citation", "is_hybrid", "from_fts", "from_vector")
    hits = [plain(hit) | {name: getattr(hit, name) for name in more} for hit in answer] if json else []
    return Reply({"hits": hits, "notes": answer.notes}, lambda: _show_hits(answer, query, explain))


def _show_hits(answer: Any, query: str, explain: bool) -> None:
    from rich.text import Text

    out = show.console()
    words = [re.escape(word) for word in re.findall(r"\w{3,}", query)]
    for hit in answer:
        head = Text(f"{bar(round(hit.score * 100), 100, 8)} {hit.score:.2f}  ", style="dim")
        head.append(inert(hit.citation), style="bold cyan")
        head.append(f"  {hit.date}" if hit.date and str(hit.date) not in hit.path.text else "", style="dim")
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
        hint = meant(path, [entry.path for entry in home.list_all()], "anima files lists what is there")
        raise NotFound(f"{path}: there is no such document, and there never was", hint=hint)
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
            drawn.add_row(each.id[:8], f"{each.time:%Y-%m-%d %H:%M}", each.actor, each.batch or "", inert(what))
        show.console().print(drawn)
        more = "; --limit shows more" if len(revisions) == limit else ""
        return say(f"{counted(len(revisions), 'revision')}{more}")

    return Reply(revisions, shown)


def _happened(home: Home, revision: Revision) -> str:
    """What a revision did, in words: the line that it changed, rather than why; `--json` has the reason."""
    if revision.paths and all("unreviewed/" in path for path in revision.paths):
        return "noted for your review" if revision.actor == "agent" else "what was noted was reviewed"
    verb, about = revision.subject.partition(" ")[0], revision.subject.partition(": ")[0]
    if verb != "undo" and not (revision.reason and verb in ("write", "note", "approve", "keep")):
        return revision.subject
    try:
        lines = home.past.diff(revision.id).split("\n")
    except HomeError:  # an earlier revision cannot be read
        return revision.subject
    changed: dict[str, list[str]] = {"+": [], "-": []}
    for line in lines:
        text = _MARKS.sub("", line[1:].strip())
        if line[:1] in changed and line[:3] not in ("+++", "---") and text and text[0] != "#":
            changed[line[0]].append(shortened(text, 60))
    came, went = changed["+"][:1], changed["-"][:1]
    if verb != "undo":
        return f"{about}: {came[0]}" if came else revision.subject
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
    return Reply(receipt, f"restored: {inert(receipt.path.text)} as of {inert(at)}")


@command()
def why(home: Home, place: str) -> Reply:
    path, _, line = place.replace("#L", ":").rpartition(":")
    is_line = bool(path) and line.isascii() and line.isdigit()
    document = DocPath.parse(path if is_line else place)
    if not is_line:
        raise BadArguments("say which line: anima why MEMORY.md:14")
    found = home.past.why(document, int(line))
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
        told += (
            f"\nA repair began it anew on {renewed.time:%Y-%m-%d %H:%M} UTC: what stands before record {renewed.n:,} "
            "was carried over from a damaged one, and is proven only since then."
        )
    value = {"ok": found.ok, "records": found.records, "fault": found.fault, "torn": found.torn}
    return Reply(value | {"renewed": renewed.time if renewed else None}, told, 0 if found.ok else 1)
