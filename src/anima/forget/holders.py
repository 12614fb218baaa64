"""Whoever keeps text, and how it goes from there: waiting changes, files, history, what was set aside, indexes.

Promise: `find` touches nothing and names everything that would go; history is rewritten as if the lines had never been
there, and the ledger's anchors in it stay true; files that are no documents lose their lines, or, where they are no
text, the bytes are made blank; then every byte beneath the home and every object of history is read again, and whatever
still holds it is named. Not here: documents and the order of things (forget), transcripts and snapshots (their rooms).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from anima.config import FILE
from anima.errors import BadPath, HomeError
from anima.layout import Policy, layer_at
from anima.memory import Proposals
from anima.model import MAX_BYTES, DocPath, digest_of
from anima.site import Site
from anima.store import Note, Whole
from anima.store.edits import without_text
from anima.text.markdown import lines_of
from anima.text.phrases import Left, Match, Sought, Touched, Wanted, blanked, cut, flat, forms_of, loose, words_of

_KNOWN = ("diff", "foreseen", "why", "bases", "changes", "findings", "forget", "call")  # where a proposal holds text
_BRIEF = 1_000  # characters of a text of which nothing is kept: transcripts have many
_TEXTS = frozenset({"text", "reason", "opening", "shown", "message", "said"})


class Hunt(Wanted):
    """What is looked for, and where it was found: plan, deed and proof come to the same texts, and so does history."""

    def __init__(self, **wanted: Any) -> None:
        super().__init__(**wanted)
        self._known = dict[str, tuple[Match, ...]]()  # by the digest of a text

    def matches(self, text: str) -> Iterator[Match]:
        if len(text) < _BRIEF:
            return super().matches(text)
        if (digest := digest_of(text)) not in self._known:
            self._known[digest] = tuple(super().matches(text))
        return iter(self._known[digest])


class Holder(Protocol):
    """Something that keeps text. What `find` gave is handed to the others."""

    name: str

    def find(self, sought: Sought) -> Iterator[Touched | Left | str]:
        """What it holds, or cannot say; a text is a note to the owner. Touches nothing."""
        yield from ()

    def forget(self, sought: Sought, found: Sequence[Touched]) -> Iterator[Left | str]:
        """Takes it out; gives what it could not, and notes."""
        yield from ()

    def proof(self, sought: Sought, found: Sequence[Touched]) -> Iterator[Left]:
        """Whether anything is left."""
        yield from ()


class Waiting(Holder):
    """Changes that wait for the owner: those that hold it, and those a forgotten session wants."""

    name = "inbox"

    def __init__(self, site: Site, proposals: Proposals) -> None:
        self._store, self._proposals = site.store, proposals

    def find(self, sought: Sought) -> Iterator[Touched]:
        for id, raw in self._proposals.raw() if sought.layer is None else ():
            try:
                found = json.loads(raw)
                texts = [text for key in _KNOWN for text in _strings(found.get(key))]
                origins, when = (found.get("origin"), *found.get("taint", ())), datetime.fromisoformat(found["created"])
                meant = sought.change(found.get("session"), origins, when, "\n".join(_strings(found.get("changes"))))
            except (ValueError, KeyError, AttributeError, RecursionError, TypeError):
                texts, meant = [loose(raw)], False
            if meant or any(sought.words.touches(text) for text in texts):
                yield Touched(place="proposal", where=id, why="made there" if meant else "holds it")

    def forget(self, sought: Sought, found: Sequence[Touched]) -> Iterator[Left]:
        with self._store.lock():
            for each in found:
                self._proposals.remove(each.where)
            self._store.finish()
            self._store.sweep()
        yield from ()


def _strings(value: Any) -> Iterator[str]:
    """The texts in a part of a proposal; names and numbers are none."""
    if isinstance(value, str):
        yield value
    if isinstance(value, dict):
        value = [each for key, each in value.items() if key in _TEXTS]
    for each in value if isinstance(value, list) else ():
        yield from _strings(each)


class SetAside(Holder):
    """What was put aside after a crash, or by a repair."""

    name = "aside"

    def __init__(self, site: Site) -> None:
        self._whole = site.store.whole

    def find(self, sought: Sought) -> Iterator[Touched | Left]:
        for path, data in _read(self._whole, self._whole.set_aside() if sought.layer is None else ()):
            is_its = path.rpartition("/")[2].rsplit(".", 2)[0] in sought.sessions
            if isinstance(data, Left) and not is_its:
                yield data
            elif is_its or (isinstance(data, bytes) and sought.words.touches(loose(data))):
                yield Touched(place="torn", where=path, why="put aside after a crash or by a repair")

    def forget(self, sought: Sought, found: Sequence[Touched]) -> Iterator[Left]:
        for each in found:
            self._whole.drop_set_aside(each.where)
        yield from ()


class Derived(Holder):
    """Something that is made of what is kept elsewhere; for a purge in files of its own, so that no free page holds it."""

    def __init__(self, name: str, freshen: Callable[[bool], None]) -> None:
        self.name, self._freshen = name, freshen  # which is told whether it must be made anew

    def forget(self, sought: Sought, found: Sequence[Touched]) -> Iterator[str]:
        try:
            self._freshen(sought.purge)
        except HomeError as error:
            yield f"the index is made again at the next search: {error}"


# -- files that are no documents ----------------------------------------------------------------------------------------------


class Files(Holder):
    """Files that are no documents, and the proof over every byte of the home. `is_transcript` says whose road is their own."""

    name = "files"

    def __init__(self, site: Site, is_transcript: Callable[[str], bool]) -> None:
        self._site, self._whole, self._is_transcript = site, site.store.whole, is_transcript

    def find(self, sought: Sought) -> Iterator[Touched | Left]:
        paths = (path for path, _ in self._whole.files() if not self._is_ours(path)) if sought.purge else ()
        for path, data in _read(self._whole, paths):
            if isinstance(data, Left):
                yield data
            elif not self._is_document(path, data) and _holds(sought.words, data):
                own = Left(path, "it is your configuration; edit it yourself")
                yield own if path == FILE else Touched(place="file", where=path, why="holds it")

    def _is_document(self, path: str, data: bytes) -> bool:
        with suppress(BadPath, UnicodeDecodeError):
            data.decode("utf-8")
            return is_document(self._site, DocPath.parse(path)) and len(data) <= MAX_BYTES
        return False

    def _is_ours(self, path: str) -> bool:
        """Whether a file has a road of its own: transcripts, history, machine state."""
        return self._whole.is_machinery(path) or self._is_transcript(path)

    def forget(self, sought: Sought, found: Sequence[Touched]) -> Iterator[Left]:
        for each in found:
            try:
                data = self._whole.read(each.where)
                if data is not None and (new := _cleaned(sought.words, data)) != data:
                    self._whole.replace(each.where, new)
            except HomeError as error:
                yield Left(each.where, str(error))

    def proof(self, sought: Sought, found: Sequence[Touched]) -> Iterator[Left]:
        firm = _firm(sought)
        for path, data in _read(self._whole, self._whole.traces() if sought.purge else ()):
            is_ours = self._is_ours(path) or path == FILE
            if isinstance(data, Left):
                yield data
            elif firm.touches(loose(data)) if is_ours else _holds(sought.words, data):
                named = "the ledger names it: a document's or a session's name"
                yield Left(path, named if path.endswith("ledger.jsonl") else "it still holds it")


def _read(whole: Whole, paths: Iterable[str]) -> Iterator[tuple[str, bytes | Left]]:
    """The bytes of those files that are still there, or why they cannot be read."""
    for path in paths:
        try:
            if (data := whole.read(path)) is not None:
                yield path, data
        except HomeError as error:
            yield path, Left(path, str(error))


def is_document(site: Site, path: DocPath) -> bool:
    """Whether a verb may write what stands there."""
    return path.is_markdown and site.layout.row_of(path).policy is not Policy.CLOSED


def _firm(sought: Sought) -> Wanted:
    """Those of the words that stand in no name or format of our own by chance."""

    def is_firm(phrase: str) -> bool:
        # A shorter word stands in names and formats of our own too.
        return len(flat(phrase).text) >= 8 or len(words_of(phrase)) > 1

    texts = (*sought.words.texts, *sought.matched)
    return Wanted(texts=filter(is_firm, texts), lines=filter(is_firm, sought.words.lines))


def _holds(wanted: Wanted, data: bytes) -> bool:
    if wanted.touches(loose(data)):
        return True
    if b"\0" not in data:
        return False  # else letters of two bytes each, as some programs write them
    wide = any(form in data for text in wanted.texts for form in forms_of(text))
    return wide or any(wanted.touches(data.decode(kind, "replace")) for kind in ("utf-16-le", "utf-16-be"))


def _cleaned(wanted: Wanted, data: bytes) -> bytes:
    """Text loses lines; anything else keeps its length."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        found = wanted.found(loose(data)) | set(wanted.texts)
        for kind in ("utf-16-le", "utf-16-be"):
            found |= wanted.found(data.decode(kind, "replace"))
        return blanked(data, found)
    text = without(text, wanted.hits(text), wanted.hits)
    if wanted.touches(loose(text.encode())):  # escaped, as JSON does it
        text = "".join(line for line in lines_of(text) if not wanted.touches(loose(line.encode())))
    return text.encode("utf-8")


def without(text: str, hits: set[int], again: Callable[[str], set[int]]) -> str:
    """A text without these lines, and without what only their going brought together: `again` looks."""
    while hits:
        text = cut(text, hits)
        hits = again(text)
    return text


# -- history ------------------------------------------------------------------------------------------------------------------


class Versions(Holder):
    """Every version that history holds."""

    name = "history"

    def __init__(self, site: Site) -> None:
        self._site, self._store = site, site.store

    def texts(self) -> Iterator[tuple[DocPath, str]]:
        """Every text history holds of every document."""
        with self._store.kept_history() as found:
            for _, path, data in found.versions() if found else ():
                with suppress(BadPath, UnicodeDecodeError):
                    if path is not None:
                        yield DocPath.parse(path), data.decode("utf-8")

    def find(self, sought: Sought) -> Iterator[Touched | Left | str]:
        if not sought.purge:
            return
        held: dict[str, None] = {}
        try:
            with self._store.kept_history() as history:
                for revision, path, data in history.versions() if history else ():
                    said = without_text(data.decode(), sought.words.touches).encode() if path is None else b""
                    if (said if path is None else _version(sought, path, data)) != data:
                        held[revision] = None
                if history is not None and (others := history.others()):
                    yield f"of history only main is kept; these go: {', '.join(others[:10])}"
        except HomeError as error:
            yield Left("history", str(error))
        if self._store.whole.has_foreign_git:
            yield "the .git here is not anima's; its history is not rewritten"
        yield from (Touched(place="history", where=id[:12], why="a revision that holds it") for id in reversed(held))

    def forget(self, sought: Sought, found: Sequence[Touched]) -> Iterator[Left]:
        """Rewrites history, and deletes what was set aside of broken ones."""
        if not sought.purge:
            return
        self._store.commit()
        note = Note(what="forget", actor="owner", author=self._store.author, time=self._site.clock())
        try:
            with self._store.lock(), self._store.kept_history() as history:
                if history is not None:
                    says = partial(without_text, holds=sought.words.touches)
                    history.rewrite(partial(_version, sought), says, note)
            self._store.whole.drop_old_histories()
        except HomeError as error:
            yield Left("history", str(error))

    def proof(self, sought: Sought, found: Sequence[Touched]) -> Iterator[Left]:
        if not sought.purge:
            return
        firm = _firm(sought)
        try:
            with self._store.kept_history() as history:
                objects = history.objects() if history else ()
                for name, data in objects:  # the firm words are some of all, of which it is known where they stand
                    if (sought.matched or _holds(sought.words, data)) and _holds(firm, data):
                        yield Left("history", f"object {name[:12]} holds it")
        except HomeError as error:
            yield Left("history", str(error))


def _version(sought: Sought, path: str, data: bytes) -> bytes | None:
    """A version of a file as if it had never held it; None where nothing else was in it."""
    try:
        text, place = data.decode("utf-8"), DocPath.parse(path)
    except (UnicodeDecodeError, BadPath):
        return _cleaned(sought.words, data)
    if path == FILE:
        return data
    if sought.own_layer and layer_at(place) == sought.own_layer:
        return None
    if not (hits := sought.lines(place, text) | sought.words.hits(text)):
        return data
    text = without(text, hits, sought.words.hits)
    return text.encode("utf-8") if text.strip() else None
