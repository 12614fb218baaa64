"""Purging: what was forgotten goes from history, foreign files and free pages too, and the home is searched for it.

Promise: history is rewritten as if the lines had never been there, and the ledger's anchors in it stay true; files that
are no documents lose their lines, or, where they are no text, the bytes are made blank; then every byte beneath the
home and every object of history is read again, and whatever still holds it is named. Not here: what is looked for
(phrases), documents and transcripts (forgetting).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from anima.config import FILE
from anima.errors import BadPath, Damaged, HomeError
from anima.layout import starter
from anima.layout.listener import layer_at
from anima.model import DocPath
from anima.sessions.record import touched
from anima.store.aside import set_aside_repositories
from anima.store.foreign import bytes_of, drop_folder, files_in, put_back
from anima.store.revision import without_text
from anima.text.markdown import lines_of
from anima.text.phrases import Wanted, blanked, cut, flat, forms_of, loose, said_in, words_of

if TYPE_CHECKING:
    from anima.home import Home
    from anima.store.git import History

Lines = Callable[[DocPath, str], set[int]]
SNAPSHOTS = ".anima/snapshots/"
_KEPT = (".anima/key", ".anima/index.lock", ".anima/forgotten")  # no text, and none of these is searched
_FIRM = 8  # characters; a shorter word stands in names and formats of our own too


class Left(NamedTuple):
    """Something that still holds it, and why."""

    where: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """What purging would reach."""

    wanted: Wanted
    lines: Lines  # chosen by where they came from
    layer: str
    found: tuple[tuple[str, str, str, int], ...] = ()  # place, where, why, count
    files: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()
    notes: tuple[str, ...] = ()


@cache
def common_lines() -> frozenset[str]:
    """What every home says: no line of a template tells anything of anybody."""
    return frozenset(said_in(line) for text in starter.texts("", None).values() for line in lines_of(text))


def versions(home: Home) -> Iterator[tuple[DocPath, str]]:
    """Every text history holds of every document."""
    with _opened(home) as found:
        for _, path, data in found.versions() if found else ():
            try:
                if path is not None:
                    yield DocPath.parse(path), data.decode("utf-8")
            except (BadPath, UnicodeDecodeError):
                continue


# -- looking ----------------------------------------------------------------------------------------------------------------


def look(home: Home, wanted: Wanted, lines: Lines, layer: str, documents: set[str]) -> Purge:
    """What history and foreign files hold. Touches nothing."""
    empty = Purge(wanted=wanted, lines=lines, layer=layer)
    found, left, notes = _in_history(home, empty)
    files: list[str] = []
    for path, _ in files_in(home.store):
        if _is_ours(home, path) or path in documents:
            continue
        try:
            data = bytes_of(home.store, path)
        except Damaged as error:
            left.append(Left(path, str(error)))
            continue
        if data is None or not _holds(wanted, data):
            continue
        if path == FILE:
            left.append(Left(path, "it is your configuration; edit it yourself"))
            continue
        files.append(path)
        found.append(("file", path, "holds it", 1))
    return Purge(
        wanted=wanted,
        lines=lines,
        layer=layer,
        found=tuple(found),
        files=tuple(files),
        left=tuple(left),
        notes=tuple(notes),
    )


def _in_history(home: Home, purge: Purge) -> tuple[list[tuple[str, str, str, int]], list[Left], list[str]]:
    found: dict[str, int] = {}
    notes: list[str] = []
    left: list[Left] = []
    try:
        with _opened(home) as history:
            for revision, path, data in history.versions() if history else ():
                held = (
                    without_text(data.decode(), purge.wanted.touches) != data.decode()
                    if path is None
                    else _clean(purge, path, data) != data
                )
                found[revision] = found.get(revision, 0) + held
            if history is not None and (others := history.others()):
                notes.append(f"of history only main is kept; these go: {', '.join(others[:10])}")
    except HomeError as error:
        left.append(Left("history", str(error)))
    if home.store.stat(".git") is not None and not _is_own_git(home):
        notes.append("the .git here is not anima's; its history is not rewritten")
    return [("history", name[:12], "a revision that holds it", 1) for name, n in found.items() if n], left, notes


def _is_ours(home: Home, path: str) -> bool:
    """Whether a file has a road of its own: documents, transcripts, history, machine state."""
    top = path.partition("/")[0]
    if top == ".anima" or top == ".git" or (top.startswith(".git.") and _is_own_git(home)):
        return True
    return _is_talk(home, path)


def _is_talk(home: Home, path: str) -> bool:
    folder, _, name = path.rpartition("/")
    folders = {each.folder for each in home.sessions.folders()}
    return folder in folders and (name.endswith(".jsonl") or name == "sessions.json")


def _is_own_git(home: Home) -> bool:
    return home.store.stat(".git/anima") is not None


def _holds(wanted: Wanted, data: bytes) -> bool:
    return wanted.touches(loose(data)) or (b"\0" in data and _holds_wide(wanted, data))


def _holds_wide(wanted: Wanted, data: bytes) -> bool:
    """The same for letters of two bytes each, as some programs write them."""
    wide = any(form in data for text in wanted.texts for form in forms_of(text))
    return wide or any(wanted.touches(data.decode(kind, "replace")) for kind in ("utf-16-le", "utf-16-be"))


# -- doing ------------------------------------------------------------------------------------------------------------------


def foreign(home: Home, purge: Purge) -> list[Left]:
    """Takes it out of files that are no documents."""
    left = []
    for path in purge.files:
        try:
            data = bytes_of(home.store, path)
            if data is not None and (new := _cleaned(purge.wanted, data)) != data:
                put_back(home.store, home.books.machine, path, new)
        except HomeError as error:
            left.append(Left(path, str(error)))
    return left


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
    while hits := wanted.hits(text):
        text = cut(text, hits)
    if wanted.touches(loose(text.encode())):  # escaped, as JSON does it
        lines = lines_of(text)
        text = "".join(line for line in lines if not wanted.touches(loose(line.encode())))
    return text.encode("utf-8")


def history(home: Home, purge: Purge) -> list[Left]:
    """Rewrites history, and deletes what was set aside of broken ones."""
    from anima.store.git import Note

    books, left = home.books, list[Left]()
    books.commit()
    note = Note(what="forget", actor="owner", author=books.author, time=home.clock())
    try:
        with books.machine.lock.hold(), _opened(home) as found:
            if found is not None:
                found.rewrite(
                    lambda path, data: _clean(purge, path, data),
                    lambda said: without_text(said, purge.wanted.touches),
                    note,
                )
        books.reset_history()
        for name in _set_aside(home):
            drop_folder(home.store, name)
    except HomeError as error:
        left.append(Left("history", str(error)))
    return left


def _set_aside(home: Home) -> list[str]:
    """Repositories that a repair or an interrupted rewriting left beside our own."""
    store = home.store
    own = [name for name in store.raw_names("") if name.startswith(".git.")] if _is_own_git(home) else []
    own += set_aside_repositories(store)
    return own + [f".anima/{name}" for name in store.raw_names(".anima") if name.startswith("history.git.")]


def _clean(purge: Purge, path: str, data: bytes) -> bytes | None:
    """A version of a file as if it had never held it; None where nothing else was in it."""
    try:
        text, place = data.decode("utf-8"), DocPath.parse(path)
    except (UnicodeDecodeError, BadPath):
        return _cleaned(purge.wanted, data)
    if path == FILE:
        return data
    if purge.layer and layer_at(place) == purge.layer:
        return None
    hits = purge.lines(place, text) | purge.wanted.hits(text)
    if not hits:
        return data
    while hits:
        text = cut(text, hits)
        hits = purge.wanted.hits(text)
    return text.encode("utf-8") if text.strip() else None


# -- proving ----------------------------------------------------------------------------------------------------------------


def proof(home: Home, wanted: Wanted, phrases: Iterable[str]) -> list[Left]:
    """Reads every byte beneath the home, and every object of history, and names what still holds it."""
    texts = [*wanted.texts, *(phrases if wanted.pattern else ())]
    firm = Wanted(texts=filter(_is_firm, texts), lines=filter(_is_firm, wanted.lines))
    left: list[Left] = []
    for path, _ in files_in(home.store):
        try:
            if (why := _still(home, path, wanted, firm)) is not None:
                left.append(Left(path, why))
        except HomeError as error:
            left.append(Left(path, str(error)))
    try:
        with _opened(home) as found:
            objects = found.objects() if found else ()
            left += [Left("history", f"object {name[:12]} holds it") for name, data in objects if _holds(firm, data)]
    except HomeError as error:
        left.append(Left("history", str(error)))
    for folder in home.sessions.folders():
        left += [
            Left(folder.path_of(seen.id), "it was said again meanwhile")
            for seen in folder.walk()
            if touched(folder, seen.id, wanted.touches)
        ]
    return left


def _still(home: Home, path: str, wanted: Wanted, firm: Wanted) -> str | None:
    if path in _KEPT or path.startswith(SNAPSHOTS):
        return None
    if path.startswith((".git/objects/", ".anima/history.git/objects/")) and "/.git/" not in path[1:]:
        return None
    if path.startswith(".git/") and not _is_own_git(home):
        return None
    data = bytes_of(home.store, path)
    ours = _is_ours(home, path) or path == FILE
    if data is None or not (firm.touches(loose(data)) if ours else _holds(wanted, data)):
        return None
    return (
        "the ledger names it: a document's or a session's name"
        if path.endswith("ledger.jsonl")
        else "it still holds it"
    )


def _is_firm(phrase: str) -> bool:
    return len(flat(phrase).text) >= _FIRM or len(words_of(phrase)) > 1


@contextmanager
def _opened(home: Home) -> Iterator[History | None]:
    """Our repository, also while history is switched off; None where there is none."""
    if home.books.begun and (found := home.books.history) is not None:
        yield found
        return
    from anima.store.git import History

    places = (f"{home.root}/.git", f"{home.root}/.anima/history.git")
    place = next((place for place in places if os.path.isfile(f"{place}/anima")), None)
    own = History.open(place) if place else None
    try:
        yield own
    finally:
        if own is not None:
            own.close()
