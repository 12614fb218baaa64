"""The small mark beside a line of memory: who wrote it, whether it is trusted, and the sentence that says so.

Promise: a mark says what provenance says, in a word and a sign, never by colour alone. Not here: provenance itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anima.home import Home
from anima.ledger.provenance import OWNERS, Source, sentence
from anima.model import UNTRUSTED, Actor, Document
from anima.text.markdown import lines_of

WORDS = {
    Actor.OWNER: "you",
    Actor.AGENT: "agent",
    Actor.DREAMER: "dream",
    Actor.IMPORTER: "import",
    Actor.OUTSIDE: "outside",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """`kind` is the actor; `word` is shown where a run of such lines begins; `said` is the whole sentence."""

    kind: str
    word: str
    said: str
    trusted: bool
    begins: bool


def marks(home: Home, document: Document) -> Iterator[Mark | None]:
    """A mark for each line of a document; None for a line with nothing on it, which nobody wrote."""
    view = home.books.provenance if home.books.begun else None
    before = ("", "")
    told: dict[Source, str] = {}
    for line in lines_of(document.text):
        if not line.strip():
            yield None
            continue
        source = view.source(document.path, line.rstrip("\r\n")) if view else OWNERS
        if source not in told:
            told[source] = sentence(source, when_of(source))
        kind, word = str(source.actor), word_of(source)
        yield Mark(kind=kind, word=word, said=told[source], trusted=source.trusted, begins=(kind, word) != before)
        before = (kind, word)


def doubtful(home: Home, document: Document) -> int:
    """How many lines of a document are not trusted, as it stands."""
    if not home.books.begun or not home.books.provenance.distrusted_in(document.path):
        return 0
    return sum(mark is not None and not mark.trusted for mark in marks(home, document))


def when_of(source: Source) -> str:
    return f"{source.time:%Y-%m-%d %H:%M} UTC" if source.time else ""


def word_of(source: Source) -> str:
    """Who wrote it; with a sign before what was read when that was no text of the owner's."""
    foreign = sorted(({source.origin} | source.taint) & UNTRUSTED)
    if not foreign:
        return WORDS[source.actor]
    return f"{'✓' if source.trusted else '!'} {'+'.join(foreign)}"
