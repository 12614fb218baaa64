"""Forgetting: what holds something the owner wants gone, and how it goes. First the plan, then the deed.

Promise: a plan touches nothing and lists everything that would be touched, and why; documents change by the one road,
as one batch; what is forgotten is known again by its digest before the first line goes, so nothing brings it back
meanwhile. Killed at any point, doing it again completes it. A document that changed in between is planned anew.
Not here: how phrases are found (phrases), history, foreign files and proof (purging).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from anima.errors import BadText, HomeError, NoSuchDocument, StaleWrite
from anima.forget import purge as purging
from anima.forget.purge import Left, Purge
from anima.forget.wanted import Asked, Choice, asked_of, checked_texts
from anima.layout.listener import layer_at, layer_of
from anima.layout.table import Policy
from anima.ledger.provenance import OWNERS, Source
from anima.memory.proposals import LIFETIME, MOST_PER_SESSION, Proposal, content_of
from anima.memory.write import owners
from anima.model import Actor, Change, DocPath, Document, Kind, Receipt
from anima.sessions.record import forget, touched
from anima.sessions.replay import Turn, header_of
from anima.store.aside import set_aside_files
from anima.store.foreign import bytes_of
from anima.store.shelf import Snapshot
from anima.text.diff import diff_of
from anima.text.markdown import heading_of, lines_of
from anima.text.phrases import Wanted, cut, flat, is_strong, loose, said_in, with_hanging

if TYPE_CHECKING:
    from anima.home import Home
    from anima.store.logs import LineFolder

RULE = "forget"
_TRIES = 3
_SHOWN = 200
_KNOWN = ("diff", "why", "bases", "changes", "findings", "forget")  # where a proposal holds text
_TEXTS = frozenset({"text", "reason", "opening", "shown", "message", "said"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """One thing that goes, or went. `place` is line, dreamed, layer, proposal, transcript, torn, history, file, snapshot."""

    place: str
    where: str
    why: str
    text: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """What was forgotten, or would be. The receipt: counts by place, the change's number, and what the proof found."""

    touched: tuple[Touched, ...]
    purge: bool
    done: bool
    phrases: int = 0  # how many stay forgotten
    change: str | None = None
    revision: str | None = None
    record: int | None = None  # the ledger's
    verified: bool | None = None  # None: nothing was done, so there is nothing to prove
    left: tuple[Left, ...] = ()  # what still holds it, and why
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        for each in self.touched:
            found[each.place] += each.count
        return dict(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Talk:
    """One transcript, and what of it goes: all, some entries, or what holds a phrase."""

    folder: LineFolder
    id: str
    every: bool
    picks: Callable[[Turn], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that would be done. Nothing is, until `carry_out`."""

    asked: Asked
    wanted: Wanted
    touched: tuple[Touched, ...] = ()
    changes: tuple[Change, ...] = ()
    proposals: tuple[str, ...] = ()
    talks: tuple[_Talk, ...] = ()
    torn: tuple[str, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()  # older archives of the home, which go
    keep: tuple[str, ...] = ()  # phrases that stay forgotten
    left: tuple[Left, ...] = ()
    notes: tuple[str, ...] = ()
    purge: Purge | None = None


# -- the plan ---------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Drawing:
    """A plan in the making."""

    home: Home
    asked: Asked
    choice: Choice
    wanted: Wanted
    dreamed: frozenset[str] = frozenset()  # digests of lines that were dreamed from what goes
    touched: list[Touched] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)


def plan(home: Home, asked: Asked, *, purge: bool) -> Plan:
    """What holds it, everywhere. Touches nothing."""
    documents, unread = _documents(home)
    choice = Choice(home, asked, _sessions(home, asked))
    wanted, keep = _wanted(home, asked, choice, documents, purge=purge)
    drawing = _Drawing(home, asked, choice, wanted, _dreamed(home, choice, wanted, documents), left=unread)
    for document in documents:
        _draw_document(drawing, document)
    proposals = tuple(_draw_proposals(drawing))
    talks = tuple(_draw_talks(drawing))
    torn = tuple(_draw_torn(drawing)) if asked.layer is None else ()
    notes = _notes(home, asked, documents, wanted, purge)
    more = purging.look(home, wanted, choice.lines, choice.layer, {d.path.text for d in documents}) if purge else None
    if more is not None:
        drawing.touched += [Touched(place=place, where=where, why=why, count=n) for place, where, why, n in more.found]
        drawing.left += more.left
        notes += more.notes
    archives = tuple(_draw_snapshots(drawing)) if purge else ()
    keep = tuple(dict.fromkeys((*keep, *_by_pattern(asked, documents))))
    return Plan(
        asked=asked,
        wanted=wanted,
        touched=tuple(drawing.touched),
        changes=tuple(drawing.changes),
        proposals=proposals,
        talks=talks,
        torn=torn,
        snapshots=archives,
        keep=keep if asked.layer is None else (),
        left=tuple(drawing.left),
        notes=notes,
        purge=more,
    )


def _dreamed(home: Home, choice: Choice, wanted: Wanted, documents: Iterable[Document]) -> frozenset[str]:
    """The lines that nights made of what goes, in a model's words too, by their digests."""
    made = home.dreams.dreamed_from()
    found: set[str] = set()
    for document in documents if made else ():
        lines = lines_of(document.text)
        for number in choice.lines(document.path, document.text) | wanted.hits(document.text):
            found |= made.get((document.path.text, home.books.key.line(lines[number])), frozenset())
    return frozenset(found)


def _documents(home: Home) -> tuple[list[Document], list[Left]]:
    """Every document a verb may write, and those that cannot be."""
    found: list[Document] = []
    left: list[Left] = []
    for entry in home.store.list_all():
        path = DocPath.parse(entry.path)
        if not path.is_markdown or home.layout.row_of(path).policy is Policy.CLOSED:
            continue
        try:
            found.append(home.store.read(path))
        except (BadText, NoSuchDocument):
            continue  # no text: looked at as a foreign file
        except HomeError as error:
            left.append(Left(entry.path, str(error)))
    return found, left


def _sessions(home: Home, asked: Asked) -> frozenset[str]:
    """The sessions that are meant as a whole."""
    if not (asked.session or asked.sender):
        return frozenset()
    layer = layer_of(asked.sender, home.config.owner) if asked.sender else ""
    ids: set[str] = set()
    known: set[str] = set()
    for folder, id in _walk(home):
        known.add(id)
        with folder.open(id) as file:
            header = header_of(file)
        if asked.sender and header and (header.sender_id == asked.sender or (layer and header.layer == layer)):
            ids.add(id)
    if asked.session:
        near = [id for id in sorted(known) if id.startswith(asked.session)]
        ids = {near[0]} if asked.session not in known and len(near) == 1 else {asked.session}
    return frozenset(ids)


def _wanted(
    home: Home, asked: Asked, choice: Choice, documents: Iterable[Document], *, purge: bool
) -> tuple[Wanted, tuple[str, ...]]:
    """What is looked for everywhere, and what of it stays forgotten."""
    if not asked.by_source:
        return asked.words, asked.texts
    strong: dict[str, None] = {}
    weak: dict[str, None] = {}
    common = purging.common_lines()
    held: Counter[str] = Counter()
    now = ((document.path, document.text, True) for document in documents)
    past = ((path, text, False) for path, text in (purging.versions(home) if purge else ()))
    for path, text, is_now in chain(now, past):
        lines = lines_of(text)
        chosen = choice.lines(path, text)
        for number, line in enumerate(lines):
            said = said_in(line) if number in chosen or is_now else ""
            if number in chosen and said and not heading_of(line) and said not in common:
                (strong if is_strong(said) else weak)[said] = None
            elif is_now and number not in chosen and said:
                held[flat(said).text] += 1
    alone = [said for said in weak if purge and not held[flat(said).text]]
    return Wanted(lines=strong, whole=alone), tuple(strong)


def _draw_document(drawing: _Drawing, document: Document) -> None:
    """What a document loses, and the change that does it."""
    home, path, asked = drawing.home, document.path, drawing.asked
    if asked.layer is not None and layer_at(path) != asked.layer:
        return
    chosen = drawing.choice.lines(path, document.text)
    hits = chosen | drawing.wanted.hits(document.text)
    if drawing.dreamed:
        key, lines = home.books.key, lines_of(document.text)
        hits |= {number for number, line in enumerate(lines) if key.line(line) in drawing.dreamed}
    if not hits:
        return
    if (found := home.store.stat(path.text)) is not None and found.st_nlink > 1:
        drawing.left.append(Left(path.text, "the file has several names (hard links), so it is not written"))
        return
    lines = lines_of(document.text)
    for number in sorted(with_hanging(lines, hits)):
        if lines[number].strip():
            drawing.touched.append(_line_touched(drawing, path, number, lines[number], chosen, hits))
    text = without(document.text, hits, drawing.wanted)
    is_named = home.layout.row_of(path).path == path.text
    kind = Kind.WRITE if text.strip() or is_named else Kind.DELETE
    change = owners(path, kind, text if kind is Kind.WRITE else "", base=document.digest)
    drawing.changes.append(replace(change, reason="forget"))


def without(text: str, hits: set[int], wanted: Wanted) -> str:
    """A text without these lines, and without what only their going brought together."""
    while hits:
        text = cut(text, hits)
        hits = wanted.hits(text)
    return text


def _line_touched(
    drawing: _Drawing, path: DocPath, number: int, line: str, chosen: set[int], hits: set[int]
) -> Touched:
    home = drawing.home
    source = home.books.provenance.source(path, line) if home.books.begun else OWNERS
    is_dreamed = source.actor is Actor.DREAMER or home.layout.row_of(path).role == "diary"
    place = "layer" if layer_at(path) is not None else "dreamed" if is_dreamed else "line"
    if number in chosen:
        why = _why(drawing.asked, source)
    elif number not in hits:
        why = "hangs below a line that goes"
    else:
        why = (
            "says the same"
            if drawing.asked.by_source
            else "holds the words"
            if drawing.asked.texts
            else "fits the pattern"
        )
    return Touched(place=place, where=f"{path}:{number + 1}", why=why, text=line.strip()[:_SHOWN])


def _why(asked: Asked, source: Source) -> str:
    if asked.path:
        return "the line"
    if asked.sender:
        return "theirs"
    if asked.session:
        return f"written in session {source.session}"
    return f"came from {asked.origin}" if asked.origin else "written in that time"


def _draw_proposals(drawing: _Drawing) -> Iterator[str]:
    """Waiting changes that hold it, in their texts, diffs, bases or reasons; those a forgotten session made, too."""
    if drawing.asked.layer is not None:
        return
    for id, raw in drawing.home.writing.proposals.raw():
        try:
            found = json.loads(raw)
            texts = [text for key in _KNOWN for text in _strings(found.get(key))]
            meant = _is_meant(drawing, found)
        except (ValueError, AttributeError, RecursionError, TypeError):
            texts, meant = [loose(raw)], False
        if meant or any(drawing.wanted.touches(text) for text in texts):
            drawing.touched.append(Touched(place="proposal", where=id, why="made there" if meant else "holds it"))
            yield id


def _is_meant(drawing: _Drawing, found: dict[str, Any]) -> bool:
    asked, choice = drawing.asked, drawing.choice
    if not asked.by_source or asked.path or not choice.passes("\n".join(_strings(found.get("changes")))):
        return False
    if (asked.session or asked.sender) and found.get("session") not in choice.sessions:
        return False
    if asked.origin and asked.origin not in (found.get("origin"), *found.get("taint", ())):
        return False
    return choice.within(datetime.fromisoformat(found["created"]))


def _strings(value: Any) -> Iterator[str]:
    """The texts in a part of a proposal; names and numbers are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _strings(each) if key in _TEXTS else ()


def _walk(home: Home) -> Iterator[tuple[LineFolder, str]]:
    """Every transcript of the home, whichever agent's."""
    for folder in home.sessions.folders():
        for seen in folder.walk():
            yield folder, seen.id


def _draw_talks(drawing: _Drawing) -> Iterator[_Talk]:
    asked, choice = drawing.asked, drawing.choice
    narrowed = bool(asked.texts or asked.pattern or asked.since or asked.until)
    for folder, id in _walk(drawing.home):
        theirs = id in choice.sessions
        if asked.layer is not None and _layer(folder, id) != asked.layer:
            continue
        picks = (lambda turn: choice.within(turn.time) and choice.passes(turn.content)) if theirs else choice.turn
        talk = _Talk(folder=folder, id=id, every=theirs and not narrowed and not asked.origin, picks=picks)
        try:
            count = touched(folder, id, *_touches(talk, drawing.wanted))
        except HomeError as error:
            drawing.left.append(Left(folder.path_of(id), str(error)))
            continue
        if count:
            why = "all that was said in it" if talk.every else "entries that hold it"
            drawing.touched.append(Touched(place="transcript", where=folder.path_of(id), why=why, count=count))
            yield talk


def _layer(folder: LineFolder, id: str) -> str | None:
    with folder.open(id) as file:
        header = header_of(file)
    return (header.layer or "") if header else None


def _touches(talk: _Talk, wanted: Wanted) -> tuple[Callable[[str], bool], Callable[[Turn], bool]]:
    if talk.every:
        return (lambda text: bool(text)), (lambda turn: True)
    return wanted.touches, talk.picks


def _draw_torn(drawing: _Drawing) -> Iterator[str]:
    """What was put aside after a crash, or by a repair."""
    store = drawing.home.store
    for path in set_aside_files(store):
        of = path.rpartition("/")[2].rsplit(".", 2)[0]
        if of in drawing.choice.sessions or drawing.wanted.touches(loose(bytes_of(store, path) or b"")):
            drawing.touched.append(Touched(place="torn", where=path, why="put aside after a crash or by a repair"))
            yield path.removeprefix(".anima/")


def _draw_snapshots(drawing: _Drawing) -> Iterator[Snapshot]:
    """Every archive of this home, wherever it knows of one: older than the purge, so each may hold it."""
    home = drawing.home
    if home.store.stat(purging.SNAPSHOTS.rstrip("/")) is None and not home.config.snapshot.dir:
        return
    found, away = home.snapshots.everywhere()
    drawing.left += [Left(path, why) for path, why in away]
    for kept in found:
        where = kept.name if kept.digest else kept.path
        drawing.touched.append(Touched(place="snapshot", where=where, why="older than the purge, and is removed"))
        yield kept


def _by_pattern(asked: Asked, documents: Iterable[Document]) -> Iterator[str]:
    """What a pattern matched, for the list: a pattern itself is not kept."""
    if asked.pattern is not None and not asked.by_source:
        wanted = asked.words
        for document in documents:
            yield from wanted.found(document.text)


def _notes(home: Home, asked: Asked, documents: Iterable[Document], wanted: Wanted, purge: bool) -> tuple[str, ...]:
    notes = [
        f"the name of {d.path} holds it; rename the document yourself, the ledger keeps its names"
        for d in documents
        if asked.layer is None and wanted.touches(d.path.text.replace("/", " "))
    ]
    if not purge and home.books.begun:
        notes.append(
            "history, snapshots and files that are no documents are left as they are; --purge reaches them too"
        )
    return tuple(notes)


# -- the deed ---------------------------------------------------------------------------------------------------------------


def carry_out(home: Home, asked: Asked, *, purge: bool, last: str | None = None) -> Forgetting:
    """Plans and does it. A document that changed in between is planned anew. `last` is a proposal that goes last."""
    for tries in range(_TRIES):
        drawn = plan(home, asked, purge=purge)
        try:
            return _done(home, drawn, last)
        except StaleWrite:
            if tries == _TRIES - 1:
                raise
    raise AssertionError("unreachable")


def _done(home: Home, drawn: Plan, last: str | None) -> Forgetting:
    """In this order, so that after a kill the same call finds what is left: history, which knows most, goes last."""
    books, left = home.books, list(drawn.left)
    with books.machine.lock.hold():
        kept = home.writing.forgotten.add(drawn.keep)
    receipts = home.writing.submit(drawn.changes, what="forget", of=last) if drawn.changes else ()
    with books.machine.lock.hold():
        for id in drawn.proposals:
            if id != last:
                home.writing.proposals.remove(id)
        books.finish()
        books.sweep()
        if drawn.purge is not None:
            books.whole.drop_staged()
    for talk in drawn.talks:
        try:
            forget(talk.folder, talk.id, *_touches(talk, drawn.wanted), clock=home.clock)
        except HomeError as error:
            left.append(Left(talk.folder.path_of(talk.id), str(error)))
    for name in drawn.torn:
        books.machine.remove(name)
    notes = list(drawn.notes)
    left += purging.foreign(home, drawn.purge) if drawn.purge else ()
    notes += _freshened(home, anew=drawn.purge is not None)
    left += purging.history(home, drawn.purge) if drawn.purge else ()
    left += _replace_snapshots(home, drawn, notes) if drawn.purge else ()
    left += purging.proof(home, drawn.wanted, drawn.keep) if drawn.purge else _check(home, drawn)
    first = receipts[0] if receipts else None
    if first is not None and drawn.purge is not None:  # revisions have other names now
        first = replace(first, revision=books.history.head() if books.history else None)
    return _recorded(
        home,
        drawn,
        Forgetting(
            touched=drawn.touched,
            purge=drawn.purge is not None,
            done=True,
            phrases=kept,
            change=first.change if first else None,
            revision=first.revision if first else None,
            verified=not left,
            left=tuple(dict.fromkeys(left)),
            notes=tuple(notes),
        ),
        last,
    )


def _replace_snapshots(home: Home, drawn: Plan, notes: list[str]) -> list[Left]:
    """Every older archive of the home goes, and one of the home as it is now takes their place."""
    left: list[Left] = []
    for kept in drawn.snapshots:
        try:
            home.snapshots.remove(kept)
        except HomeError as error:
            left.append(Left(kept.name, str(error)))
    if drawn.snapshots:
        notes.append(f"{len(drawn.snapshots)} older snapshots are removed; {home.snapshots.take_anew().name} was taken")
    return left


def _freshened(home: Home, *, anew: bool) -> list[str]:
    """Index and session list without it; with `anew`, in files of their own, so that no free page holds it."""
    said = []
    try:
        home.index.freshen(anew=anew)
    except HomeError as error:
        said.append(f"the index is made again at the next search: {error}")
    home.sessions.freshen(anew=anew)
    return said


def _check(home: Home, drawn: Plan) -> list[Left]:
    """Whether anything that was changed still holds it."""
    left = []
    for change in drawn.changes:
        if home.exists(change.path) and drawn.wanted.touches(home.read(change.path).text):
            left.append(Left(change.path.text, "it was written again meanwhile"))
    for talk in drawn.talks:
        try:
            if touched(talk.folder, talk.id, *_touches(talk, drawn.wanted)):
                left.append(Left(talk.folder.path_of(talk.id), "it was said again meanwhile"))
        except HomeError:
            continue  # it is among the others already
    return left


def _recorded(home: Home, drawn: Plan, done: Forgetting, last: str | None) -> Forgetting:
    """The ledger's word for it: counts and digests, no text."""
    if not (drawn.touched or drawn.keep or last):
        return done
    phrases = [found.digest for text in drawn.keep[:1000] if (found := home.writing.forgotten.phrase(text))]
    fields = {
        "counts": done.counts,
        "phrases": phrases,
        "purge": done.purge,
        "verified": done.verified,
        "change": done.change,
        "left": len(done.left),
        "proposals": [*drawn.proposals[:1000]],
        "of": last,
    }
    with home.books.lock():
        record = home.books.ledger.add("forget", {name: value for name, value in fields.items() if value is not None})
        if last is not None:
            home.writing.proposals.remove(last)
    return replace(done, record=record.n)


def shown(drawn: Plan) -> Forgetting:
    """A plan as its owner sees it."""
    return Forgetting(
        touched=drawn.touched,
        purge=drawn.purge is not None,
        done=False,
        phrases=len(drawn.keep),
        left=drawn.left,
        notes=drawn.notes,
    )


# -- an agent's wish --------------------------------------------------------------------------------------------------------


def propose(home: Home, change: Change, wish: Mapping[str, str], *, layer: str) -> Proposal | None:
    """A wish to forget that waits for the owner; None when too many of this session wait. It tells the agent nothing:
    what holds the words, the owner sees."""
    wish = {**wish, **({"layer": layer} if layer else {})}
    now, content, pending = home.clock(), content_of([change], wish), home.writing.proposals
    if sum(p.session == change.session for p in pending.all(now)) > MOST_PER_SESSION:
        return None
    drawn = plan(home, _asked_by(wish), purge=False)
    bases = [home.read(c.path).text for c in drawn.changes]
    books = home.books
    with books.machine.lock.hold():
        if (twin := pending.twin(content, change.session, now)) is not None:
            return twin
        if sum(p.session == change.session for p in pending.all(now)) >= MOST_PER_SESSION:
            return None
        record = books.ledger.add("proposal", {"content": books.key.of(content), "rule": RULE})
        found = Proposal(
            id=f"p{record.n}",
            changes=(change,),
            created=now,
            expires=now + LIFETIME,
            rule=RULE,
            findings=(),
            content=content,
            why="forgetting is the owner's to decide",
            diff=_told(drawn) + diff_of(drawn.changes, bases),
            bases=(None,),
            forget=wish,
        )
        pending.save(found)
        return found


def _told(drawn: Plan) -> str:
    """What else would go, for the owner to see above the diff."""
    rest = [each for each in drawn.touched if each.place in ("transcript", "proposal", "torn")]
    return "".join(f"forget: {each.place} {each.where}, {each.count} ({each.why})\n" for each in rest)


def _asked_by(wish: Mapping[str, str]) -> Asked:
    layer = wish.get("layer")
    if "path" in wish:
        return Asked(path=DocPath.parse(wish["path"]), said=wish["said"], layer=layer)
    return Asked(texts=checked_texts(wish["text"]), layer=layer)


def approve(home: Home, proposal: Proposal) -> tuple[Receipt, ...]:
    """Carries an agent's wish out, as the owner's own."""
    done = carry_out(home, _asked_by(proposal.forget or {}), purge=False, last=proposal.id)
    path = next(
        (DocPath.parse(t.where.rpartition(":")[0]) for t in done.touched if t.place in ("line", "layer", "dreamed")),
        proposal.changes[0].path,
    )
    reason = ", ".join(f"{count} {place}" for place, count in done.counts.items()) or "nothing held it any more"
    return (
        Receipt(
            status="written",
            path=path,
            proposal=proposal.id,
            rule=RULE,
            change=done.change,
            revision=done.revision,
            reason=f"forgotten: {reason}",
        ),
    )


__all__ = ["Asked", "Forgetting", "Plan", "Touched", "approve", "asked_of", "carry_out", "plan", "propose", "shown"]
