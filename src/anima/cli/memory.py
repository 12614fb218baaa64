"""Commands that write, as the owner: remember note write append edit move delete; and review: everything that waits for the
owner in one list, and their keep or drop.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from anima.cli import show
from anima.cli.command import Reply, command, given_text, is_owner
from anima.cli.show import called, counted, decided_call, edited, flat, inert, need_person, one_key, say, whisper
from anima.errors import BadArguments, HomeError
from anima.model import DocPath, Kind, Origin, Scope

if TYPE_CHECKING:
    from anima import ForReview, Home, Proposal, Receipt, Session


@command()
def remember(home: Home, fact: str, section: str | None, reason: str, json: bool, as_owner: bool) -> Reply:
    fact = given_text(fact).rstrip("\n")
    if is_owner(as_owner):
        _asked_about(home, fact, can_ask=not json)
        choose = _section if not json and sys.stdin.isatty() and sys.stdout.isatty() else None
        return _written(home.remember(fact, section=section, reason=reason, choose=choose))
    return _wished(home, target="memory", content=fact, section=section, reason=reason)


@command()
def note(home: Home, content: str, reason: str, json: bool, as_owner: bool) -> Reply:
    content = given_text(content).rstrip("\n")
    if is_owner(as_owner):
        _asked_about(home, content, can_ask=not json)
        return _written(home.note(content, reason=reason))
    return _wished(home, target="daily_log", content=content, reason=reason)


@command()
def write(home: Home, path: str, text: str | None, base: str | None, reason: str, as_owner: bool) -> Reply:
    if is_owner(as_owner):
        return _written(home.write(path, given_text(text), base=base, reason=reason))
    return _submitted(home, path, Kind.WRITE, given_text(text), base=base, reason=reason)


@command()
def append(home: Home, path: str, text: str | None, reason: str, as_owner: bool) -> Reply:
    if is_owner(as_owner):
        return _written(home.append(path, given_text(text), reason=reason))
    return _wished(home, target=path, content=given_text(text), reason=reason)


@command()
def edit(
    home: Home, path: str, old: str | None, new: str | None, replace_all: bool, reason: str, as_owner: bool
) -> Reply:
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

    show.diff(unified(before.text, text, before=before.path.text, after=before.path.text))
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


@command()
def move(home: Home, path: str, to: str, reason: str, as_owner: bool) -> Reply:
    if is_owner(as_owner):
        return _written(home.move(path, to, reason=reason))
    return _submitted(home, path, Kind.MOVE, to=DocPath.parse(to), reason=reason)


@command()
def delete(home: Home, path: str, base: str | None, reason: str, as_owner: bool) -> Reply:
    if is_owner(as_owner):
        return _written(home.delete(path, base=base, reason=reason))
    return _submitted(home, path, Kind.DELETE, base=base, reason=reason)


def _written(receipt: Receipt) -> Reply:
    return Reply(receipt, lambda: show.receipts([receipt]), 5 if receipt.status == "refused" else 0)


def _section(likely: Sequence[str], otherwise: str) -> str | None:
    """The section that the owner takes, by one key, where none is sure; Enter leaves it where it goes else, Esc writes nothing."""
    offered = {str(number): title for number, title in enumerate(likely, start=1)}
    shown = "  ".join(f"[{key}] {flat(title)}" for key, title in offered.items())
    question = f"Where does it belong?  {shown}  [Enter] {flat(otherwise)}"
    while (key := one_key(question)) not in ("\n", "\r"):
        if key == "\x1b":
            raise click.Abort
        if key in offered:
            return offered[key]
        question = "a number, or Enter; Esc writes nothing"
    return None


def _asked_about(home: Home, text: str, *, can_ask: bool) -> None:
    """A text in which the scan sees something is asked about at a terminal before it is written; Enter keeps no secret."""
    if can_ask and sys.stdin.isatty() and sys.stdout.isatty() and (seen := home.inbox.seen(text)):
        told = ", ".join(dict.fromkeys(inert(found.message) for found in seen))
        is_plain = not any(found.kind.startswith("secret:") for found in seen)
        click.confirm(f"The scan saw: {told}. Write it?", default=is_plain, abort=True, err=True)


@contextmanager
def _agents_hand(home: Home) -> Iterator[Session]:
    """A session for whoever asks without being at a terminal: an agent's, whose conversation nobody saw."""
    with home.session(scope=Scope.MAIN, channel="cli") as session:
        session.taint(Origin.HOST)
        yield session


def _wished(home: Home, **asked: Any) -> Reply:
    """What becomes of it where nobody is at a terminal: an agent asks for it, by its own tool."""
    if not asked.get("content", "an edit").strip():
        raise BadArguments("there is nothing to write")
    with _agents_hand(home) as session:
        answer = session.call("memory_write", {name: value for name, value in asked.items() if value is not None})
    return _as_agent(answer, answer["status"], answer["path"], answer.get("reason"))


def _submitted(home: Home, path: str, kind: Kind, text: str = "", base: str | None = None, **more: Any) -> Reply:
    """The same for what no tool of the agent's does: a whole document, a move, a deletion."""
    with _agents_hand(home) as session:
        place = home.read(path).path if home.exists(path) else DocPath.parse(path)
        receipt = session.submit(replace(session.wish(place, kind, text, base=base), **more))
    return _as_agent(receipt, receipt.status, receipt.path.text, receipt.reason)


def _as_agent(answer: Any, status: str, path: str, reason: str | None) -> Reply:
    def shown() -> None:
        why = f" ({inert(reason)})" if reason and status != "noted" else ""
        then = f": it waits for the owner, and {called('review')} keeps or drops it"
        waits = then if status in ("noted", "pending") else ""
        say(f"{'noted for' if status == 'noted' else f'{status}:'} {inert(path)}{why}{waits}")
        if not (sys.stdin.isatty() or sys.stdout.isatty()):  # whoever sees half of it was told
            whisper("nobody is at a terminal, so an agent asked for this; if you are the owner: --as-owner")

    return Reply(answer, shown, 5 if status == "refused" else 0)


PAGE = 20  # noted lines that are shown at once, and that one key decides
_KEYS = "k keep · d drop · e edit, then keep · s skip · q quit"
_KEYS_OF_WISH = "f forget · d drop the wish · s skip · q quit"  # keeping it would be the opposite
_KEYS_OF_PAGE = "k keep all of these · d drop all of these · o one by one · s skip · q quit"


@command(owners=lambda given: bool(given["keep"] or given["drop"]))
def review(
    home: Home,
    names: Sequence[str],
    keep: bool,
    drop: bool,
    section: str | None,
    every: bool,
    reason: str,
    session: str | None,
    only_list: bool,
    json: bool,
) -> Reply | None:
    if keep and drop:
        raise BadArguments("say --keep or --drop, not both")
    broken = [name for name in home.inbox.broken() if name in names or not (keep or drop)]
    for name in broken:
        if drop:
            home.inbox.deny(name)
        else:
            gone = f"{called('review --drop')} -- {show.quote(name)}"  # it may begin like an option
            whisper(f"anima: {flat(name)} cannot be read, or was altered; {gone} removes it")
    if drop and names and set(names) <= set(broken):
        return Reply({"dropped": broken}, f"dropped: {', '.join(map(flat, broken))}")
    waiting, noted = _chosen(home, [name for name in names if name not in broken], session)
    if (keep or drop) and not names:
        if not every:
            raise BadArguments("say which: names from anima review, or --all for every noted line without findings")
        waiting, noted = [], [each for each in noted if not each.findings]
    if keep or drop:
        reply = _kept(home, waiting, noted, section, json) if keep else _dropped(home, waiting, noted, reason)
        go_on_after(home, waiting)
        return reply
    if json or not (waiting or noted):
        return Reply({"asked": waiting, "noted": noted}, "Nothing waits for you.")
    if not only_list and sys.stdin.isatty() and sys.stdout.isatty():
        _walk(home, waiting, noted)
        return None
    for number, proposal in enumerate(waiting, start=1):
        show.proposal(proposal, number, len(waiting))
    show.noted(noted, 1)
    say(f"{counted(len(waiting), 'change')} and {counted(len(noted), 'noted line')}.")
    say(f"Decide with: {called('review')}, or {called('review')} --keep NAME, --drop NAME")
    return None


def _chosen(home: Home, names: Sequence[str], session: str | None) -> tuple[list[Proposal], list[ForReview]]:
    """What waits and is meant: by the beginnings of names, or of one session, or all."""
    noted = list(home.inbox.noted())
    if names:
        waiting, meant = home.inbox.ids(), list[str]()
        for name in names:
            found = [id for id in (*waiting, *(each.entry.id for each in noted)) if id.startswith(name)]
            if len(found) != 1 or len(name) < 3:
                several = "it begins several, or is too short" if found else "anima review lists what does"
                raise BadArguments(f"nothing named {name!r} waits", hint=several)
            meant += found
        asked = [home.inbox.get(name) for name in meant if name in waiting]
        return asked, [each for each in noted if each.entry.id in meant]
    asked = [each for each in home.inbox.all() if (each.session or "").startswith(session or "")]
    return asked, [each for each in noted if (each.entry.session or "").startswith(session or "")]


def _dropped(home: Home, waiting: Sequence[Proposal], noted: Sequence[ForReview], reason: str) -> Reply:
    for proposal in waiting:
        home.inbox.deny(proposal.id, reason=reason)
    gone = [*(each.id for each in waiting), *(each.entry.id for each in noted)]
    home.inbox.drop(*gone[len(waiting) :])
    return Reply({"dropped": gone}, f"dropped: {', '.join(gone) or 'nothing'}")


def _kept(
    home: Home, waiting: Sequence[Proposal], noted: Sequence[ForReview], section: str | None, json: bool
) -> Reply:
    names = [each.entry.id for each in noted]
    approver = "terminal" if sys.stdin.isatty() else "as-owner"  # which is not enough for identity files
    if approver == "terminal" and (waiting or names):
        for number, proposal in enumerate(() if json else waiting, start=1):
            show.proposal(proposal, number, len(waiting))
        if not json:
            show.noted(noted, 1)
        click.confirm(f"Keep {counted(len(waiting) + len(names), 'item')}?", abort=True, err=True)
    typed = {p.id: _typed(home, p) if approver == "terminal" else "" for p in waiting}
    choose = _section if approver == "terminal" and not json and len(names) == 1 else None
    kept = home.inbox.keep(*names, approver=approver, section=section, choose=choose)  # first, as its Esc does nothing
    receipts = [
        r for p in waiting for r in home.inbox.approve(p.id, approver=approver, content=p.content, typed=typed[p.id])
    ] + list(kept)
    return Reply(receipts, (lambda: show.receipts(receipts)) if receipts else "kept: nothing")


def _walk(home: Home, waiting: Sequence[Proposal], noted: Sequence[ForReview]) -> None:
    for number, proposal in enumerate(waiting, start=1):
        show.proposal(proposal, number, len(waiting))
        keys = _KEYS_OF_WISH if proposal.forgets else _KEYS
        keys = "k yes, call it · d no · s skip · q quit" if proposal.call else keys
        if not _asked(keys, partial(_decide_change, home, proposal)):
            return
    plain = [each for each in noted if not each.findings]
    for start in range(0, len(plain), PAGE):
        page = plain[start : start + PAGE]
        show.noted(page, start + 1)
        if not _asked(_KEYS_OF_PAGE, partial(_decide_page, home, page)):
            return
    for each in (each for each in noted if each.findings):  # never among "all"
        if not _one(home, each):
            return


def _asked(keys: str, act: Callable[[str], bool | None]) -> bool:
    """Asks for one key until it means something; False to stop. `act` gives None for a key it does not know."""
    question = keys
    while (key := one_key(question)) != "q":
        if key == "s" or (done := act(key)):
            return True
        if done is False:
            return False
        question = f"one of these keys: {keys}"
    return False


def go_on_after(home: Home, decided: Sequence[Proposal]) -> None:
    """Lets conversations go on whose calls were decided."""
    from anima.cli.chat import gone_on

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
    if not typed and home.inbox.alone(proposal) in ("identity", "danger"):  # what no single key decides, as in a chat
        word = click.prompt("Type keep to keep it", default="", show_default=False, err=True)
        if str(word).strip() != "keep":
            say("that was not the word keep; it still waits")
            return True
    try:
        show.receipts(home.inbox.approve(proposal.id, approver="terminal", content=content, text=text, typed=typed))
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
    def decide(key: str) -> bool | None:
        text = edited(waiting.entry.text) if key == "e" else None
        if key == "k" or text is not None:
            try:
                _say_kept(home.inbox.keep(waiting.entry.id, approver="terminal", text=text, choose=_section), 1)
            except click.Abort:  # Esc where it is asked where that belongs
                say("it still waits")
        elif key == "d":
            home.inbox.drop(waiting.entry.id)
            say("dropped")
        return True if key in ("k", "d", "e") else None

    show.noted([waiting], 1)
    return _asked(_KEYS, decide)


def _say_kept(receipts: Sequence[Receipt], count: int) -> None:
    refused = [receipt for receipt in receipts if receipt.status != "written"]
    show.receipts(refused)
    if not refused:
        headings = dict.fromkeys(receipt.section for receipt in receipts if receipt.section)
        where = f" under {', '.join(map(inert, headings))}" if count == 1 and headings else ""
        say(f"kept {counted(count, 'line')}{where}")
