"""Saying things on a terminal or as JSON: inert text, tables, diffs, progress, questions.

Promise: text from a home is printed inert; colour only on a terminal; `rich` is imported only to draw; a command that is
suggested reaches the home and the agent that were named (`called`). Not here: which command says what.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from functools import cache, partial
from pathlib import Path
from shlex import quote as quote
from typing import TYPE_CHECKING, Any

import click

from anima.errors import BadArguments, HomeError, NoSuchDocument, Refused, meant
from anima.model import DocPath, Kind, is_address

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from anima import Document, ForReview, Home, Proposal, Receipt, Remark


def plain(value: Any) -> Any:
    """A value as JSON knows it: dataclasses become objects, enums and paths text, sets lists."""
    if isinstance(value, DocPath):
        return value.text
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(plain(item) for item in value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.isoformat() if isinstance(value, datetime | date) else value


def picked(value: Any, names: str) -> dict[str, Any]:
    """Some attributes of a value, by their names with blanks between them."""
    return {name: getattr(value, name) for name in names.split()}


_UNPRINTABLE = re.compile(r"[^\x00-\x7e]")


def say_json(value: Any) -> None:
    """One JSON value. What a terminal would act on or cannot show is escaped, which changes nothing for a reader."""
    text = json.dumps(plain(value), ensure_ascii=False, indent=1)
    shown = _UNPRINTABLE.sub(lambda odd: odd[0] if odd[0].isprintable() else json.dumps(odd[0])[1:-1], text)
    sys.stdout.write(shown + "\n")


def say(text: str = "") -> None:
    sys.stdout.write(text + "\n")


def whisper(text: str) -> None:
    """A remark beside the result, on standard error."""
    sys.stderr.write(text + "\n")


def complain(error: HomeError, *, as_json: bool) -> None:
    hint = suggested(error.hint) if error.hint else None
    if as_json:
        say_json({"error": {"kind": type(error).__name__, "message": str(error), "hint": hint}})
        return
    whisper(f"anima: {flat(str(error))}")
    if hint:
        whisper(f"       {flat(hint)}")


@cache
def table_of(module: str) -> dict[str, Any]:
    """A module's commands, and its texts; read without `text`, whose import would take longer than all of this."""
    return tomllib.loads((Path(__file__).parent / "tables" / f"{module}.toml").read_text(encoding="utf-8"))


def program_name() -> str:
    """How we are started: by name where a shell would find this very program, else by its place."""
    import shutil

    here, found = os.path.abspath(sys.argv[0]), shutil.which("anima")
    is_found = found is not None and os.path.realpath(found) == os.path.realpath(here)
    return here if os.path.basename(here) == "anima" and not is_found else "anima"


def called(line: str, home: str | None = None) -> str:
    """A command as somebody types it who means this home, or else the one, and the agent, that this command line itself
    names. An address is not repeated: it may hold a password."""
    context, verb = click.get_current_context(silent=True), line.split()[0]
    given = context.params if context and home is None else {}
    home = home or given.get("home") or given.get("path" if context and context.info_name in _BY_PATH else "")
    more = f" --home {'ADDRESS' if is_address(home) else quote(home)}" if home and verb not in _ITS_OWN else ""
    more += f" --agent {quote(given['agent'])}" if given.get("agent") and verb in _OF_AN_AGENT else ""
    return flat(f"{quote(program_name())} {line}{more}")


_BY_PATH = ("open", "up", "use", "init")  # commands whose PATH is a home
_ITS_OWN = ("init", "use", "serve", "tenant", "migrate", "tour", "help", "completion")  # no home, or one they name
_OF_AN_AGENT = "chat say schedule prompt identity sessions stats call mcp".split()  # commands that take --agent
_VERBS = " ".join(" ".join(group.values()) for group in table_of("shared")["groups"].values()).replace(" ", "|")
_COMMAND = re.compile(rf'(?<![\w/])anima ((?:{_VERBS})\b(?! --home)(?: "…"| [A-Z]{{2,}}\b)*)')


def suggested(sentence: str) -> str:
    """A sentence of ours with each command in it as somebody types it."""
    return _COMMAND.sub(lambda found: called(found[1]), sentence)


def need_person(refusal: str, *, hint: str) -> None:
    """Raises Refused where nobody sits at a terminal who could be asked."""
    if not sys.stdin.isatty():
        raise Refused(refusal, rule="terminal", hint=hint)


def document(home: Home, path: str) -> Document:
    """A document for the owner: where there is none, they are told which they may have meant."""
    try:
        return home.read(path)
    except NoSuchDocument as error:
        otherwise = (error.hint or "") + ("" if path.endswith(".md") else "; anima search WORDS finds lines")
        error.hint = meant(path, [each.path for each in home.list_all()], otherwise, near=0.7)
        raise


def one_key(question: str) -> str:
    """The key that answers a question at a terminal: what was typed before it could be read is no answer to it."""
    import termios
    import tty

    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd, termios.TCSAFLUSH)
        if question:
            say(question)
        if (pressed := os.read(fd, 32)) in (b"", b"\x04"):
            raise EOFError  # the terminal has gone, or somebody says so
        return pressed.decode(errors="replace")[:1].casefold()
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def edited(text: str) -> str | None:
    """The text after the owner's editor ran over it; None where nothing was changed."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        found = click.edit(text.encode(), editor=editor, extension=".md")
        return found.decode() if found is not None and found != text.encode() else None
    except (click.ClickException, UnicodeDecodeError):
        said = f"the editor {editor} is not there, did not end well, or left what is no text; nothing was changed"
        raise BadArguments(said, hint="EDITOR names the program, such as nano") from None


@contextmanager
def patient(what: str, *, after: float = 1.0) -> Iterator[None]:
    """Says on standard error what is being done, once it takes longer than a second; nothing where no terminal is."""
    if not sys.stderr.isatty():
        yield
        return
    import threading

    remark = threading.Timer(after, whisper, [f"anima: {what} …"])
    remark.daemon = True
    remark.start()
    try:
        yield
    finally:
        remark.cancel()


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[..., None] | None]:
    """A bar on standard error, once the work takes longer than a second; none where there is no terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") in ("dumb", "unknown"):  # where nothing can go again
        yield None
        return
    import time

    from rich.progress import Progress

    started = time.monotonic()
    bars: list[Any] = []

    def step(done: int, total: int | None, now: str = what) -> None:
        if not bars and time.monotonic() - started > 1:
            bars.append(Progress(console=console(stderr=True, is_live=True), transient=True))
            bars[0].start()
            bars.append(bars[0].add_task(what, total=total))
        if bars:
            bars[0].update(bars[1], completed=done, total=total, description=now)

    try:
        yield step
    finally:
        if bars:
            bars[0].stop()


def console(*, stderr: bool = False, is_live: bool = False) -> Console:
    from rich.console import Console

    colours: Any = None if os.environ.get("NO_COLOR") else "auto"
    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=False, color_system=colours)
    if made.width < 60 and not is_live:  # a table would lose columns: a narrower terminal wraps its rows
        made.width = 60
    return made


def inert(text: str, *, kept: str = "\n\t") -> str:
    """Text that cannot move a cursor, change a colour or turn its direction: such characters are shown by number."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in kept or c.isprintable() else f"⟨U+{ord(c):04X}⟩" for c in text)


def flat(text: str) -> str:
    """Inert text that stays on its line."""
    return inert(text, kept="")


def shortened(text: str, limit: int) -> str:
    """Inert text on one line, cut between words."""
    return text if len(text) <= limit else text[:limit].rsplit(" ", 1)[0] + " …"


def counted(number: int, what: str) -> str:
    """`1 document`, `1,200 documents`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def bar(part: int, whole: int, width: int = 16) -> str:
    """A small bar such as `████░░░░`; any amount above nothing shows at least one step."""
    if whole <= 0:
        return "░" * width
    filled = min(width, max(1 if part else 0, round(width * part / whole)))
    return "█" * filled + "░" * (width - filled)


def table(*columns: str, right: Sequence[str] = (), whole: Sequence[str] = ()) -> Table:
    """An empty table without lines, whose cells are folded; those of `whole` columns never are."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        side: Any = "right" if column in right else "left"
        made.add_column(column, overflow="fold", no_wrap=column in whole, justify=side)
    return made


def listed(lines: Sequence[str], most: int, *, before: str = "", tell: Callable[[str], None] = say) -> None:
    """Says the first so many lines, inert, and how many more there are."""
    for line in lines[:most]:
        tell(f"{before}{flat(line)}")
    if len(lines) > most:
        tell(f"{'  ' if tell is say else ''}… and {len(lines) - most:,} more; --json lists them all")


def notes(given: Iterable[str], before: str = "anima") -> None:
    """Remarks that came with a result, on standard error."""
    for note in given:
        whisper(f"{before}: {suggested(inert(note))}")


SIGNS = {"fine": ("·", "dim"), "advice": ("!", "yellow"), "damage": ("✗", "bold red")}


def remarks(given: Sequence[Remark]) -> None:
    for remark in given:
        sign(*SIGNS[remark.level], remark.message, remark.do)
    if all(remark.level == "fine" for remark in given):
        console().print("All is well.")


def sign(mark: str, style: str, message: str, do: str | None = None) -> None:
    out = console()
    out.print(mark, style=style, end=" ")
    out.print(flat(message), soft_wrap=True)
    if do:
        out.print(f"  → {suggested(flat(do))}", style="dim", soft_wrap=True)


_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def diff(text: str) -> None:
    out = console()
    for line in text.removesuffix("\n").split("\n") if text else ():
        head = line.startswith(("+++", "---"))
        out.print(inert(line), style="bold" if head else _COLOURS.get(line[:1], ""), soft_wrap=True)


def proposal(asked: Proposal, number: int, total: int) -> None:
    out = console()
    tell = partial(out.print, soft_wrap=not out.is_terminal)
    first = asked.changes[0]
    what = f"call {asked.call['name']}" if asked.call else first.path.text
    what = f"forget “{asked.forgets}”" if asked.forgets else what
    out.rule(f"{asked.id}  {number} of {total}  {inert(what)}", align="left", style="dim", characters="─")
    session = f" in session {first.session[:8]}" if first.session else ""
    who = f"{first.actor}{session}{f', {first.scope}' if first.scope else ''}"
    until = f"{asked.created:%Y-%m-%d %H:%M} UTC; lapses {asked.expires:%Y-%m-%d}"
    tell(f"who    {who}, {until}")
    if first.taint:
        out.print(f"after  it read text from: {', '.join(sorted(first.taint))}", style="yellow")
    tell(f"rule   {asked.rule}: {flat(asked.why)}")
    if first.reason:
        tell(f"says   “{flat(first.reason)}”")
    for finding in asked.findings:
        seen = f"scan   line {finding.line}: {flat(finding.message)} {flat(finding.shown)}"
        tell(seen.rstrip(), style="yellow")
    last = asked.changes[-1]
    rest, gone, _ = asked.diff.rpartition(f"--- a/{last.path}\n+++ /dev/null\n")
    is_over = asked.is_first and last.kind is Kind.DELETE and gone  # the page that asked for it is ours, and long
    diff(rest if is_over else asked.diff)
    if is_over:
        out.print(f"{inert(last.path.text)}, which asked for this conversation, goes with it", style="dim")


def noted(given: Sequence[ForReview], first: int) -> None:
    """Noted lines, whole, with where each would go and what the session had read."""
    out = console()
    tell = partial(out.print, soft_wrap=not out.is_terminal)
    for number, each in enumerate(given, start=first):
        entry = each.entry
        section = f" under “{flat(entry.section)}”" if entry.section else ""
        recalled = f", found {counted(each.recalls, 'time')} since" if each.recalls else ""
        session = f" in session {flat(entry.session[:8])}" if entry.session else ""
        read = f", which had read: {', '.join(sorted(entry.origins))}" if entry.origins else ""
        tell(f"{number:>3}  {entry.id}  for {flat(entry.to.text)}{section}", style="bold")
        tell(f"     {flat(entry.time[:16].replace('T', ' '))}{session}{read}{recalled}", style="dim")
        for line in entry.text.rstrip("\n").split("\n"):
            tell(f"     {inert(line)}")
        for finding in each.findings:
            whisper(f"     scan: line {finding.line}: {inert(finding.message)} {inert(finding.shown)}".rstrip())


def receipts(given: Sequence[Receipt]) -> None:
    for receipt in given:
        why = inert(receipt.reason or "")
        if receipt.status == "written" and receipt.rule == "forget":
            say(why + (f", change {receipt.change}" if receipt.change else ""))
        elif receipt.status in ("written", "unchanged"):
            tail = f", change {receipt.change}" if receipt.change else ", which it said already"
            under = f" under {inert(receipt.section)}" if receipt.section else ""
            done = "deleted" if receipt.digest == "" else "written"
            say(f"{done}: {inert(receipt.path.text)}{under}{tail}")
            if receipt.likely:
                whisper(f"  not sure; it may belong under {' or '.join(map(inert, receipt.likely[:3]))} (--section)")
        elif receipt.status == "pending":
            say(f"waits for you: {receipt.proposal} ({why}); {called('review')} shows it")
        elif receipt.status == "noted":
            say(f"noted for {inert(receipt.path.text)} ({why}); {called('review')} keeps or drops it")
        elif receipt.status == "known":
            say(f"known: {why}")
        else:
            whisper(f"not written: {why} (rule {receipt.rule})")
        if receipt.noted and receipt.status != "noted":
            say(f"no longer waiting: {counted(len(receipt.noted), 'noted line')} that said the same")
        for finding in receipt.findings:
            whisper(f"  line {finding.line}: {inert(finding.message)}")
        if receipt.way_back:
            whisper(f"  {suggested(receipt.way_back)}")


def decided_call(home: Home, waiting: Proposal, key: str) -> bool:
    """What one key says to a call: k is a yes, d a no with a reason; False for any other."""
    if key == "k":
        home.inbox.approve(waiting.id, approver="terminal", content=waiting.content)
    elif key == "d":
        home.inbox.deny(waiting.id, reason=str(click.prompt("Why", default="", show_default=False, err=True)))
    return key in ("k", "d")
