"""Privacy: the filter that every prompt passes last, after hooks and additional files.

Promise: a piece that is, or holds a copy of, something kept from the listener is hidden, whatever its place, spelling,
line ends, blanks or Unicode form. What is kept is looked up only when a piece needs to be compared.
Not here: who may see what (layout.listener), and what section marks hide of a document (Listener.view).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from anima.errors import BadPath, HomeError
from anima.layout.listener import Listener, layer_at
from anima.layout.table import Layout
from anima.model import DocPath, Document
from anima.prompt.compose import Piece
from anima.store import Documents
from anima.text.markdown import marks_in, sections

Hook = Callable[[tuple[Piece, ...]], Sequence[Piece]]
_PASSAGE = 24  # a shorter text may stand inside another by accident; it counts when it is all of it
_LINES = re.compile(r"[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
_OPEN_ROLES = frozenset({"skill", "subagent", "config"})  # never injected, yet nothing private


class Privacy:
    """What one listener may be shown of one home, for the length of one prompt.

    `table` is the layout without what a configuration calls a soul; `read` holds the documents the prompt is made of.
    """

    def __init__(
        self,
        layout: Layout,
        table: Layout,
        listener: Listener,
        documents: Documents,
        document: Callable[[str], Document | None],
        read: Mapping[str, Document],
    ) -> None:
        self._layout, self._table, self._listener, self._documents = layout, table, listener, documents
        self._document, self._read = document, read
        self._kept: dict[bool, list[Secret]] = {}
        self.alternate = False  # the soul that is worn is a file of the owner's choice

    def is_free(self, path: DocPath) -> bool:
        """Whether the table says nothing of a file, so that the configuration alone decides who sees it."""
        return self._table.row_of(path).role == "note" and layer_at(path) is None

    def may_place(self, path: DocPath) -> bool:
        """Whether a file of the owner's choice may stand in this listener's prompt."""
        return self.is_free(path) or self._listener.sees(self._table, path)

    def passed(self, pieces: Sequence[Piece], ours: Sequence[Piece]) -> list[Piece]:
        """The pieces, with every one hidden that this listener may not see; those that are not `ours` are a hook's."""
        own, passed = set(map(id, ours)), []
        for piece in pieces:
            if id(piece) not in own:
                piece = self._foreign(piece)
            elif not piece.problem and piece.source is not None:
                wide = piece.row.form == "additional" or (piece.row.role == "soul" and self.alternate)
                is_kept = self._tells_secret(piece.text, piece.source, wide=wide)
                piece = self._hidden(piece, copy=True) if is_kept else piece
            passed.append(piece)
        return passed

    def _hidden(self, piece: Piece, *, copy: bool = False) -> Piece:
        why = self._listener.why_hidden(piece.row, copy=copy)
        return Piece(row=piece.row, path=piece.path, text="", problem="hidden", reason=why)

    def _foreign(self, piece: Piece) -> Piece:
        """A hook's piece: it may stand in no row and name no file that this listener may not see."""
        row = piece.row
        try:
            place = piece.source or (DocPath.parse(piece.path) if piece.path else None)
        except BadPath:
            return self._hidden(piece)
        is_rows_own = row.form == "additional" or self._listener.scope in row.scopes
        if not is_rows_own or (place and not (self.is_free(place) or self._listener.sees(self._layout, place))):
            return self._hidden(piece)
        if self._tells_secret(piece.text, place, wide=True):
            return self._hidden(piece, copy=True)
        part = self._listener.view(self._layout, None, piece.text, visible=True)
        return piece if part.whole else replace(piece, text=part.text, whole=False)

    def _tells_secret(self, text: str, place: DocPath | None, *, wide: bool) -> bool:
        """Whether a text, or the file it came from, is a copy of what is kept; wide: or holds such a text whole."""
        if wide not in self._kept:
            self._kept[wide] = list(self._secrets(wide=wide))
        document = self._document(place.text) if place else None
        texts = [text] if document is None or document.text is text else [text, document.text]
        others = [secret for secret in self._kept[wide] if not (place and secret.is_file(place))]
        return any(tells(text, others, whole=not wide) for text in texts)

    def _secrets(self, *, wide: bool) -> Iterator[Secret]:
        """What this listener may not see: the files of the table's rows, or (wide) all of the home."""
        for row in self._layout.rows:
            document = self._document(row.path) if row.form in ("text", "identity") else None
            if document and not self._listener.sees(self._layout, document.path):
                yield Secret(text=document.text, path=document.path)
        if not wide:
            return
        for document in list(self._read.values()):  # the private sections of documents that are not private themselves
            found = sections(document.text) if marks_in(document.text).private else ()
            yield from (Secret(text=document.text[each.body : each.end]) for each in found if each.private)
        for path in map(DocPath.parse, self._beneath("")):
            if self.is_free(path) or self._table.row_of(path).role in _OPEN_ROLES:
                continue
            if not self._listener.sees(self._table, path) and (document := self._document(path.text)):
                yield Secret(text=document.text, path=document.path)

    def _beneath(self, folder: str) -> Iterator[str]:
        try:
            entries = self._documents.list(folder)
        except HomeError:
            return  # nothing in it can be read, by anybody
        for entry in entries:
            if entry.is_folder:
                yield from self._beneath(entry.path)
            else:
                yield entry.path


# -- copies --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A text that is kept from a listener; `path` where it is all of a file."""

    text: str
    path: DocPath | None = None

    def is_file(self, place: DocPath) -> bool:
        return self.path is not None and self.path.key == place.key


def tells(text: str, secrets: Sequence[Secret], *, whole: bool) -> bool:
    """Whether a text is a copy of one of these, or (unless `whole`) holds one of them among other things."""
    opening, words, lines = _opening(text), "", set[str]()
    if not whole:
        words, lines = flat(text), set(map(flat, text.splitlines()))
    for secret in secrets:
        first = _opening(secret.text)
        alike = first.startswith(opening) or opening.startswith(first)
        if not alike and (whole or _first_line(secret.text) not in lines):
            continue  # a quick answer for nearly all of them
        words, kept = words or flat(text), flat(secret.text)
        if kept and (kept == words or (not whole and len(kept) >= _PASSAGE and kept in words)):
            return True
    return False


def flat(text: str) -> str:
    """The words of a text: what a copy shares even after its BOM, line ends, blanks or Unicode form changed."""
    return " ".join(unicodedata.normalize("NFKC", text).replace("\ufeff", "").split())


def _opening(text: str) -> str:
    """The first three words: what two copies share, however their blanks and line ends differ."""
    words = flat(text[:400]).split(" ")
    return " ".join(words[:3] if len(text) <= 400 else words[:-1][:3])


def _first_line(text: str) -> str:
    return next((flat(line[0]) for line in _LINES.finditer(text) if line[0].strip()), "")
