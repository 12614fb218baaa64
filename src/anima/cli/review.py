"""The command `review`: everything that waits for the owner in one list, and their keep or drop."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from anima.cli.command import Reply, argument, command, flag, option
from anima.cli.memory import show_receipts
from anima.cli.show import console, counted, edited, flat, inert, one_key, say, show_proposal, whisper
from anima.errors import BadArguments

if TYPE_CHECKING:
    from anima import ForReview, Home, Proposal, Receipt

PAGE = 20  # noted lines that are shown at once, and that one key decides
_KEYS = "k keep · d drop · e edit, then keep · s skip · q quit"
_KEYS_OF_WISH = "f forget · d drop the wish · s skip · q quit"  # keeping it would be the opposite
_KEYS_OF_PAGE = "k keep all of these · d drop all of these · o one by one · s skip · q quit"


@command(
    argument("names", nargs=-1, default=(), help="Names from the list, or their beginnings; all when none is given."),
    flag("--keep", help="Keep what is named: it moves to where it was meant to go."),
    flag("--drop", help="Drop what is named."),
    option(
        "--all", "every", default=False, help="With --keep or --drop: every noted line in which the scan saw nothing."
    ),
    option("--reason", default="", help="With --drop: what the agent is told of a call that you say no to."),
    option("--session", help="Only what one session wanted."),
    option("--list", "only_list", default=False, help="Only look."),
    owners=lambda given: bool(given["keep"] or given["drop"]),
)
def review(
    home: Home,
    names: Sequence[str],
    keep: bool,
    drop: bool,
    every: bool,
    reason: str,
    session: str | None,
    only_list: bool,
    json: bool,
) -> Reply | None:
    """Look at what waits for you, and keep it or drop it. It is changes your agent asks for, and lines it noted after it had
    read outside text. Until you keep them, they stand in no prompt. A call of a tool from outside is made once you keep it,
    and its conversation goes on.

    \b
    anima review                    look and decide, one key each
    anima review --list             only look
    anima review --keep u97c9       keep this one
    anima review --drop --all       drop every noted line
    """
    if keep and drop:
        raise BadArguments("say --keep or --drop, not both")
    broken = [name for name in home.inbox.broken() if name in names or not (keep or drop)]
    for name in broken:
        if drop:
            home.inbox.deny(name)
        else:
            whisper(f"anima: {flat(name)} cannot be read, or was altered; anima review --drop {flat(name)} removes it")
    if drop and names and set(names) <= set(broken):
        return Reply({"dropped": broken}, f"dropped: {', '.join(broken)}")
    waiting, noted = _chosen(home, [name for name in names if name not in broken], session)
    if (keep or drop) and not names:
        if not every:
            raise BadArguments("say which: names from anima review, or --all for every noted line without findings")
        waiting, noted = [], [each for each in noted if not each.findings]
    if keep or drop:
        reply = _decided(home, waiting, noted, keep=keep, json=json, reason=reason)
        go_on_after(home, waiting)
        return reply
    if json or not (waiting or noted):
        return Reply({"asked": waiting, "noted": noted}, "Nothing waits for you.")
    if not only_list and sys.stdin.isatty() and sys.stdout.isatty():
        _walk(home, waiting, noted)
        return None
    for number, proposal in enumerate(waiting, start=1):
        show_proposal(proposal, number, len(waiting))
    show_noted(noted, 1)
    say(f"{counted(len(waiting), 'change')} and {counted(len(noted), 'noted line')}.")
    say("Decide with: anima review, or anima review --keep NAME, --drop NAME")
    return None


def _chosen(home: Home, names: Sequence[str], session: str | None) -> tuple[list[Proposal], list[ForReview]]:
    """What waits and is meant: by the beginnings of names, or of one session, or all."""
    noted = list(home.inbox.noted())
    if names:
        asked = [home.inbox.get(name) for name in names if name.startswith("p")]
        wanted = [name for name in names if not name.startswith("p")]
        for name in wanted:
            found = [each for each in noted if each.entry.id.startswith(name)]
            if len(found) != 1 or len(name) < 3:
                several = "several begin so; write more of it" if found else "anima review lists what does"
                raise BadArguments(f"nothing named {name!r} waits", hint=several)
        return asked, [each for each in noted if each.entry.id.startswith(tuple(wanted))] if wanted else []
    asked = [each for each in home.inbox.all() if (each.session or "").startswith(session or "")]
    return asked, [each for each in noted if (each.entry.session or "").startswith(session or "")]


def _decided(
    home: Home, waiting: Sequence[Proposal], noted: Sequence[ForReview], *, keep: bool, json: bool, reason: str
) -> Reply:
    names = [each.entry.id for each in noted]
    if not keep:
        for proposal in waiting:
            home.inbox.deny(proposal.id, reason=reason)
        home.inbox.drop(*names)
        gone = [*(each.id for each in waiting), *names]
        return Reply({"dropped": gone}, f"dropped: {', '.join(gone) or 'nothing'}")
    approver = "terminal" if sys.stdin.isatty() else "as-owner"  # which is not enough for identity files
    if approver == "terminal":
        for number, proposal in enumerate(() if json else waiting, start=1):
            show_proposal(proposal, number, len(waiting))
        if not json:
            show_noted(noted, 1)
        click.confirm(f"Keep {counted(len(waiting) + len(names), 'item')}?", abort=True, err=True)
    typed = {p.id: _typed(home, p) if approver == "terminal" else "" for p in waiting}
    receipts = [
        r for p in waiting for r in home.inbox.approve(p.id, approver=approver, content=p.content, typed=typed[p.id])
    ]
    receipts += home.inbox.keep(*names, approver=approver)
    return Reply(receipts, lambda: show_receipts(receipts))


# -- key by key ------------------------------------------------------------------------------------------------------------


def _walk(home: Home, waiting: Sequence[Proposal], noted: Sequence[ForReview]) -> None:
    for number, proposal in enumerate(waiting, start=1):
        show_proposal(proposal, number, len(waiting))
        keys = _KEYS_OF_WISH if proposal.forgets else _KEYS
        keys = "k yes, call it · d no · s skip · q quit" if proposal.call else keys
        if not _asked(keys, partial(_decide_change, home, proposal)):
            return
    plain = [each for each in noted if not each.findings]
    for start in range(0, len(plain), PAGE):
        page = plain[start : start + PAGE]
        show_noted(page, start + 1)
        if not _asked(_KEYS_OF_PAGE, partial(_decide_page, home, page)):
            return
    for each in (each for each in noted if each.findings):  # never among "all"
        if not _one(home, each):
            return


def _asked(keys: str, act: Callable[[str], bool | None]) -> bool:
    """Asks for one key until it means something; False to stop. `act` gives None for a key it does not know."""
    while True:
        if (key := one_key(keys)) == "q":
            return False
        if key == "s" or (done := act(key)):
            return True
        if done is False:
            return False
        keys = ""


def decided_call(home: Home, waiting: Proposal, key: str) -> bool:
    """What one key says to a call: k is a yes, d a no with a reason; False for any other."""
    if key == "k":
        home.inbox.approve(waiting.id, approver="terminal", content=waiting.content)
    elif key == "d":
        home.inbox.deny(waiting.id, reason=str(click.prompt("Why", default="", show_default=False, err=True)))
    return key in ("k", "d")


def go_on_after(home: Home, decided: Sequence[Proposal]) -> None:
    """Lets conversations go on whose calls were decided."""
    from anima.cli.talk import gone_on

    for session in dict.fromkeys(each.session for each in decided if each.call):
        gone_on(home, session or "")


def _decide_change(home: Home, proposal: Proposal, key: str) -> bool | None:
    if proposal.call:
        if is_decided := decided_call(home, proposal, key):
            go_on_after(home, [proposal])
        return is_decided or None
    if key == "d":
        home.inbox.deny(proposal.id)
        say("dropped")
        return True
    if key not in (("f",) if proposal.forgets else ("k", "e")):
        return None
    text = edited(proposal.changes[0].text) if key == "e" else None
    if key == "e" and text is None:
        say("left as it was; it still waits")
        return True
    typed, content = _typed(home, proposal), proposal.content
    try:
        show_receipts(home.inbox.approve(proposal.id, approver="terminal", content=content, text=text, typed=typed))
    except BadArguments as error:
        whisper(f"{error}; it still waits")
    return True


def _typed(home: Home, proposal: Proposal) -> str:
    """The agent's name as the owner types it, where a card is confirmed by it."""
    if not (name := home.inbox.confirmed_by(proposal)):
        return ""
    question = f"Type {inert(name)} to confirm who your agent is"
    return str(click.prompt(question, default="", show_default=False, err=True))


def _decide_page(home: Home, page: Sequence[ForReview], key: str) -> bool | None:
    names = [each.entry.id for each in page]
    if key == "k":
        _say_kept(home.inbox.keep(*names, approver="terminal"), len(names))
    elif key == "d":
        home.inbox.drop(*names)
        say(f"dropped {counted(len(names), 'line')}")
    elif key == "o":
        return all(_one(home, each) for each in page)
    return True if key in ("k", "d") else None


def _one(home: Home, waiting: ForReview) -> bool:
    show_noted([waiting], 1)
    return _asked(_KEYS, partial(_decide_line, home, waiting))


def _decide_line(home: Home, waiting: ForReview, key: str) -> bool | None:
    text = edited(waiting.entry.text) if key == "e" else None
    if key == "k" or text is not None:
        _say_kept(home.inbox.keep(waiting.entry.id, approver="terminal", text=text), 1)
    elif key == "d":
        home.inbox.drop(waiting.entry.id)
        say("dropped")
    return True if key in ("k", "d", "e") else None


def _say_kept(receipts: Sequence[Receipt], count: int) -> None:
    refused = [receipt for receipt in receipts if receipt.status != "written"]
    show_receipts(refused)
    if not refused:
        say(f"kept {counted(count, 'line')}")


def show_noted(noted: Sequence[ForReview], first: int) -> None:
    """Noted lines, whole, with where each would go and what the session had read."""
    out = console()
    for number, each in enumerate(noted, start=first):
        entry = each.entry
        section = f" under “{flat(entry.section)}”" if entry.section else ""
        recalled = f", found {counted(each.recalls, 'time')} since" if each.recalls else ""
        session = f" in session {entry.session[:8]}" if entry.session else ""
        read = f", which had read: {', '.join(sorted(entry.origins))}" if entry.origins else ""
        out.print(f"{number:>3}  {entry.id}  for {flat(entry.to.text)}{section}", style="bold", soft_wrap=True)
        out.print(f"     {entry.time[:16].replace('T', ' ')}{session}{read}{recalled}", style="dim", soft_wrap=True)
        for line in entry.text.rstrip("\n").split("\n"):
            out.print(f"     {inert(line)}", soft_wrap=True)
        for finding in each.findings:
            whisper(f"     scan: line {finding.line}: {inert(finding.message)} {inert(finding.shown)}".rstrip())
