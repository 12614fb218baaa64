"""Commands that find: search about index."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from anima.cli.command import HOME, SCOPE, SENDER, SET, Number, Reply, command, day_of, flag, option, words
from anima.cli.show import bar, console, inert, plain, progress_bar, say, shortened, show_notes
from anima.errors import BadArguments

if TYPE_CHECKING:
    from anima import Home


@command(
    words("query", help="What to look for, in plain words."),
    SCOPE,
    SENDER,
    option("--limit", type=Number(int, 1, 1_000), default=6, help="How many hits."),
    option("--at", help="When the question is put; “two weeks ago” counts from there."),
    option("--fusion", default="context", help="context (ours), rrf or weighted."),
    option("--legs", default="both", help="both, words or meaning."),
    option("--min-score", type=Number(float, 0, 1), default=0.0, help="Leave out weaker hits."),
    flag("--explain", help="Show what each part of the score contributed."),
    HOME,
    SET,
)
def search(home: Home, query: str, at: str | None, explain: bool, json: bool, **asked: Any) -> Reply:
    """Find what was written down, with the lines it stands on.

    \b
    anima search which phone does Ana use
    anima search "what did we decide two weeks ago" --explain
    """
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

    out = console()
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
    show_notes(answer.notes)


def _snippet(text: str, limit: int = 160) -> str:
    return shortened(" ".join(inert(text).split()), limit)


@command(
    flag("--rebuild", help="From nothing."),
    flag("--backfill", help="Make vectors that are missing, because the embedder was away or came later."),
    flag("--watch", help="Then keep it in step while files change, until Ctrl-C."),
    HOME,
    SET,
)
def index(home: Home, rebuild: bool, backfill: bool, watch: bool, json: bool) -> Reply | None:
    """Bring the search index up to date. Searching does so too; this shows the work.

    \b
    anima index
    anima index --rebuild
    anima index --backfill      the embedder is back, or new
    anima index --watch
    """
    if watch and json:
        raise BadArguments("--json prints one value, and --watch has no end; leave one of them out")
    with progress_bar("indexing") as progress:
        report = home.index(rebuild=rebuild, progress=progress)
        made = home.backfill(progress) if backfill else 0

    def show() -> None:
        read = f"{report.put:,} read ({report.units:,} units, {report.embedded:,} new vectors)"
        say(f"{report.documents:,} documents; {read}, {report.dropped:,} dropped, {report.seconds:.1f} s")
        if backfill:
            say(f"{made:,} missing vectors made")
        show_notes(report.notes)

    if not watch:
        return Reply({**asdict(report), "backfilled": made}, show)
    show()
    say(f"watching {home.name}; Ctrl-C ends it")
    for seen in home.index.watch():
        say(f"{seen.put} read, {seen.dropped} dropped, {seen.seconds * 1000:.0f} ms")
    return None


@command(
    words("name", help="A person, place or thing."),
    option("--limit", type=Number(int, 1, 1_000), default=12, help="How many mentions."),
    option("--at", metavar="DATE", help="What held on that date, such as 2026-02-03."),
    SCOPE,
)
def about(home: Home, name: str, limit: int, at: str | None, scope: str) -> Reply:
    """What the home says about somebody or something: its page, mentions over time, who is named with it.

    \b
    anima about Ana
    anima about Ana --at 2026-02-03
    """
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
