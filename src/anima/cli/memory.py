"""Commands that write, as the owner: remember note write append edit move delete."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from anima.cli.command import Reply, agents_hand, argument, command, documents, is_owner, option, words
from anima.cli.show import edited, flat, inert, need_person, say, show_diff, whisper
from anima.errors import BadArguments, HomeError
from anima.model import DocPath, Kind

if TYPE_CHECKING:
    from anima import Home, Receipt

REASON = option("--reason", default="", help="Why, for the history.")
BASE = option("--base", help="Only if the document still has this digest (anima read --json shows it).")


@command(
    words("fact", help="One fact, in one line."),
    option("--section", help="The heading to put it under, made when it is missing; else where it fits best."),
    REASON,
)
def remember(home: Home, fact: str, section: str | None, reason: str, json: bool, as_owner: bool) -> Reply:
    """Keep one fact in MEMORY.md. A line that says so already is told, and nothing is written.

    \b
    anima remember Ana uses a Samsung, not an iPhone
    anima remember "Luis is allergic to walnuts" --section Health
    """
    if is_owner(as_owner):
        return _asked_about(home, home.remember(fact, section=section, reason=reason), can_ask=not json)
    return _wished(home, target="memory", content=fact, section=section, reason=reason)


@command(words("content", help="What happened."), REASON)
def note(home: Home, content: str, reason: str, json: bool, as_owner: bool) -> Reply:
    """Put one line into today's log, in your timezone.

    \b
    anima note "Reviewed PR #42, approved"
    """
    if is_owner(as_owner):
        return _asked_about(home, home.note(content, reason=reason), can_ask=not json)
    return _wished(home, target="daily_log", content=content, reason=reason)


@command(
    argument("path", help="A document ending in .md.", offers=documents),
    argument("text", default=None, help="The whole new text. Default: standard input."),
    BASE,
    REASON,
)
def write(home: Home, path: str, text: str | None, base: str | None, reason: str, as_owner: bool) -> Reply:
    """Replace a document, or make it.

    \b
    anima write notes/plan.md "# Plan"
    anima write TOOLS.md --as-owner < tools.md
    """
    if is_owner(as_owner):
        return _written(home.write(path, _given(text), base=base, reason=reason))
    return _submitted(home, path, Kind.WRITE, _given(text), base=base, reason=reason)


@command(
    argument("path", help="A document ending in .md.", offers=documents),
    argument("text", default=None, help="What to add at the end. Default: standard input."),
    REASON,
)
def append(home: Home, path: str, text: str | None, reason: str, as_owner: bool) -> Reply:
    """Add lines at the end of a document.

    \b
    anima append notes/boat.md "- The tiller needs a second coat."
    """
    if is_owner(as_owner):
        return _written(home.append(path, _given(text), reason=reason))
    return _wished(home, target=path, content=_given(text), reason=reason)


@command(
    argument("path", help="A document.", offers=documents),
    argument("old", default=None, help="The exact text to replace; without it, your editor opens the document."),
    argument("new", default=None, help="What to put in its place."),
    option("--all", "replace_all", default=False, help="Replace every occurrence."),
    REASON,
)
def edit(
    home: Home, path: str, old: str | None, new: str | None, replace_all: bool, reason: str, as_owner: bool
) -> Reply:
    """Open a document in your editor (VISUAL or EDITOR), or put one text in the place of another.

    \b
    anima edit MEMORY.md       your editor; then it shows the difference, and asks
    anima edit USER.md "Timezone: UTC" "Timezone: America/Bogota"
    """
    if old is None:
        return _edited(home, path, reason)
    if new is None:
        raise BadArguments("say what to put in its place", hint="anima edit PATH OLD NEW")
    if is_owner(as_owner):
        return _written(home.edit(path, old, new, replace_all=replace_all, reason=reason))
    return _wished(home, target=path, old_string=old, new_string=new, replace_all=replace_all, reason=reason)


def _edited(home: Home, path: str, reason: str) -> Reply:
    """What becomes of a document in the owner's editor. A text that cannot be written is kept in a file, and told."""
    need_person("an editor needs a person at a terminal", hint="anima edit PATH OLD NEW needs none")
    before = home.read(path)
    text = edited(before.text)
    if text is None:
        return Reply(None, "nothing was changed")
    from anima import unified

    show_diff(unified(before.text, text, before=before.path.text, after=before.path.text))
    if not click.confirm(f"Write {flat(before.path.text)}?", default=True, err=True):
        return Reply(None, "nothing was written")
    try:
        return _written(home.write(before.path, text, base=before.digest, reason=reason))
    except HomeError:
        import tempfile

        with tempfile.NamedTemporaryFile("w", suffix=".md", delete=False, encoding="utf-8", newline="") as kept:
            kept.write(text)
        whisper(f"your text is in {kept.name}")
        raise


@command(
    argument("path", help="A document.", offers=documents),
    argument("to", help="Where it goes; nothing may stand there."),
    REASON,
)
def move(home: Home, path: str, to: str, reason: str, as_owner: bool) -> Reply:
    """Give a document another path. Its lines keep their provenance.

    \b
    anima move notes/boat.md memory/topics/boat.md
    """
    if is_owner(as_owner):
        return _written(home.move(path, to, reason=reason))
    return _submitted(home, path, Kind.MOVE, to=DocPath.parse(to), reason=reason)


@command(argument("path", help="A document.", offers=documents), BASE, REASON)
def delete(home: Home, path: str, base: str | None, reason: str, as_owner: bool) -> Reply:
    """Delete a document. `anima undo` brings it back.

    \b
    anima delete notes/old.md --reason "finished"
    """
    if is_owner(as_owner):
        return _written(home.delete(path, base=base, reason=reason))
    return _submitted(home, path, Kind.DELETE, base=base, reason=reason)


def _given(text: str | None) -> str:
    """The text of the command line, or of standard input, which `-` names too."""
    if text is not None and text != "-":
        return text
    if sys.stdin.isatty():
        whisper("reading the text from this terminal; end with Ctrl-D")
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadArguments(f"standard input is not UTF-8 text (byte {error.start + 1}); nothing was written") from None


def _written(receipt: Receipt) -> Reply:
    return Reply(receipt, lambda: show_receipts([receipt]), 5 if receipt.status == "refused" else 0)


def _asked_about(home: Home, receipt: Receipt, *, can_ask: bool) -> Reply:
    """A line in which the scan saw a secret, or that is as long as a document, is asked about at a terminal."""
    if not (can_ask and receipt.findings and receipt.change and is_owner(False)):
        return _written(receipt)
    show_receipts([receipt])
    if click.confirm("Keep it?", default=True, err=True):
        return Reply(receipt, ())
    home.undo(receipt.change)
    return Reply(receipt, "taken back; only history has it now, and anima forget WORDS --purge takes it out there too")


def _wished(home: Home, **asked: Any) -> Reply:
    """What becomes of it where nobody is at a terminal: an agent asks for it, by its own tool."""
    with agents_hand(home) as session:
        answer = session.call("memory_write", {name: value for name, value in asked.items() if value is not None})
    return _as_agent(answer, answer["status"], answer["path"], answer.get("reason"))


def _submitted(home: Home, path: str, kind: Kind, text: str = "", base: str | None = None, **more: Any) -> Reply:
    """The same for what no tool of the agent's does: a whole document, a move, a deletion."""
    with agents_hand(home) as session:
        place = home.read(path).path if home.exists(path) else DocPath.parse(path)
        receipt = session.submit(replace(session.wish(place, kind, text, base=base), **more))
    return _as_agent(receipt, receipt.status, receipt.path.text, receipt.reason)


def _as_agent(answer: Any, status: str, path: str, reason: str | None) -> Reply:
    def show() -> None:
        say(f"{status}: {inert(path)}" + (f" ({inert(reason)})" if reason else ""))
        whisper("nobody is at a terminal, so an agent asked for this; if you are the owner: --as-owner")

    return Reply(answer, show, 5 if status == "refused" else 0)


def show_receipts(receipts: Sequence[Receipt]) -> None:
    for receipt in receipts:
        if receipt.status == "written":
            tail = f", change {receipt.change}" if receipt.change else ", which it said already"
            under = f" under {inert(receipt.section)}" if receipt.section else ""
            say(f"written: {inert(receipt.path.text)}{under}{tail}")
        elif receipt.status == "pending":
            say(f"waits for you: {receipt.proposal} ({inert(receipt.reason or '')}); anima review shows it")
        elif receipt.status == "noted":
            say(f"noted for {inert(receipt.path.text)} ({inert(receipt.reason or '')}); anima review keeps or drops it")
        else:
            whisper(f"not written: {inert(receipt.reason or '')} (rule {receipt.rule})")
        for finding in receipt.findings:
            whisper(f"  line {finding.line}: {inert(finding.message)}")
        if receipt.way_back:
            whisper(f"  {receipt.way_back}")
