"""Verbs that write and approve, as the owner: remember note write append edit move delete pending approve deny trust."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from anima.cli.diffs import show_proposal
from anima.cli.show import HomeOption, JsonOption, inert, open_home, say, say_json, whisper
from anima.errors import BadArguments, Refused

if TYPE_CHECKING:
    from anima.home import Home
    from anima.memory.inbox import Proposal
    from anima.model import Receipt

ReasonOption = Annotated[str, typer.Option("--reason", help="Why, for the history.")]
BaseOption = Annotated[
    str | None, typer.Option("--base", help="Only if the document still has this digest (anima read --json shows it).")
]
_KEYS = "a approve · d deny · e edit, then approve · s skip · q quit"


def add_to(app: typer.Typer) -> None:
    for verb in (remember, note, write, append, edit, move, delete, pending, approve, deny, trust):
        app.command(verb.__name__)(verb)


def remember(
    fact: Annotated[str, typer.Argument(help="One fact, in one line.")],
    section: Annotated[str | None, typer.Option(help="The heading to put it under; made when it is missing.")] = None,
    reason: ReasonOption = "",
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Put one line into MEMORY.md. A line that says so already is told, and nothing is written.

    \b
    anima remember "Ana uses a Samsung, not an iPhone" --section People
    """
    with open_home(home) as opened:
        _done(opened.remember(fact, section=section, reason=reason), json)


def note(
    content: Annotated[str, typer.Argument(help="What happened.")],
    reason: ReasonOption = "",
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Put one line into today's log, in your timezone.

    \b
    anima note "Reviewed PR #42, approved"
    """
    with open_home(home) as opened:
        _done(opened.note(content, reason=reason), json)


def write(
    path: Annotated[str, typer.Argument(help="A document ending in .md.")],
    text: Annotated[str | None, typer.Argument(help="The whole new text. Default: standard input.")] = None,
    base: BaseOption = None,
    reason: ReasonOption = "",
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Replace a document, or make it.

    \b
    anima write TOOLS.md < tools.md
    anima write notes/plan.md "# Plan"
    """
    given = _input(text)
    with open_home(home) as opened:
        _done(opened.write(path, given, base=base, reason=reason), json)


def append(
    path: Annotated[str, typer.Argument(help="A document ending in .md.")],
    text: Annotated[str | None, typer.Argument(help="What to add at the end. Default: standard input.")] = None,
    reason: ReasonOption = "",
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Add lines at the end of a document.

    \b
    anima append notes/boat.md "- The tiller needs a second coat."
    """
    given = _input(text)
    with open_home(home) as opened:
        _done(opened.append(path, given, reason=reason), json)


def edit(
    path: Annotated[str, typer.Argument(help="A document.")],
    old: Annotated[str, typer.Argument(help="The exact text to replace.")],
    new: Annotated[str, typer.Argument(help="What to put in its place.")],
    replace_all: Annotated[bool, typer.Option("--all", help="Replace every occurrence.")] = False,
    reason: ReasonOption = "",
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Put one text in the place of another.

    \b
    anima edit USER.md "Timezone: UTC" "Timezone: America/Bogota"
    """
    with open_home(home) as opened:
        _done(opened.edit(path, old, new, replace_all=replace_all, reason=reason), json)


def move(
    path: Annotated[str, typer.Argument(help="A document.")],
    to: Annotated[str, typer.Argument(help="Where it goes; nothing may stand there.")],
    reason: ReasonOption = "",
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Give a document another path. Its lines keep their provenance.

    \b
    anima move notes/boat.md memory/topics/boat.md
    """
    with open_home(home) as opened:
        _done(opened.move(path, to, reason=reason), json)


def delete(
    path: Annotated[str, typer.Argument(help="A document.")],
    base: BaseOption = None,
    reason: ReasonOption = "",
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Delete a document. `anima undo` brings it back.

    \b
    anima delete notes/old.md --reason "finished"
    """
    with open_home(home) as opened:
        _done(opened.delete(path, base=base, reason=reason), json)


def _input(text: str | None) -> str:
    if text is not None:
        return text
    if sys.stdin.isatty():
        whisper("reading the text from this terminal; end with Ctrl-D")
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadArguments(f"standard input is not UTF-8 text (byte {error.start + 1}); nothing was written") from None


def _done(receipt: Receipt, json: bool) -> None:
    if json:
        say_json(receipt)
    else:
        _show(receipt)
    if receipt.status == "refused":
        raise typer.Exit(5)


def _show(receipt: Receipt) -> None:
    if receipt.status == "written":
        tail = f", change {receipt.change}" if receipt.change else ", which it said already"
        say(f"written: {inert(receipt.path.text)}{tail}")
    elif receipt.status == "pending":
        say(f"waits for you: {receipt.proposal} ({inert(receipt.reason or '')}); anima pending shows it")
    else:
        whisper(f"not written: {inert(receipt.reason or '')} (rule {receipt.rule})")
    for finding in receipt.findings:
        whisper(f"  line {finding.line}: {inert(finding.message)}")


def pending(
    session: Annotated[str | None, typer.Option(help="Only what one session proposed.")] = None,
    review: Annotated[
        bool, typer.Option("--review/--list", help="Decide one by one with a key each (the default on a terminal).")
    ] = True,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """What waits for your yes or no: the exact diff, who wants it, why, and what the scan saw.

    \b
    anima pending              look and decide, one key each
    anima pending --list       only look
    """
    with open_home(home) as opened:
        waiting = [p for p in opened.pending() if session in (None, p.session)]
        if json:
            say_json(waiting)
            return
        if not waiting:
            say("Nothing waits for you.")
            return
        interactive = review and sys.stdin.isatty() and sys.stdout.isatty()
        for number, proposal in enumerate(waiting, start=1):
            show_proposal(proposal, number, len(waiting))
            if interactive and not _decide(opened, proposal):
                return
        if not interactive:
            say("Decide with: anima approve ID, anima deny ID")


def _decide(opened: Home, proposal: Proposal) -> bool:
    """Asks for one key and does it; False to stop."""
    say(_KEYS)
    while True:
        key = typer.getchar().casefold()
        if key == "a":
            _all_shown(opened.approve(proposal.id, approver="terminal", content=proposal.content))
        elif key == "d":
            opened.deny(proposal.id)
            say("denied")
        elif key == "e":
            _edit_then_approve(opened, proposal)
        elif key == "q":
            return False
        elif key != "s":
            continue
        return True


def _edit_then_approve(opened: Home, proposal: Proposal) -> None:
    changed = _edited(proposal.changes[0].text)
    if changed == proposal.changes[0].text:
        say("left as it was; it still waits")
        return
    _all_shown(opened.approve(proposal.id, approver="terminal", content=proposal.content, text=changed))


def _edited(text: str) -> str:
    """The text after the owner's editor ran over it."""
    import os
    import shlex
    import subprocess
    import tempfile
    from pathlib import Path

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="anima-") as folder:
        file = Path(folder) / "proposal.md"
        file.write_text(text, encoding="utf-8")
        try:
            subprocess.run([*shlex.split(editor), str(file)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise BadArguments(f"the editor {editor!r} did not run ({error}); set EDITOR") from None
        return file.read_text(encoding="utf-8")


def _all_shown(receipts: tuple[Receipt, ...]) -> None:
    for receipt in receipts:
        _show(receipt)


def approve(
    proposals: Annotated[list[str] | None, typer.Argument(help="One or more ids from anima pending.")] = None,
    session: Annotated[str | None, typer.Option(help="Everything one session proposed.")] = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Say yes to waiting changes. Needs a terminal, so that no agent can say it for you.

    \b
    anima approve p16
    anima approve --session 22a7449d
    """
    _need_terminal()
    with open_home(home) as opened:
        chosen = _chosen(opened, proposals, session)
        if not json:
            for number, proposal in enumerate(chosen, start=1):
                show_proposal(proposal, number, len(chosen))
        typer.confirm(f"Write {len(chosen)} change{'s' if len(chosen) > 1 else ''}?", abort=True, err=True)
        receipts = [r for p in chosen for r in opened.approve(p.id, approver="terminal", content=p.content)]
        if json:
            say_json(receipts)
        else:
            _all_shown(tuple(receipts))


def _need_terminal() -> None:
    if not sys.stdin.isatty():
        raise Refused(
            "approving needs a person at a terminal; nothing was written",
            rule="terminal",
            hint="run it yourself in a terminal, or use the page",
        )


def _chosen(opened: Home, ids: list[str] | None, session: str | None) -> list[Proposal]:
    if not ids and not session:
        raise BadArguments("say which: ids from anima pending, or --session ID")
    found = [opened.writing.inbox.get(name, opened.clock()) for name in ids or ()]
    found += [p for p in opened.pending() if session and (p.session or "").startswith(session)]
    if not found:
        raise BadArguments(f"session {session} proposed nothing that waits")
    return found


def deny(
    proposals: Annotated[list[str] | None, typer.Argument(help="One or more ids from anima pending.")] = None,
    session: Annotated[str | None, typer.Option(help="Everything one session proposed.")] = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Say no to waiting changes. They are removed.

    \b
    anima deny p16
    """
    with open_home(home) as opened:
        ids = list(proposals or ()) + [
            p.id for p in opened.pending() if session and (p.session or "").startswith(session)
        ]
        if not ids:
            raise BadArguments("say which: ids from anima pending, or --session ID")
        for name in ids:
            opened.deny(name)
    if json:
        say_json({"denied": ids})
    else:
        say(f"denied: {', '.join(ids)}")


def trust(
    place: Annotated[str | None, typer.Argument(help="A document, or a line of it as PATH:LINE.")] = None,
    session: Annotated[str | None, typer.Option(help="Everything one session wrote.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every line of the home, as after a damaged ledger.")] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Trust lines that prompts leave out because of where they came from. Needs a terminal.

    \b
    anima trust MEMORY.md:14
    anima trust --session 22a7449d
    anima trust --all
    """
    from anima.cli.show import place_of

    _need_terminal()
    path, line = place_of(place) if place else (None, None)
    with open_home(home) as opened:
        count = opened.keeping.trust(path, line=line, session=session, every=every)
    if json:
        say_json({"trusted_lines": count})
    else:
        say(f"{count} line{'s' if count != 1 else ''} trusted now" if count else "nothing there was untrusted")
