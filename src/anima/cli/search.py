"""Verbs that find: search index watch about."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anima.cli.show import (
    HomeOption,
    JsonOption,
    ScopeOption,
    SenderOption,
    SetOption,
    bar,
    console,
    inert,
    open_home,
    progress_bar,
    say,
    say_json,
    whisper,
)
from anima.errors import BadArguments
from anima.model import Scope

if TYPE_CHECKING:
    from datetime import date

    from anima.search.rank import Answer, Hit


def add_to(app: typer.Typer) -> None:
    for verb in (search, index, watch, about):
        app.command(verb.__name__)(verb)


def search(
    query: Annotated[str, typer.Argument(help="What to look for, in plain words.")],
    scope: ScopeOption = Scope.MAIN,
    sender: SenderOption = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="How many hits.")] = 6,
    at: Annotated[str | None, typer.Option(help="When the question is put; “two weeks ago” counts from there.")] = None,
    fusion: Annotated[str, typer.Option(help="context (ours), rrf or weighted.")] = "context",
    legs: Annotated[str, typer.Option(help="both, words or meaning.")] = "both",
    min_score: Annotated[float, typer.Option(min=0, max=1, help="Leave out weaker hits.")] = 0.0,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each part of the score contributed.")] = False,
    home: HomeOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Find what was written down, with the lines it stands on.

    \b
    anima search "which phone does Ana use"
    anima search "what did we decide two weeks ago" --explain
    """
    moment = _moment(at)
    with open_home(home, set_) as opened:
        answer = opened.search(
            query,
            scope=scope,
            sender=sender,
            limit=limit,
            at=moment,
            fusion=fusion,
            legs=legs,
            min_score=min_score,
            explain=explain or json,
        )
    if json:
        say_json({"hits": [_row(hit) for hit in answer], "notes": answer.notes})
        return
    _show(answer, query, explain)


def _moment(at: str | None) -> Any:
    from datetime import datetime

    try:
        return datetime.fromisoformat(at) if at else None
    except ValueError:
        raise BadArguments(f"--at {at}: write a day or a moment, such as 2026-05-08 or 2026-05-08T14:30") from None


def _row(hit: Hit) -> dict[str, Any]:
    from anima.cli.show import plain

    found: dict[str, Any] = plain(hit)
    return found | {
        "citation": hit.citation,
        "is_hybrid": hit.is_hybrid,
        "from_fts": hit.from_fts,
        "from_vector": hit.from_vector,
    }


def _show(answer: Answer, query: str, explain: bool) -> None:
    from rich.text import Text

    out = console()
    words = [re.escape(word) for word in re.findall(r"\w{3,}", query)]
    for hit in answer:
        head = Text(f"{bar(round(hit.score * 100), 100, 8)} {hit.score:.2f}  ", style="dim")
        head.append(inert(hit.citation), style="bold cyan")
        head.append(f"  {hit.date}" if hit.date and str(hit.date) not in hit.path.text else "", style="dim")
        out.print(head, soft_wrap=True)
        snippet = Text("  " + _snippet(hit.text))
        if words:
            snippet.highlight_regex(re.compile("|".join(words), re.IGNORECASE), style="bold yellow")
        out.print(snippet, soft_wrap=True)
        if explain and hit.why:
            parts = "  ".join(f"{name} {value:.3f}" for name, value in hit.why.items())
            out.print(
                f"  {parts}  (words rank {hit.fts_rank or '–'}, meaning rank {hit.vector_rank or '–'})",
                style="dim",
                soft_wrap=True,
            )
    for note in answer.notes:
        whisper(f"anima: {inert(note)}")


def _snippet(text: str, limit: int = 400) -> str:
    shown = " ".join(inert(text).split())
    return shown if len(shown) <= limit else shown[:limit].rsplit(" ", 1)[0] + " …"


def index(
    rebuild: Annotated[bool, typer.Option("--rebuild", help="From nothing.")] = False,
    backfill: Annotated[
        bool, typer.Option("--backfill", help="Make vectors that are missing because the embedder was away.")
    ] = False,
    home: HomeOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Bring the search index up to date. Searching does so too; this shows the work.

    \b
    anima index
    anima index --rebuild
    """
    with open_home(home, set_) as opened, progress_bar("indexing") as progress:
        report = opened.index(rebuild=rebuild, progress=progress)
        made = opened.indexing.backfill(progress) if backfill else 0
    if json:
        say_json({**_fields(report), "backfilled": made})
        return
    say(
        f"{report.documents:,} documents; {report.put:,} read ({report.units:,} units, {report.embedded:,} new vectors), "
        f"{report.dropped:,} dropped, {report.seconds:.1f} s"
    )
    for note in report.notes:
        whisper(f"anima: {inert(note)}")


def _fields(report: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(report)


def watch(home: HomeOption = None, set_: SetOption = None) -> None:
    """Keep the index in step while files change, until Ctrl-C.

    \b
    anima watch --home ~/aria
    """
    with open_home(home, set_) as opened:
        say(f"watching {opened.root}; Ctrl-C ends it")
        for report in opened.indexing.watch():
            say(f"{report.put} read, {report.dropped} dropped, {report.seconds * 1000:.0f} ms")


def about(
    name: Annotated[str, typer.Argument(help="A person, place or thing.")],
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="How many mentions.")] = 12,
    at: Annotated[
        str | None, typer.Option("--at", metavar="DATE", help="What held on that date, such as 2026-02-03.")
    ] = None,
    scope: ScopeOption = Scope.MAIN,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """What the home says about somebody or something: its page, mentions over time, who is named with it.

    \b
    anima about Ana
    anima about Ana --at 2026-02-03
    """
    from anima.search.about import look_up

    day = _date(at) if at else None
    with open_home(home) as opened:
        found = look_up(opened, name, scope=Scope.parse(scope), limit=limit, at=day)
    if json:
        say_json(found)
        return
    if found.page:
        say(inert(found.page.text.rstrip()))
        say(f"  ({found.page.path})")
    for fact in found.facts:
        say(f"{_span(fact.since, fact.until):<25}  {inert(_snippet(fact.text, 160))}  ({fact.path}#L{fact.line})")
    if day and not found.facts:
        say(f"No line says what held of {inert(name)} on {day}.")
    if found.linked:
        say("named with: " + ", ".join(f"{inert(other)} ({count})" for other, count in found.linked))
    for mention in found.mentions:
        say(f"{mention.day or '          '}  {inert(_snippet(mention.text, 160))}  ({mention.path}#L{mention.line})")
    if not found.mentions and not found.page and not day:
        say(f"Nothing here names {inert(name)}.")
    elif found.total > len(found.mentions):
        say(f"… and {found.total - len(found.mentions)} more; --limit shows them")


def _date(at: str) -> date:
    from datetime import date

    try:
        return date.fromisoformat(at)
    except ValueError:
        raise BadArguments(f"--at {at}: write a date such as 2026-02-03") from None


def _span(since: date | None, until: date | None) -> str:
    """When a fact held, as the first column of a line."""
    if since and until:
        return f"{since} to {until}"
    return f"since {since}" if since else f"until {until}" if until else "undated"
