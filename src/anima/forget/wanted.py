"""What is to be forgotten: the owner's words for it, checked, and the lines they mean by where those came from.

Promise: what makes no sense is said before anything is looked at; a text or pattern together with a session, sender,
origin or time narrows the choice. Not here: what else says the same, and how it goes (forget).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from anima.errors import BadArguments
from anima.layout import Policy
from anima.layout.listener import layer_at, layer_of
from anima.ledger.provenance import OWNERS, Source
from anima.model import DocPath, Origin
from anima.site import Site
from anima.text.markdown import heading_of, lines_of
from anima.text.phrases import Wanted, flat, said_in

MOST_TEXT = 100_000


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
        return Wanted(texts=self.texts, pattern=self.pattern)


# -- what is asked --------------------------------------------------------------------------------------------------------


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
    try:
        origin = Origin(wish["origin"]) if "origin" in given else None
    except ValueError:
        raise BadArguments(f"there is no origin {wish['origin']!r}; there are {', '.join(Origin)}") from None
    path, said = _line(site, wish["line"]) if "line" in given else (None, None)
    begin, end = _moment(site, wish.get("since"), time.min), _moment(site, wish.get("until"), time.max)
    if begin and end and begin > end:
        raise BadArguments("since lies after until; nothing can be in between")
    return Asked(
        texts=checked_texts(wish.get("text")),
        pattern=_pattern(wish.get("pattern")),
        path=path,
        said=said,
        sender=wish.get("sender"),
        session=wish.get("session"),
        origin=origin,
        since=begin,
        until=end,
    )


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
    path, colon, number = raw.rpartition(":")
    if not colon or not (number.isascii() and number.isdigit()):
        raise BadArguments(f"{raw!r} is no line; write PATH:NUMBER, such as MEMORY.md:14")
    document = site.store.documents.read(DocPath.parse(path))
    lines = lines_of(document.text)
    if not 1 <= int(number) <= len(lines):
        raise BadArguments(f"{path} has {len(lines)} lines, and no line {number}")
    if not said_in(lines[int(number) - 1]):
        raise BadArguments(f"{raw} says nothing; there is nothing to forget")
    return document.path, lines[int(number) - 1]


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


# -- where lines came from --------------------------------------------------------------------------------------------------


class Choice:
    """What is sought in one plan: the words, and what is meant by where it came from."""

    def __init__(self, site: Site, asked: Asked, sessions: frozenset[str], *, purge: bool) -> None:
        self._site, self._asked, self.sessions, self.purge, self.layer = site, asked, sessions, purge, asked.layer
        self._view = site.store.provenance if site.store.begun else None
        self._filter = asked.words if asked.texts or asked.pattern else None
        self.own_layer = layer_of(asked.sender, site.config.owner) if asked.sender else ""
        self._said = flat(asked.said).text if asked.said else ""
        self.matched: tuple[str, ...] = ()
        self.words = asked.words  # what chosen lines say comes to it, while a plan is made

    def lines(self, path: DocPath, text: str) -> set[int]:
        """The numbers, from 0, of the lines of a document that are meant. A heading goes with all that is below it."""
        if not self._asked.by_source or (self._is_timed and not self._has_memory(path)):
            return set()
        lines = lines_of(text)
        allowed = self._filter.hits(text) if self._filter else None
        found = {
            number
            for number, line in enumerate(lines)
            if (allowed is None or number in allowed) and line.strip() and self._means(path, line)
        }
        return _without_loose_headings(lines, found) if found and not self._asked.path else found

    @property
    def _is_timed(self) -> bool:
        """By time alone, only memory is meant: the day a home was made is no reason to lose its soul."""
        return not (self._asked.session or self._asked.sender or self._asked.origin or self._asked.path)

    def _has_memory(self, path: DocPath) -> bool:
        return self._site.layout.row_of(path).policy in (Policy.MEMORY, Policy.REVIEW)

    def _means(self, path: DocPath, line: str) -> bool:
        asked = self._asked
        if asked.path is not None:
            return path.key == asked.path.key and flat(line).text == self._said
        source = self._view.source(path, line) if self._view else OWNERS
        is_theirs = bool(self.own_layer) and layer_at(path) == self.own_layer
        if (asked.session or asked.sender) and source.session not in self.sessions and not is_theirs:
            return False
        if asked.origin and asked.origin not in (source.origin, *source.taint):
            return False
        return self._in_time(source, path)

    def _in_time(self, source: Source, path: DocPath) -> bool:
        since, until = self._asked.since, self._asked.until
        if source.time is not None or not (since or until):
            return self.within(source.time)
        day = self._site.layout.date_of(path)  # written before the ledger began: a log still says its day
        zone = self._site.now().tzinfo
        return day is not None and all(self.within(datetime.combine(day, at, zone)) for at in (time.min, time.max))

    def within(self, moment: datetime | None) -> bool:
        since, until = self._asked.since, self._asked.until
        if not (since or until):
            return True
        return moment is not None and (since is None or since <= moment) and (until is None or moment <= until)

    def all_of(self, session: str) -> bool:
        asked = self._asked
        narrowed = asked.texts or asked.pattern or asked.since or asked.until or asked.origin
        return session in self.sessions and not narrowed

    def entry(self, session: str, sender: str | None, time: datetime | None, text: str) -> bool:
        asked = self._asked
        timed = self._is_timed and bool(asked.since or asked.until)
        meant = session in self.sessions or timed or (asked.sender is not None and sender == asked.sender)
        return meant and self.within(time) and self.passes(text)

    def change(self, session: str | None, origins: Sequence[str], time: datetime, text: str) -> bool:
        asked = self._asked
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
