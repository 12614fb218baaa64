"""The road out: the system prompt, fitted into its budget and drawn, with an account of every row; and its last filter.

Promise: `text == stable + volatile`; no budget is passed by one character; `stable` depends on stable rows alone, so it
stays byte-equal while memory, logs and the clock move; what is data cannot open or close a frame of ours. A piece that
is, or holds a copy of, something kept from the listener is hidden, whatever its place, spelling, line ends, blanks or
Unicode form. Pure. Not here: reading (gather), who may see what, and what section marks hide (layout).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import dropwhile
from typing import Literal

from anima.errors import BadPath, HomeError
from anima.layout import CUT_MARK, Layout, Listener, Row, layer_at
from anima.model import MAX_DEPTH, DocPath, Document, Scope
from anima.store import Documents
from anima.text.markdown import BOM, defuse_tags, marks_in, sections

Status = Literal["shown", "cut", "missing", "hidden", "dropped", "empty", "unreadable"]
LEAST = 64  # fewer characters than this of a text are not worth their heading
_FROM = ", from line {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One text on its way into the prompt, already as this listener may see it. A hook receives and returns these;
    `source` names the file it came from, for the privacy filter that runs after it."""

    row: Row
    path: str  # as shown; empty for rows that are no file
    text: str
    chars_raw: int = 0
    whole: bool = True  # line numbers are those of the file
    when: str = ""  # "Today" or "Yesterday", for daily logs
    day: str = ""
    first: bool = True  # of several daily logs, the one that carries the common heading
    problem: Status | None = None  # missing, hidden or unreadable: the text is then a marker or empty
    reason: str = ""
    source: DocPath | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of the manifest: what became of one file."""

    path: str
    role: str
    status: Status
    chars_raw: int = 0
    chars_shown: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Budgets in characters; `total` counts everything in the prompt."""

    file: int
    total: int
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A system prompt for one listener. `manifest` has a row for every file that was shown, cut, missing or hidden."""

    stable: str
    volatile: str
    manifest: tuple[Line, ...]
    scope: Scope
    dialect: str
    persona: str | None = None  # the file of the soul that is worn
    limits: Limits
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return self.stable + self.volatile


class _Block:
    """A piece with its wrapping, while room is being given out."""

    __slots__ = ("body", "head", "line", "piece", "stable", "tail", "text", "title", "whole", "wrapping")

    def __init__(self, piece: Piece, text: str, *, title: str, head: str, tail: str, whole: bool) -> None:
        self.piece, self.text, self.title, self.head, self.tail, self.whole = piece, text, title, head, tail, whole
        self.wrapping, self.stable = len(head) + len(tail), piece.row.stable
        self.body = ""  # what is drawn of it
        self.line: Line | None = None


def compose(
    pieces: Sequence[Piece],
    *,
    layout: Layout,
    limits: Limits,
    scope: Scope,
    order: str = "stable",
    style: str = "markdown",
    persona: str | None = None,
    notes: Iterable[str] = (),
) -> Prompt:
    """The prompt of these pieces: ordered, fitted, drawn."""
    drawing = layout
    if style == "xml":  # a tag for each row instead of the dialect's own headings
        tags = tuple(dict.fromkeys(_tag(row) for row in layout.rows if row.form != "fixed"))
        drawing = replace(layout, heading=_XML, join="\n\n", guard="", frame=tags)
    elif layout.heading.startswith("<"):
        paths = tuple(_title(piece) for piece in pieces if piece.row.form == "additional")  # these are tags, too
        drawing = replace(layout, frame=(*layout.frame, *paths))
    places = {role: place for place, role in enumerate(layout.seed_order)}

    def has_place(row: Row) -> bool:
        """Whether a fixed text belongs into this drawing: tags need no other borders, and a seed has only its own."""
        if drawing.heading == _XML and "\n" not in row.text and row.text.startswith(("#", "<")):
            return False
        return order != "seed" or not places or row.role in places

    blocks = [_wrapped(piece, drawing) for piece in pieces if piece.row.form != "fixed" or has_place(piece.row)]
    if order != "seed":
        blocks.sort(key=lambda block: not block.stable)
    else:
        blocks.sort(key=lambda block: places.get(block.piece.row.role, len(places)))
        for block in dropwhile(lambda block: block.stable, blocks):
            block.stable = False
    _give_room(blocks, drawing, limits)
    stable = _drawn([b for b in blocks if b.stable], drawing.join)
    volatile = _drawn([b for b in blocks if not b.stable], drawing.join)
    if stable and volatile:
        volatile = drawing.join + volatile
    lines = [block.line for block in blocks if block.line is not None]
    all_notes = [*notes, *(note for piece in pieces if piece.notes for note in piece.notes)]
    return Prompt(
        stable=stable,
        volatile=volatile,
        manifest=tuple(lines),
        scope=scope,
        dialect=layout.dialect,
        persona=persona,
        limits=limits,
        notes=tuple(dict.fromkeys(all_notes)),
    )


# -- order and wrapping -------------------------------------------------------------------------------------------------


def _wrapped(piece: Piece, layout: Layout) -> _Block:
    row, text = piece.row, piece.text
    if row.form == "fixed" or not text:
        return _Block(piece, text, title="", head="", tail="", whole=True)
    title = _title(piece)
    head, tail = _wrapping(piece, layout, title)
    text = text.removeprefix(BOM)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    shown = trimmed = text.strip("\n").rstrip()
    signs = _PLAIN_BREAKS if trimmed.isascii() else _PLAIN_BREAKS + "\x85\u2028\u2029"
    if row.data and any(map(trimmed.__contains__, signs)):  # what else a reader may take for a line's end becomes one
        shown = "\n".join(trimmed.splitlines())
    whole = piece.whole and shown is trimmed and text.startswith(trimmed[:1])  # line numbers are those of the file
    return _Block(piece, shown, title=title, head=head, tail=tail, whole=whole)


def _title(piece: Piece) -> str:
    title = piece.row.title
    return title.format(path=piece.path, day=piece.day, when=piece.when) if "{" in title else title


def _wrapping(piece: Piece, layout: Layout, title: str) -> tuple[str, str]:
    row = piece.row
    if layout.heading == _XML:
        tag, path = _tag(row), f' path="{_attribute(piece.path)}"' if piece.path else ""
        return f"<{tag}{path}>\n", f"\n</{tag}>"
    if layout.heading.startswith("<"):
        return (f"## {title}\n\n", "") if row.form == "runtime" else (f"<{title}>\n", f"\n</{title}>")
    head = layout.heading.format(title=title) + "\n" if layout.heading and title else ""
    if row.form == "daily" and "{" not in row.title and title:  # one heading for all logs, and a smaller one for each
        head = (head if piece.first else "") + f"{layout.heading.partition(' ')[0]}# {piece.day}\n"
    if row.role in ("memory", "daily", "knowledge") and "memory" in layout.frame and not piece.problem:
        return f'{head}<memory path="{_attribute(piece.path)}">\n', "\n</memory>"
    return head, ""


_XML = '<{title} path="{path}">'
_PLAIN_BREAKS = "\r\v\f\x1c\x1d\x1e"


def _tag(row: Row) -> str:
    return "memory" if row.form == "daily" else row.role


def _attribute(path: str) -> str:
    return path.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


@lru_cache(maxsize=256)
def _guard(pattern: str, title: str) -> re.Pattern[str]:
    """Finds the line feed before a border that is not the block's own. To begin with a plain sign makes it fast."""
    own = rf"(?![ \t]*#+[ \t]+{re.escape(title)}[ \t]*(?:#+[ \t]*)?$)" if title else ""
    return re.compile(rf"\n{own}(?=(?:{pattern})$)", re.MULTILINE | re.IGNORECASE)


def defuse(text: str, layout: Layout, title: str = "") -> str:
    """Straight data that can neither close its frame nor pass for the border of another block than that of this title."""
    if layout.guard:
        text = _guard(layout.guard, title).sub("\n\\\\", "\n" + text)[1:]
    return defuse_tags(text, layout.frame) if layout.frame else text


def _safe(text: str, block: _Block, layout: Layout) -> str:
    """A text as it may stand in its block: data is defused; where blocks are tags, so are the tags in any text."""
    if block.piece.row.data and not block.piece.problem:
        return defuse(text, layout, block.title)
    return defuse_tags(text, layout.frame) if layout.heading.startswith("<") else text


# -- room ----------------------------------------------------------------------------------------------------------------


def _give_room(blocks: list[_Block], layout: Layout, limits: Limits) -> None:
    """Fits every block. Stable blocks are served first and never feel what the volatile ones are. Where a cut keeps the
    beginning, each leaves room for the marks of those after it, so that none vanishes without one."""
    join, fixed = len(layout.join), [block for block in blocks if block.piece.row.form == "fixed"]
    cost = sum(len(block.text) + join for block in fixed)
    for block in fixed if cost <= limits.total else ():  # all or none: half a frame is worse than none
        block.body = block.text

    def turn(block: _Block) -> int:
        """Whose turn it is among the volatile: the clock first; memory last where it gets what the others leave."""
        is_last = layout.cut == "memory-notice" and block.piece.row.role == "memory"
        return 0 if block.piece.row.form == "runtime" else 2 if is_last else 1

    others = [block for block in blocks if block.piece.row.form != "fixed"]
    volatile = sorted((block for block in others if not block.stable), key=turn)
    reserve = min(800, limits.total // 8)  # what is always kept for the runtime block, whatever the clock says
    left = (limits.total - cost if cost <= limits.total else 0) - reserve
    for side, returned in (([block for block in others if block.stable], reserve), (volatile, 0)):
        floors = [
            block.wrapping + join + min(len(block.text), len(layout.cut_mark))
            if layout.cut == "head" and block.text and not block.piece.problem
            else 0
            for block in side
        ]
        for number, block in enumerate(side, 1):
            kept = min(sum(floors[number:]), max(0, left))
            cap = limits.file if block.stable else _cap(block, blocks, layout, limits)
            left = _fit(block, left - kept, join, layout, cap) + kept
        left += returned


def _cap(block: _Block, blocks: list[_Block], layout: Layout, limits: Limits) -> int:
    """A file's own budget. AgentScope's memory has what the other sections leave of its token budget."""
    if block.piece.row.role != "memory" or limits.memory is None:
        return limits.file
    if layout.cut != "memory-notice":
        return min(limits.file, limits.memory)
    others = sum(len(b.body) + b.wrapping for b in blocks if b.body and b is not block)
    return min(limits.file, max(len(layout.cut_mark), limits.memory - others))


def _fit(block: _Block, left: int, join: int, layout: Layout, cap: int) -> int:
    """Gives one block what it gets of the room that is left; what is left then."""
    piece, text, have = block.piece, block.text, min(cap, left - join - block.wrapping)
    body = _safe(text, block, layout) if text and len(text) <= have else ""
    status: Status
    if not text:
        status, reason = piece.problem or "empty", piece.reason or "there is nothing in it"
    elif body and len(body) <= have:
        status, reason = piece.problem or "shown", piece.reason
    elif piece.problem:
        body, status, reason = "", piece.problem, piece.reason
    else:
        body, room, whole = "", have, replace(piece, text=text, whole=block.whole)
        while have > 0 and len(body := _safe(cut(whole, room, layout), block, layout)) > have:
            room -= len(body) - have  # to defuse it may have lengthened it
        whose = "one file" if have == cap else "the whole prompt"
        why = f"over the budget of {whose}" if body else f"no room for it in the budget of {whose}"
        status, reason = ("cut" if body else "dropped"), "; ".join(filter(None, [why, piece.reason]))
    seen = {"chars_raw": piece.chars_raw if status != "hidden" else 0, "chars_shown": len(body)}
    block.line = Line(path=piece.path, role=piece.row.role, status=status, reason=reason, **seen)
    block.body = body
    return left - (len(body) + block.wrapping + join if body else 0)


# -- cutting -------------------------------------------------------------------------------------------------------------


def cut(piece: Piece, have: int, layout: Layout) -> str:
    """A text cut to at most `have` characters with the dialect's mark, or "" when that is too little to be of use."""
    text, size, mark = piece.text, len(piece.text), layout.cut_mark
    if layout.cut != "head-tail" and (layout.cut != "memory-notice" or piece.row.role == "memory"):
        if have < len(mark):
            return ""
        start = text[: _border(text, max(0, have - len(mark) - 1))].rstrip()
        return f"{start}\n{mark}" if start else mark
    template = mark if layout.cut == "head-tail" else CUT_MARK
    keep = have - len(template.format(missing=size, total=size, path=piece.path, lines=_FROM.format(size))) - 2
    if keep < min(LEAST, size):
        return ""
    head = _border(text, int(keep * 0.75))
    tail = _border_back(text, max(head, size - (keep - head)))
    lines = _FROM.format(text.count("\n", 0, head + 1) + 1) if piece.whole else ""
    mark = template.format(missing=tail - head, total=size, path=piece.path, lines=lines)
    return f"{text[:head].rstrip()}\n{mark}\n{text[tail:].lstrip()}".rstrip("\n")


def _border(text: str, at: int) -> int:
    """The last line border at or before `at`; a word border, or `at` itself, inside a line that is too long."""
    line = text.rfind("\n", 0, at + 1)
    if line > at // 2:
        return line
    word = text.rfind(" ", 0, at + 1)
    return word if word > at // 2 else at


def _border_back(text: str, at: int) -> int:
    """The first line border at or after `at`, by the same rule from the other side."""
    rest, line = len(text) - at, text.find("\n", at)
    if 0 <= line < at + rest // 2:
        return line + 1
    word = text.find(" ", at)
    return word + 1 if 0 <= word < at + rest // 2 else at


def _drawn(blocks: list[_Block], join: str) -> str:
    return join.join(block.head + block.body + block.tail for block in blocks if block.body)


# -- privacy, which runs last -------------------------------------------------------------------------------------------


Hook = Callable[[tuple[Piece, ...]], Sequence[Piece]]
_PASSAGE = 24  # a shorter text may stand inside another by accident; it counts when it is all of it
_LINES = re.compile(r"[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
_OPEN_ROLES = frozenset({"skill", "subagent", "config"})  # never injected, yet nothing private


@dataclass(eq=False, repr=False, slots=True)
class Privacy:
    """What one listener may be shown of one home, for the length of one prompt. `table` is the layout without what a
    configuration calls a soul; `read` holds the documents the prompt is made of."""

    _layout: Layout
    _table: Layout
    _listener: Listener
    _documents: Documents
    _document: Callable[[str], Document | None]
    _read: Mapping[str, Document]
    _kept: dict[bool, list[Secret]] = field(default_factory=dict)
    alternate: bool = False  # the soul that is worn is a file of the owner's choice

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
        own = place.key if place else ""
        others = [secret for secret in self._kept[wide] if secret.path is None or secret.path.key != own]
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
        for path in map(DocPath.parse, beneath(self._documents, "")):
            if self.is_free(path) or self._table.row_of(path).role in _OPEN_ROLES:
                continue
            if not self._listener.sees(self._table, path) and (document := self._document(path.text)):
                yield Secret(text=document.text, path=document.path)


def beneath(documents: Documents, folder: str, depth: int = MAX_DEPTH, notes: list[str] | None = None) -> Iterator[str]:
    """The documents under a folder, so many folders deep. One that nobody can list is passed over, and said in `notes`."""
    try:
        entries = documents.list(folder)
    except HomeError as error:
        entries = ()
        if notes is not None:
            notes.append(f"{folder}/: {error}")
    for entry in entries:
        if not entry.is_folder:
            yield entry.path
        elif depth > 1:
            yield from beneath(documents, entry.path, depth - 1, notes)


# -- copies --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A text that is kept from a listener; `path` where it is all of a file."""

    text: str
    path: DocPath | None = None


def tells(text: str, secrets: Sequence[Secret], *, whole: bool) -> bool:
    """Whether a text is a copy of one of these, or (unless `whole`) holds one of them among other things."""
    opening, words, lines = _opening(text), "", set[str]()
    if not whole:
        words, lines = flat(text), set(map(flat, text.splitlines()))
    for secret in secrets:
        first = _opening(secret.text)
        alike = first.startswith(opening) or opening.startswith(first)
        said = (flat(line[0]) for line in _LINES.finditer(secret.text) if line[0].strip())
        if not alike and (whole or next(said, "") not in lines):
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
