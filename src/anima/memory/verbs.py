"""What the owner's verbs write: a remembered line, a note, an edit, the files of a new home.

Promise: each makes changes and submits them to the road; none writes by itself. Not here: the road (writing), what a
remembered line looks like (memory), imports (arriving).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from anima.layout import starter
from anima.memory.line import log_heading, log_line, opening_for, remembered, replaced, twin_of
from anima.memory.write import owners
from anima.model import DocPath, Kind, Receipt, digest_of

if TYPE_CHECKING:
    from anima.home import Home


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
    now = home.site.now()
    path = home.layout.daily_path(now.date())
    before = opening_for(home.read(path).text) if home.exists(path) else ""
    change = owners(path, Kind.APPEND, before + log_line(content, now), reason=reason)
    return home.writing.submit([replace(change, opening=log_heading(now))])[0]


def edit(home: Home, path: DocPath, old: str, new: str, *, every: bool, reason: str) -> Receipt:
    document = home.read(path)
    text = replaced(document.text, old, new, every=every, path=document.path.text)
    return home.writing.submit([owners(document.path, Kind.WRITE, text, base=document.digest, reason=reason)])[0]


def seed(home: Home, *, name: str, emoji: str | None, bootstrap: bool) -> tuple[str, ...]:
    wanted = []
    for file, text in starter.texts(name, emoji).items():
        role = file.partition(".")[0].casefold()
        if (file == starter.BOOTSTRAP and not bootstrap) or not home.layout.has(role):
            continue
        path = DocPath.parse(home.layout.row(role).path)
        if home.store.actual(path) is None:
            wanted.append(owners(path, Kind.WRITE, text, base="", reason="templates of a new home"))
    if wanted:
        home.writing.submit(wanted, what="seed")
    home.store.make_folder(home.layout.daily)
    return tuple(change.path.text for change in wanted)
