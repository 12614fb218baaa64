"""Forgetting: what holds something the owner wants gone, and how it goes. First the plan, then the deed.

Promise: a plan touches nothing and lists everything that would be touched, and why; documents change by the one road,
as one batch; what is forgotten is known again by its digest before the first line goes, so nothing brings it back.
Killed at any point, doing it again completes it. Not here: how phrases are found (text.phrases), other holders (holders).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from anima.errors import BadArguments, BadText, HomeError, NoSuchDocument, NoSuchSession, StaleWrite
from anima.forget.holders import Holder, Hunt, Versions, is_document, without
from anima.layout import Policy, layer_at, layer_of, starter_lines
from anima.ledger.views import OWNERS
from anima.memory import Proposal, content_of
from anima.memory.write import Writer, becoming
from anima.model import Actor, Change, DocPath, Document, Origin, Receipt, Source, cited
from anima.site import Site
from anima.text.diff import diff_of
from anima.text.markdown import heading_of, lines_of
from anima.text.phrases import Left, Touched, Wanted, flat, is_strong, said_in, with_hanging

RULE = "forget"
NAMED = "the name of {path} holds it; rename the document yourself, the ledger keeps its names"
UNPURGED = "history, snapshots and files that are no documents are left as they are; --purge reaches them too"
BELOW = "a layer below is only read: what it holds stays there, unseen here; forget it there, too"
_TRIES, _SHOWN, _FEW = 3, 200, 1000  # a few names are what one record of the ledger holds
MOST_TEXT = 100_000
Dreamed = Callable[[], Mapping[tuple[str, str], frozenset[str]]]
Headers = Callable[[], Iterable[tuple[str, str | None, str | None]]]


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
        places = dict.fromkeys(each.place for each in self.touched)
        return {place: sum(each.count for each in self.touched if each.place == place) for place in places}


class _Plan(NamedTuple):
    """Everything that would be done. Nothing is, until `perform`."""

    sought: Choice
    changes: tuple[Change, ...]
    held: tuple[tuple[Holder, tuple[Touched, ...]], ...]
    keep: tuple[str, ...]  # phrases that stay forgotten
    shown: Forgetting  # as its owner sees it


class Forget:
    """What forgets in one home. `holders` keep text beside the documents, in the order of the deed: history, which
    knows most, goes late, so that after a kill the same call finds what is left. `dreamed` gives, for a line, the
    digests of those that dreams made of it; `headers` (id, sender, layer) of every transcript."""

    def __init__(self, writer: Writer, holders: Sequence[Holder], *, dreamed: Dreamed, headers: Headers) -> None:
        self._writer, self._site, self._store, self._holders = writer, writer.site, writer.store, tuple(holders)
        self._dreamed, self._headers = dreamed, headers

    def ask(self, *, purge: bool, dry_run: bool, **what: Any) -> Forgetting:
        """What a person asks for; with `dry_run` only looked for. Raises BadArguments with what to say instead."""
        asked = asked_of(self._site, **what)
        return self.plan(asked, purge=purge).shown if dry_run else self.perform(asked, purge=purge)

    def plan(self, asked: Asked, *, purge: bool) -> _Plan:
        """What holds it, everywhere. Touches nothing."""
        documents, left = self._documents()
        sought = Choice(self._site, asked, self._sessions(asked), purge=purge)
        keep = self._seek(sought, documents)
        dreamed = self._dreamed_from(sought, documents)
        drawn: list[Touched | Left | Change] = []
        for document in documents:
            if asked.layer is None or layer_at(document.path) == asked.layer:
                drawn += self._draw(sought, document, dreamed)
        touched = [each for each in drawn if isinstance(each, Touched)]
        left += [each for each in drawn if isinstance(each, Left)]
        named = [d.path for d in documents if sought.words.touches(d.path.text.replace("/", " "))]
        notes = [NAMED.format(path=path) for path in named] if asked.layer is None else []
        notes += [UNPURGED] if not purge and self._store.begun else []
        notes += [BELOW] if purge and hasattr(self._store, "layers") else []
        held = []
        for holder in self._holders:
            found = list(holder.find(sought))
            held.append((holder, tuple(each for each in found if isinstance(each, Touched))))
            touched += held[-1][1]
            left += [each for each in found if isinstance(each, Left)]
            notes += [each for each in found if isinstance(each, str)]
        if asked.session and not touched and sought.sessions.isdisjoint(id for id, _, _ in self._headers()):
            records = self._store.ledger.records() if self._store.begun else ()
            if all(record.fields.get("session") != asked.session for record in records):  # nobody ever knew it
                raise NoSuchSession(f"{asked.session}: there is no such session", hint="anima sessions lists them")
        changes = tuple(each for each in drawn if isinstance(each, Change))
        kept = tuple(dict.fromkeys((*keep, *sought.matched))) if asked.layer is None else ()
        shown = Forgetting(touched=tuple(touched), purge=purge, done=False, phrases=len(kept))
        return _Plan(sought, changes, tuple(held), kept, replace(shown, left=tuple(left), notes=tuple(notes)))

    def _documents(self) -> tuple[list[Document], list[Left]]:
        """Every document a verb may write, and those that cannot be."""
        found, left = list[Document](), list[Left]()
        for entry in self._store.documents.list_all():
            path = DocPath.parse(entry.path)
            if not is_document(self._site, path):
                continue
            try:
                found.append(self._store.documents.read(path))
            except (BadText, NoSuchDocument):
                continue  # no text: looked at as a foreign file
            except HomeError as error:
                left.append(Left(entry.path, str(error)))
        return found, left

    def _sessions(self, asked: Asked) -> frozenset[str]:
        """The sessions that are meant as a whole."""
        if not (asked.session or asked.sender):
            return frozenset()
        headers = list(self._headers())
        if asked.session:
            known = sorted({id for id, _, _ in headers})
            near = [id for id in known if id.startswith(asked.session)]
            return frozenset({near[0] if asked.session not in known and len(near) == 1 else asked.session})
        layer = layer_of(asked.sender, self._site.config.owner)
        return frozenset(id for id, sender, own in headers if sender == asked.sender or (layer and own == layer))

    def _seek(self, sought: Choice, documents: Sequence[Document]) -> tuple[str, ...]:
        """Gives a choice the words that are looked for everywhere; gives those of them that stay forgotten."""
        asked = sought.asked
        if not asked.by_source:
            if asked.pattern is not None:  # a pattern itself is not kept
                matched = (text for document in documents for text in asked.words.found(document.text))
                sought.matched = tuple(dict.fromkeys(matched))
            return asked.texts
        strong, weak, held = dict[str, None](), dict[str, None](), Counter[str]()
        texts = [(document.path, document.text, True) for document in documents]
        past = Versions(self._site).texts() if sought.purge else ()
        for path, text, is_now in chain(texts, ((path, text, False) for path, text in past)):
            chosen = sought.lines(path, text)
            for number, line in enumerate(lines_of(text)):
                said = said_in(line) if number in chosen or is_now else ""
                if number in chosen and said and not heading_of(line) and said not in _common_lines():
                    (strong if is_strong(said) else weak)[said] = None
                elif is_now and number not in chosen and said:
                    held[flat(said).text] += 1
        alone = [said for said in weak if sought.purge and not held[flat(said).text]]
        sought.words = Hunt(lines=strong, whole=alone)
        return tuple(strong)

    def _dreamed_from(self, sought: Choice, documents: Iterable[Document]) -> frozenset[str]:
        """The lines that nights made of what goes, in a model's words too, by their digests."""
        made = self._dreamed()
        found: set[str] = set()
        for document in documents if made else ():
            lines = lines_of(document.text)
            for number in sought.lines(document.path, document.text) | sought.words.hits(document.text):
                found |= made.get((document.path.text, self._store.key.line(lines[number])), frozenset())
        return frozenset(found)

    def _draw(self, sought: Choice, document: Document, dreamed: frozenset[str]) -> Iterator[Touched | Left | Change]:
        """What a document loses, and the change that does it."""
        path, lines = document.path, lines_of(document.text)
        chosen = sought.lines(path, document.text)
        hits = chosen | _said(sought, document.text)
        if dreamed:
            hits |= {number for number, line in enumerate(lines) if self._store.key.line(line) in dreamed}
        if not hits:
            return
        try:
            self._store.check_writable(path)
        except HomeError as error:
            yield Left(path.text, str(error).removeprefix(f"{path}: "))
            return
        for number in sorted(with_hanging(lines, hits)):
            if lines[number].strip():
                source = self._store.provenance.source(path, lines[number]) if self._store.begun else OWNERS
                is_dreamed = source.actor is Actor.DREAMER or self._site.layout.row_of(path).role == "diary"
                place = "layer" if layer_at(path) is not None else "dreamed" if is_dreamed else "line"
                why = _why(sought.asked, source, number in chosen, number in hits)
                where, text = f"{path}:{number + 1}", lines[number].strip()[:_SHOWN]
                yield Touched(place=place, where=where, why=why, text=text)
        text = without(document.text, hits, lambda rest: _said(sought, rest))
        is_named = self._site.layout.row_of(path).path == path.text
        yield becoming(path, document.text, text if text.strip() or is_named else None, reason="forget")

    def perform(self, asked: Asked, *, purge: bool, last: str | None = None) -> Forgetting:
        """Plans and does it. A document that changed in between is planned anew. `last` is a proposal that goes last."""
        for _ in range(_TRIES - 1):
            with suppress(StaleWrite):
                return self._carry_out(self.plan(asked, purge=purge), last)
        return self._carry_out(self.plan(asked, purge=purge), last)

    def _carry_out(self, drawn: _Plan, last: str | None) -> Forgetting:
        sought, left, notes = drawn.sought, list(drawn.shown.left), list(drawn.shown.notes)
        with self._store.lock():
            phrases = self._writer.forgotten.add(drawn.keep, at=self._site.clock())
        receipts = self._writer.submit(drawn.changes, what="forget", of=last) if drawn.changes else ()
        waiting = (p for p in self._writer.proposals.all() if p.forget and p.id != last)
        others = [p for p in waiting if not sought.words.touches(p.forgets)]  # they mean more than what goes now
        for holder, found in drawn.held:
            told = list(holder.forget(sought, [each for each in found if each.where != last]))
            left += [each for each in told if isinstance(each, Left)]
            notes += [each for each in told if isinstance(each, str)]
        for each in (each for each in others if each.id not in self._writer.proposals.ids()):
            self.propose(each.changes[0], each.forget or {}, "")  # it foresaw what went now; it still waits
        for path in () if sought.purge else [change.path for change in drawn.changes]:
            if _said(sought, self._site.text_of(path) or ""):
                left.append(Left(path.text, "it was written again meanwhile"))
        for holder, found in drawn.held:
            left += holder.proof(sought, found)
        done = replace(drawn.shown, done=True, phrases=phrases, verified=not left)
        for first in receipts[:1]:
            done = replace(done, change=first.change, revision=first.revision)
            if sought.purge:  # revisions have other names now
                done = replace(done, revision=self._store.history.head() if self._store.history else None)
        return self._recorded(drawn, replace(done, left=tuple(dict.fromkeys(left)), notes=tuple(notes)), last)

    def _recorded(self, drawn: _Plan, done: Forgetting, last: str | None) -> Forgetting:
        """The ledger's word for it: counts and digests, no text."""
        if not (done.touched or drawn.keep or last):
            return done
        phrases = [found.digest for text in drawn.keep[:_FEW] if (found := self._writer.forgotten.phrase(text))]
        proposals = [each.where for each in done.touched if each.place == "proposal"]
        fields = {"counts": done.counts, "phrases": phrases, "purge": done.purge, "verified": done.verified}
        fields |= {"change": done.change, "left": len(done.left), "proposals": proposals[:_FEW], "of": last}
        with self._store.lock():
            record = self._store.ledger.add("forget", {name: told for name, told in fields.items() if told is not None})
            if last is not None:
                self._writer.proposals.remove(last)
        return replace(done, record=record.n)

    def propose(self, change: Change, wish: Mapping[str, str], layer: str) -> Proposal | None:
        """A wish to forget that waits for the owner; None when too many of whoever asks wait. It tells the agent
        nothing: what holds the words, the owner sees."""
        wish = {**wish, **({"layer": layer} if layer else {})}
        content, pending = content_of([change], wish), self._writer.proposals
        if (before := pending.before(change, layer))[1]:  # and nothing is looked for in vain
            return next((p for p in before[0] if p.content == content), None)
        drawn = self.plan(_asked_by(wish), purge=False)
        bases = [self._store.documents.read(c.path).text for c in drawn.changes]
        rest = [each for each in drawn.shown.touched if each.place in ("transcript", "proposal", "torn")]
        told = "".join(f"forget: {each.place} {each.where}, {each.count} ({each.why})\n" for each in rest)
        diff, why = told + diff_of(drawn.changes, bases), "forgetting is the owner's to decide"
        with self._store.lock():
            return pending.ask((change,), content=content, rule=RULE, why=why, diff=diff, forget=wish, layer=layer)

    def approve(self, proposal: Proposal) -> tuple[Receipt, ...]:
        """Carries an agent's wish out, as the owner's own."""
        done = self.perform(_asked_by(proposal.forget or {}), purge=False, last=proposal.id)
        own = (each.where for each in done.touched if each.place in ("line", "layer", "dreamed"))
        path = next((DocPath.parse(where.rpartition(":")[0]) for where in own), proposal.changes[0].path)
        held = sum(done.counts.values())
        reason = f"forgotten in {held:,} place{'s' * (held > 1)}" if held else "forgotten: nothing held it any more"
        receipt = Receipt(status="written", path=path, proposal=proposal.id, rule=RULE, reason=reason)
        return (replace(receipt, change=done.change, revision=done.revision),)


def _said(sought: Choice, text: str) -> set[int]:
    """The lines of a document that hold the words. What every home says stays, unless every byte is meant."""
    hits, lines = sought.words.hits(text), lines_of(text)
    return hits if sought.purge else {number for number in hits if said_in(lines[number]) not in _common_lines()}


@cache
def _common_lines() -> frozenset[str]:
    """What every home says: no line of a template tells anything of anybody."""
    return frozenset(map(said_in, starter_lines()))


def _why(asked: Asked, source: Source, is_chosen: bool, is_hit: bool) -> str:
    if not is_chosen:
        if not is_hit:
            return "hangs below a line that goes"
        return "says the same" if asked.by_source else "holds the words" if asked.texts else "fits the pattern"
    if asked.path or asked.sender:
        return "the line" if asked.path else "theirs"
    if asked.session:
        return f"written in session {source.session}"
    return f"came from {asked.origin}" if asked.origin else "written in that time"


def _asked_by(wish: Mapping[str, str]) -> Asked:
    if "path" in wish:
        return Asked(path=DocPath.parse(wish["path"]), said=wish["said"], layer=wish.get("layer"))
    return Asked(texts=checked_texts(wish["text"]), layer=wish.get("layer"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the owner asked for, checked. `layer` limits an agent's wish to what is that person's own."""

    texts: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    path: DocPath | None = None
    said: str | None = None  # the line of `path` that is meant
    session: str | None = None
    sender: str | None = None
    origin: Origin | None = None
    since: datetime | None = None
    until: datetime | None = None
    layer: str | None = None

    @property
    def by_source(self) -> bool:
        """Whether lines are chosen by where they came from; a text then only narrows the choice."""
        return any((self.path, self.session, self.sender, self.origin, self.since, self.until))

    @property
    def words(self) -> Wanted:
        return Hunt(texts=self.texts, pattern=self.pattern)


def asked_of(site: Site, **wish: Any) -> Asked:
    """What a person asks for, in the words of `Home.forget`, checked. Raises BadArguments with what to say instead."""
    given = {name for name, value in wish.items() if value is not None}
    if not given:
        raise BadArguments("say what to forget: a text, pattern, line, session, sender, origin or time span")
    if {"text", "pattern"} <= given:
        raise BadArguments("a text or a pattern, not both; a pattern can hold the text")
    if "line" in given and len(given) > 1:
        raise BadArguments(f"a line is one line; {', '.join(sorted(given - {'line'}))} cannot narrow it")
    if {"session", "sender"} <= given:
        raise BadArguments("a session or a sender, not both: a session has one sender already")
    for name in given & {"sender", "session"}:
        if not wish[name].strip():
            raise BadArguments(f"{name} is empty")
    origin = Origin.parse(wish["origin"]) if "origin" in given else None
    path, said = _line(site, wish["line"]) if "line" in given else (None, None)
    begin, end = _moment(site, wish.get("since"), time.min), _moment(site, wish.get("until"), time.max)
    if begin and end and begin > end:
        raise BadArguments("since lies after until; nothing can be in between")
    asked = Asked(path=path, said=said, origin=origin, since=begin, until=end)
    asked = replace(asked, sender=wish.get("sender"), session=wish.get("session"))
    return replace(asked, texts=checked_texts(wish.get("text")), pattern=_pattern(wish.get("pattern")))


def checked_texts(given: str | Sequence[str] | None) -> tuple[str, ...]:
    texts = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    if any(len(flat(text).text) < 2 for text in texts) or (given is not None and not texts):
        raise BadArguments("the text to forget is too short; nearly every line would hold it")
    if sum(map(len, texts)) > MOST_TEXT:
        raise BadArguments(f"the texts to forget have at most {MOST_TEXT:,} characters")
    return texts


def _pattern(raw: str | None) -> re.Pattern[str] | None:
    if raw is None:
        return None
    try:
        found = re.compile(raw, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadArguments(f"the pattern {raw!r} is wrong: {error}") from None
    if any(not match[0].strip() for match in found.finditer("a b\n1-x ä\n\nmemory")):
        raise BadArguments(f"the pattern {raw!r} matches where there is nothing; every line would go")
    return found


def _line(site: Site, raw: str) -> tuple[DocPath, str]:
    path, number, last = cited(raw) or ("", 0, 0)
    if not path or last != number:
        raise BadArguments(f"{raw!r} is no line by itself; write PATH:NUMBER, such as MEMORY.md:14")
    document = site.store.documents.read(DocPath.parse(path))
    lines = lines_of(document.text)
    if not 1 <= number <= len(lines):
        raise BadArguments(f"{path} has {len(lines)} lines, and no line {number}")
    if not said_in(lines[number - 1]):
        raise BadArguments(f"{raw} says nothing; there is nothing to forget")
    return document.path, lines[number - 1]


def _moment(site: Site, raw: date | datetime | str | None, edge: time) -> datetime | None:
    """A moment; a day is its first or its last. Without a zone it is the user's."""
    if raw is None:
        return None
    if isinstance(raw, str):
        try:
            raw = date.fromisoformat(raw) if re.fullmatch(r"\d{4}-\d{2}-\d{2}", raw) else datetime.fromisoformat(raw)
        except ValueError:
            raise BadArguments(f"{raw!r} is no time; write 2026-05-08 or 2026-05-08T14:30") from None
    found = raw if isinstance(raw, datetime) else datetime.combine(raw, edge)
    return found if found.tzinfo else found.replace(tzinfo=site.now().tzinfo)


class Choice:
    """What is sought in one plan: the words, and what is meant by where it came from."""

    def __init__(self, site: Site, asked: Asked, sessions: frozenset[str], *, purge: bool) -> None:
        self._site, self.asked, self.sessions, self.purge, self.layer = site, asked, sessions, purge, asked.layer
        self._view = site.store.provenance if site.store.begun else None
        self._filter = asked.words if asked.texts or asked.pattern else None
        self.own_layer = layer_of(asked.sender, site.config.owner) if asked.sender else ""
        self._said = flat(asked.said).text if asked.said else ""
        self.matched: tuple[str, ...] = ()
        self.words = asked.words  # what chosen lines say comes to it, while a plan is made

    def lines(self, path: DocPath, text: str) -> set[int]:
        """The numbers, from 0, of the lines of a document that are meant. A heading goes with all that is below it."""
        if not self.asked.by_source:
            return set()
        if self._is_timed and self._site.layout.row_of(path).policy not in (Policy.MEMORY, Policy.REVIEW):
            return set()
        lines = lines_of(text)
        allowed = self._filter.hits(text) if self._filter else None
        numbers = range(len(lines)) if allowed is None else allowed
        found = {number for number in numbers if lines[number].strip() and self._means(path, lines[number])}
        return _without_loose_headings(lines, found) if found and not self.asked.path else found

    @property
    def _is_timed(self) -> bool:
        """By time alone, only memory is meant: the day a home was made is no reason to lose its soul."""
        return not (self.asked.session or self.asked.sender or self.asked.origin or self.asked.path)

    def _means(self, path: DocPath, line: str) -> bool:
        asked = self.asked
        if asked.path is not None:
            return path.key == asked.path.key and flat(line).text == self._said
        source = self._view.source(path, line) if self._view else OWNERS
        is_theirs = bool(self.own_layer) and layer_at(path) == self.own_layer
        if (asked.session or asked.sender) and source.session not in self.sessions and not is_theirs:
            return False
        if asked.origin and asked.origin not in (source.origin, *source.taint):
            return False
        if source.time is not None or not (asked.since or asked.until):
            return self.within(source.time)
        day = self._site.layout.date_of(path)  # written before the ledger began: a log still says its day
        zone = self._site.now().tzinfo
        return day is not None and all(self.within(datetime.combine(day, at, zone)) for at in (time.min, time.max))

    def within(self, moment: datetime | None) -> bool:
        since, until = self.asked.since, self.asked.until
        if not (since or until):
            return True
        return moment is not None and (since is None or since <= moment) and (until is None or moment <= until)

    def all_of(self, session: str) -> bool:
        asked = self.asked
        narrowed = asked.texts or asked.pattern or asked.since or asked.until or asked.origin
        return session in self.sessions and not narrowed

    def entry(self, session: str, sender: str | None, time: datetime | None, text: str) -> bool:
        asked = self.asked
        timed = self._is_timed and bool(asked.since or asked.until)
        meant = session in self.sessions or timed or (asked.sender is not None and sender == asked.sender)
        return meant and self.within(time) and self.passes(text)

    def change(self, session: str | None, origins: Sequence[str], time: datetime, text: str) -> bool:
        asked = self.asked
        if not asked.by_source or asked.path or not self.passes(text):
            return False
        if (asked.session or asked.sender) and session not in self.sessions:
            return False
        return (not asked.origin or asked.origin in origins) and self.within(time)

    def passes(self, text: str) -> bool:
        return self._filter is None or self._filter.touches(text)


def _without_loose_headings(lines: list[str], found: set[int]) -> set[int]:
    """A heading stays while something below it does, in its section."""
    kept: set[int] = set()
    depth = 0  # of the section in which something stays, from the end upwards: 0 for none
    for number in reversed(range(len(lines))):
        line = lines[number]
        heading = heading_of(line)
        if heading is None:
            depth = 7 if number not in found and line.strip() else depth
            continue
        if number in found and depth > heading.level:
            kept.add(number)
        depth = heading.level if number not in found or number in kept else depth
    return found - kept
