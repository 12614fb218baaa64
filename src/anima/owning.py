"""What the owner's verbs write: a remembered line, a note, an edit, the files of a new home, an import.

Promise: each makes changes and submits them to the road; none writes by itself. Not here: the road (writing), what a
remembered line looks like (memory).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from anima import templates
from anima.errors import BadArguments, HomeError
from anima.layout import Policy
from anima.memory import log_heading, log_line, remembered, replaced, twin_of
from anima.model import Actor, Change, DocPath, Kind, Receipt, digest_of
from anima.store.folder import FolderStore
from anima.writing import owners

if TYPE_CHECKING:
    from anima.home import Home

_BATCH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did: documents copied, documents that were there already, and files left out with the reason."""

    copied: tuple[str, ...]
    present: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    forgotten: tuple[tuple[str, int], ...] = ()  # documents that lack lines, because the owner had them forgotten


def remember(home: Home, fact: str, *, section: str | None, reason: str) -> Receipt:
    path = DocPath.parse(home.layout.curated)
    text = home.read(path).text if home.exists(path) else None
    if twin := twin_of(text or "", fact):
        said = f"{path} line {twin.line} says so already: {twin.text}"
        return Receipt(status="refused", path=path, rule="duplicate", reason=said)
    base = digest_of(text) if text is not None else ""
    change = owners(path, Kind.WRITE, remembered(text or "", fact, section=section), base=base, reason=reason)
    return home.writing.submit([change])[0]


def note(home: Home, content: str, *, reason: str) -> Receipt:
    now = home.reading.now()
    change = owners(home.layout.daily_path(now.date()), Kind.APPEND, log_line(content, now), reason=reason)
    return home.writing.submit([replace(change, opening=log_heading(now))])[0]


def edit(home: Home, path: DocPath, old: str, new: str, *, every: bool, reason: str) -> Receipt:
    document = home.read(path)
    text = replaced(document.text, old, new, every=every, path=document.path.text)
    return home.writing.submit([owners(document.path, Kind.WRITE, text, base=document.digest, reason=reason)])[0]


def seed(home: Home, *, name: str, emoji: str | None, bootstrap: bool) -> tuple[str, ...]:
    wanted = []
    for file, text in templates.texts(name, emoji).items():
        role = file.partition(".")[0].casefold()
        if (file == templates.BOOTSTRAP and not bootstrap) or not home.layout.has(role):
            continue
        path = DocPath.parse(home.layout.row(role).path)
        if home.store.actual(path) is None:
            wanted.append(owners(path, Kind.WRITE, text, base="", reason="templates of a new home"))
    if wanted:
        home.writing.submit(wanted, what="seed")
    home.store.make_folder(home.layout.daily)
    return tuple(change.path.text for change in wanted)


def import_directory(home: Home, folder: Path) -> Imported:
    if folder.resolve() == Path(home.root):
        raise BadArguments(f"{folder} is this home itself")
    wanted: list[Change] = []
    present: list[str] = []
    left_out: list[tuple[str, str]] = []
    forgotten: list[tuple[str, int]] = []
    source = FolderStore(folder)
    try:
        for entry in source.list_all():
            path = DocPath.parse(entry.path)
            try:
                _check_import(home, path)
                if home.store.actual(path) is not None:
                    present.append(path.text)
                    continue
                text, lines = home.writing.forgotten.without(source.read(path).text)
                if lines:
                    forgotten.append((path.text, lines))
                if text.strip() or not lines:
                    change = owners(path, Kind.WRITE, text, base="", reason="import")
                    wanted.append(replace(change, actor=Actor.IMPORTER))
            except HomeError as error:
                left_out.append((path.text, str(error).partition(": ")[2] or str(error)))
    finally:
        source.close()
    for start in range(0, len(wanted), _BATCH):
        home.writing.submit(wanted[start : start + _BATCH], what="import")
    copied = tuple(change.path.text for change in wanted)
    return Imported(copied=copied, present=tuple(present), left_out=tuple(left_out), forgotten=tuple(forgotten))


def _check_import(home: Home, path: DocPath) -> None:
    if not path.is_markdown:
        raise BadArguments(f"{path}: only Markdown is copied")
    if home.layout.row_of(path).policy is Policy.CLOSED:
        raise BadArguments(f"{path}: it belongs to the home's own machinery")
