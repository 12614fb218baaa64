"""Commands that look back and take back: history diff undo restore why audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anima.cli.command import Number, Reply, argument, command, documents, flag, option, place_of, unless_dry
from anima.cli.show import console, counted, inert, say, show_diff, table, whisper
from anima.errors import BadArguments

if TYPE_CHECKING:
    from anima import Home


@command(
    argument("path", default=None, help="One document; default all.", offers=documents),
    option("--limit", type=Number(int, 1, 100_000), default=20, help="How many, newest first."),
)
def history(home: Home, path: str | None, limit: int) -> Reply:
    """What was changed when and by whom, newest first.

    \b
    anima history
    anima history MEMORY.md --limit 5
    """
    revisions = home.past.log(path, limit=limit)
    problem = home.past.problem

    def show() -> None:
        if problem:
            whisper(f"anima: history is broken: {inert(problem)}")
        if not revisions:
            return say("Nothing was written yet.")
        drawn = table(*(short := ("revision", "when (UTC)", "who", "change")), "what", whole=short)
        for each in revisions:
            when = f"{each.time:%Y-%m-%d %H:%M}"
            drawn.add_row(each.id[:8], when, each.actor, each.batch or "", inert(each.subject))
        console().print(drawn)
        more = "; --limit shows more" if len(revisions) == limit else ""
        return say(f"{counted(len(revisions), 'revision')}{more}")

    return Reply(revisions, show)


@command(
    argument("revision", help="A revision from anima history."),
    argument("other", default=None, help="A second one: show what lies between."),
    option("--path", help="Only one document."),
)
def diff(home: Home, revision: str, other: str | None, path: str | None) -> Reply:
    """What a revision changed.

    \b
    anima diff a3f9c2
    anima diff a3f9c2 7be01d --path MEMORY.md
    """
    found = home.past.diff(revision, other, path=path)
    return Reply({"diff": found}, lambda: show_diff(found))


@command(
    argument("change", default=None, help="A change's number from anima history; default the newest."),
    option("--session", help="Everything one session wrote."),
    flag("--sweep", help="What the last night of dreaming changed."),
    flag("--dry-run", help="Only show what would be taken back."),
    owners=unless_dry,
)
def undo(home: Home, change: str | None, session: str | None, sweep: bool, dry_run: bool) -> Reply:
    """Take back a change, or all of a session. Undoing is a change too, so it can be undone.

    \b
    anima undo                    the newest change
    anima undo 18                 change 18, also when other lines changed since
    anima undo --session 22a7449d-76a8-4224-9d2c-9c948af0105e --dry-run
    anima undo --sweep            the last night of dreaming
    """
    change = home.past.last_sweep() if sweep else change
    found = home.past.show_undo(change=change, session=session)
    receipts = () if dry_run else home.undo(change, session=session, content=found.content)

    def show() -> None:
        show_diff(found.diff)
        verb = "would take back" if dry_run else "took back"
        say(f"{verb} change {', '.join(found.ids)}" if found.files else "there was nothing left of it to take back")

    return Reply({"undone": found.ids, "diff": found.diff, "receipts": receipts}, show)


@command(
    argument("path", help="A document, also one that was deleted.", offers=documents),
    option("--at", required=True, help="A revision, a day or a moment: a3f9c2, 2026-05-08, 2026-05-08T14:30"),
    owners=unless_dry,
)
def restore(home: Home, path: str, at: str) -> Reply:
    """Write a document as it stood then.

    \b
    anima restore MEMORY.md --at 2026-05-08
    """
    receipt = home.past.restore(path, at=at)
    return Reply(receipt, f"restored: {inert(receipt.path.text)} as of {inert(at)}")


@command(argument("place", help="A line, as PATH:LINE.", offers=lambda home: [f"{each}:" for each in documents(home)]))
def why(home: Home, place: str) -> Reply:
    """Say where a line came from. It tells who wrote it, when, after reading what, and who approved it.

    \b
    anima why MEMORY.md:14
    anima why MEMORY.md#L14      as search cites it
    """
    path, line = place_of(place)
    if line is None:
        raise BadArguments("say which line: anima why MEMORY.md:14")
    found = home.past.why(path, line)
    change, revision = found.source.change, (found.revision or "none")[:8]
    told = inert(found.sentence) + (f" (change {change}, revision {revision})" if change else "")
    return Reply(found, f"{found.path}:{found.line}  {inert(found.text)}\n{told}")


@command(
    argument("action", default="verify", help="`verify` checks the ledger; `log` lists its changes."),
    option("--limit", type=Number(), default=30, help="For log: how many, newest first."),
)
def audit(home: Home, action: str, limit: int) -> Reply:
    """Check that the ledger is whole, or list what it says. Exit 1 when it is not.

    \b
    anima audit verify
    anima audit log --limit 10
    """
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
