"""Unreviewed entries: what was added after outside text was read, in `unreviewed/YYYY-MM-DD.md` until the owner looks.

Promise: an entry names its destination, where its text came from and in which session; its name is a digest of what it
would add and where, so that a yes is bound to just that, and the same wish twice is one entry. The text stands quoted,
so that nothing in it can pass for an entry. Trust is where a line stands: no prompt, dream or flush reads these files,
and they travel with every copy of the home.
Not here: whether something lands here (gate), adding to it (write), the owner's keep and drop (inbox).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from anima.errors import BadPath, HomeError
from anima.layout.listener import folder_of
from anima.model import Change, DocPath, Origin, Scope, fold
from anima.store import Documents
from anima.text.dates import day_in_name
from anima.text.markdown import lines_of

FOLDER = "unreviewed"
ARCHIVE = "archive"
IMPORT = "import-"  # how the folder of an import is called; what stands in it are whole documents
_UNSEEN = timedelta(days=90)
MOST_OF_SESSION = 500  # entries of one session that may wait
MOST_OF_GUEST = 2_000  # and of an agent elsewhere, in however many
MOST = 20_000
_HEAD = re.compile(r"## (u[0-9a-f]{12}) for ")
_ABOUT = re.compile(r"<!-- (\{.*\}) -->\s*\Z")
_TIME = re.compile(r"^\[\d\d:\d\d\] ")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """One entry. `text` is what would be added to `to`, under the heading `section` where one was named."""

    id: str
    to: DocPath
    text: str
    place: DocPath  # the document it stands in
    section: str | None = None
    origins: frozenset[Origin] = frozenset()
    session: str | None = None
    guest: str = ""
    scope: Scope | None = None
    time: str = ""

    @property
    def layer(self) -> str:
        """The folder before the place, with its slash: "" for the owner's own."""
        return self.place.text[: self.place.key.find(f"{FOLDER}/")]

    @property
    def is_whole(self) -> bool:
        """Whether it is a document of its own, which an import brought."""
        return self.place.key.startswith(f"{fold(self.layer)}{FOLDER}/{IMPORT}")


def name_of(to: DocPath, section: str | None, text: str) -> str:
    body = json.dumps([to.key, section, text], ensure_ascii=True).encode()
    return f"u{hashlib.sha256(body).hexdigest()[:12]}"


def layer_folder(layer: str) -> str:
    """The folder of a layer with its slash; "" for the owner's own."""
    return f"{folder_of(layer)}/" if layer else ""


def noted(change: Change, place: DocPath, now: datetime, origins: Iterable[Origin]) -> list[Noted]:
    """The entries of an addition that waits for the owner; each point of a list is one, to be kept or dropped by itself."""
    return [
        Noted(
            id=name_of(change.path, change.section, text),
            to=change.path,
            text=text,
            place=place,
            section=change.section,
            origins=frozenset(origins),
            session=change.session,
            guest=change.guest,
            scope=change.scope,
            time=now.isoformat(timespec="minutes"),
        )
        for text in _points(
            "".join(f"{line.rstrip()}\n" for line in (change.added or change.text).strip("\n").split("\n"))
        )
    ]


def _points(text: str) -> list[str]:
    """The points of a text that is nothing but a list; else the text."""
    found: list[str] = []
    for line in lines_of(text):
        if line.startswith("- "):
            found.append(line)
        elif found and (line.startswith("  ") or not line.strip()):
            found[-1] += line
        else:
            return [text]
    return [point.rstrip() + "\n" for point in found]


def drawn(entry: Noted) -> str:
    """An entry as it stands in its document."""
    about: dict[str, Any] = {
        "to": entry.to.text,
        "section": entry.section,
        "from": sorted(entry.origins),
        "session": entry.session,
        "guest": entry.guest,
        "scope": entry.scope,
        "time": entry.time,
    }
    said = json.dumps({name: value for name, value in about.items() if value}, ensure_ascii=True)
    said = said.replace("<", "\\u003c").replace(">", "\\u003e").replace("--", "\\u002d-")
    quoted = "".join(f"> {line}".rstrip() + "\n" for line in entry.text.rstrip("\n").split("\n"))
    return f"## {entry.id} for {entry.to.text}\n<!-- {said} -->\n\n{quoted}\n"


def parsed(place: DocPath, text: str) -> Iterator[tuple[Noted, int, int]]:
    """The entries of a document with the lines they stand on (from 0, the end not included); what is none is passed over."""
    lines = lines_of(text)
    starts = [n for n, line in enumerate(lines) if _HEAD.match(line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
        entry = _entry(place, lines[start:end])
        if entry is not None:
            yield entry, start, end


def _entry(place: DocPath, lines: list[str]) -> Noted | None:
    about = _ABOUT.match(lines[1]) if len(lines) > 1 else None
    body = [line.removeprefix(">").removeprefix(" ").rstrip("\r\n") for line in lines if line.startswith(">")]
    if about is None or not any(line.strip() for line in body):
        return None
    try:
        raw = json.loads(about[1])
        to, section, text = DocPath.parse(raw["to"]), raw.get("section"), "\n".join(body) + "\n"
        return Noted(
            id=name_of(to, section, text),
            to=to,
            text=text,
            section=section,
            origins=frozenset(Origin(each) for each in raw.get("from", ())),
            session=raw.get("session"),
            guest=str(raw.get("guest", "")),
            scope=Scope(raw["scope"]) if raw.get("scope") else None,
            time=str(raw.get("time", "")),
            place=place,
        )
    except (ValueError, KeyError, TypeError, AttributeError, BadPath, RecursionError):
        return None


def without(text: str, place: DocPath, ids: Iterable[str]) -> str | None:
    """A document without some entries; None when nothing but its title is left."""
    gone, lines = set(ids), lines_of(text)
    for entry, start, end in reversed(list(parsed(place, text))):
        if entry.id in gone:
            del lines[start:end]
    left = "".join(lines)
    return left if any(line.strip() and not line.startswith("# ") for line in lines) else None


def words_of(line: str) -> str:
    """What a line says, whatever its list sign, its quotation sign, its time and its marks."""
    plain = re.sub(r"^[>\s]*(?:[-*+]\s+)?", "", line)
    return " ".join(_WORD.findall(_TIME.sub("", plain).casefold()))


class Unreviewed:
    """The unreviewed entries of one home. Looking begins nothing."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._read: dict[str, tuple[str, tuple[Noted, ...]]] = {}  # path: version, entries

    def all(self, layer: str | None = None) -> tuple[Noted, ...]:
        """The entries that wait, oldest first: all, or those of one layer ("" for the owner's)."""
        found = [entry for place in self._places() for entry in self._entries(place)]
        return tuple(entry for entry in found if layer is None or fold(entry.layer) == fold(layer))

    def unseen(self, layer: str, today: date) -> Iterator[tuple[DocPath, DocPath]]:
        """The days of a layer that nobody came to in so long that they are put away, and where they go."""
        spelt = self._documents.actual(DocPath.parse(f"{layer}{FOLDER}"))
        for entry in self._documents.list(spelt) if spelt else ():
            day = day_in_name(entry.name)
            if not entry.is_folder and day and today - day > _UNSEEN:
                yield DocPath.parse(entry.path), DocPath.parse(f"{spelt}/{ARCHIVE}/{entry.name}")

    def _places(self) -> list[str]:
        folders = [FOLDER]
        for kind in ("users", "groups"):
            spelt = self._documents.actual(DocPath.parse(kind))
            folders += [f"{spelt}/{name}/{FOLDER}" for name in self._documents.names(spelt)] if spelt else []
        places = []
        for folder in folders:
            try:
                spelt = self._documents.actual(DocPath.parse(folder))
                for entry in self._documents.list(spelt) if spelt else ():
                    if not entry.is_folder:
                        places.append(entry.path)
                    elif entry.name.startswith(IMPORT):
                        places += [each.path for each in self._documents.list_all(entry.path)]
            except (BadPath, HomeError):
                continue
        return [place for place in places if place.endswith(".md")]

    def _entries(self, place: str) -> tuple[Noted, ...]:
        version = self._documents.version(place)
        held = self._read.get(place)
        if version is None or held is None or held[0] != version:
            try:
                document = self._documents.read(DocPath.parse(place))
            except HomeError:
                return ()
            path, text, when = document.path, document.text, document.time.isoformat(timespec="minutes")
            entries = tuple(entry for entry, _, _ in parsed(path, text))
            whole = Noted(id="", to=path, text=text, origins=frozenset({Origin.IMPORT}), place=path, time=when)
            if whole.is_whole:
                to = DocPath.parse(path.text[len(whole.layer) :].split("/", 2)[2])
                entries = (replace(whole, id=name_of(to, None, text), to=to),)
            held = self._read[place] = (version or "", entries)
        return held[1]

    def recognised(self, text: str, layer: str) -> set[int]:
        """The lines of a text, from 0, that say what an entry of that layer says."""
        entries = self.all(layer)
        if not entries:
            return set()
        waiting = {words_of(line) for entry in entries for line in lines_of(entry.text)} - {""}
        return {n for n, line in enumerate(lines_of(text)) if words_of(line) in waiting}

    def origins_in(self, path: DocPath, text: str) -> frozenset[Origin]:
        """Where the entries of a document came from, as far as `text` shows it or in all of it."""
        found = frozenset[Origin]().union(*(entry.origins for entry, _, _ in parsed(path, text)))
        return found or frozenset[Origin]().union(*(entry.origins for entry in self._entries(path.text)))
