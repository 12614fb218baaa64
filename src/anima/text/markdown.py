"""Markdown as the owner wrote it: looked at and edited by span, never parsed and written out again.

Promise: every edit returns the same text but for the span it names; CRLF, BOM, front matter, wikilinks and the final
newline stay as they were. Section marks err on the side of privacy: a private mark counts wherever it stands on a
heading, and only a true heading (outside code and comments) ends a private section. Whoever asks what one line is (a bullet, a
heading, a fence, a dreamed line's tail) asks here.
Not here: files, scopes of whole files (layout), cutting for the index (search.units).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from anima.errors import BadText
from anima.model import Scope
from anima.text import BULLET, DOTTED, SIGN

BOM = "\ufeff"
MAX_FRONT_MATTER = 16_384
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_LONE_RETURN = re.compile(r"\r(?!\n)")  # ends a line of Markdown, too
_CONTAINER = re.compile(rf"[ \t>]*(?:{SIGN}[ \t][ \t>]*)*")  # blanks, and the signs of lists and quotes
_HASHES = re.compile(r"#{1,6}(?=[ \t\r\n]|\Z)")
_HEADING = re.compile(rf" {{0,3}}({_HASHES.pattern})")
_UNDERLINE = re.compile(r"(=|-)\1*[ \t]*\r?\n?\Z")
_NO_TEXT = re.compile(r"\s*\Z|(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})\r?\n?\Z")  # a blank line, or a rule
_BARE_SIGN = re.compile(rf"{SIGN}\s*\Z")  # an item with nothing in it
_FENCE = re.compile(r"(`{3,}|~{3,})(.*)")
_MARKUP = tuple(  # what begins a comment or a block of HTML, and what ends it
    (re.compile(begins, re.IGNORECASE), re.compile(ends, re.IGNORECASE))
    for begins, ends in (
        (r"<!--", r"-->"),
        (r"<(?:script|pre|style|textarea)(?![\w-])", r"</(?:script|pre|style|textarea)>"),
        (r"<\?", r"\?>"),
        (r"<!\[CDATA\[", r"\]\]>"),
        (r"<![a-z]", r">"),
    )
)
_TAG = re.compile(r"</?[a-z]", re.IGNORECASE)
_PRIVATE = re.compile(r"<!--[-\s]*private\b", re.IGNORECASE)
_HAS_MARK = re.compile(r"<!--[-\s]*(?:private|share)\b", re.IGNORECASE)
_PRIVATE_LINE = re.compile(r"^[^\n]*<!--[-\s]*private\b[^\n]*\n?", re.IGNORECASE | re.MULTILINE)
_BOX = re.compile(r"\[([ xX/-])\](?:\s+|\Z)")
_MARKED = re.compile(rf"\s*(?:>\s?)*\s*(?:{SIGN}\s+(?:{_BOX.pattern})?)?")
_TAIL = re.compile(r"\s*_\((?:score|hits|days|moved here)[^()\n]*\)_\Z")
_LOOSE_TAIL = re.compile(rf"{_TAIL.pattern}|\s*_?\((?:score|since|until)[^()\n]*\)_?\Z")
_TAILS, _TAIL_CHARS = 4, 300
_OF_YAML = (ValueError, LookupError, AttributeError, TypeError, ArithmeticError, RecursionError)
_EVIDENCE = re.compile(r"_\(score=(\d+(?:\.\d+)?), hits=(\d+), days=(\d+)\)_\s*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with all that stands under it, deeper headings included. Offsets are characters of the text."""

    level: int  # 0 for what stands before the first heading
    title: str  # without marks
    start: int
    body: int  # where the text after the heading line begins
    end: int
    private: bool = False
    private_end: int  # what is private may reach further: only what is a heading for certain ends it
    shared: frozenset[Scope] = frozenset()
    shared_end: int  # what is shared may end sooner: at anything that looks like the next heading
    marked: bool = False  # its heading says something of sharing, whether or not anybody is named whom we know
    claimed: bool = False  # it stands in code, a comment or front matter: it counts for privacy and for nothing else


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What of a text one listener sees, and how many sections (or single lines) were kept back."""

    text: str
    hidden: int
    whole: bool  # nothing was left out, so line numbers are those of the file
    spans: tuple[tuple[int, int], ...]  # where in the file it stands, in order; joined, these are the text


def lines_of(text: str) -> list[str]:
    """The lines with their ends, cut at line feeds only, so that joining them gives the text back."""
    return _LINE.findall(text)


def newline_of(text: str) -> str:
    """The line end this text uses: that of its first line."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


class Bullet(NamedTuple):
    """The first line of a list item. `sign` is -, *, + or a number; `box` is what a task's box holds, None without one."""

    indent: str
    sign: str
    box: str | None
    text: str

    @property
    def is_point(self) -> bool:
        """Whether the item stands in a list without numbers."""
        return self.sign in "-*+"


class HeadingLine(NamedTuple):
    """A line of hashes and a title, which may hold marks. What only underlines make a heading is a matter of sections."""

    level: int
    title: str


def bullet_of(line: str, *, dots: bool = False) -> Bullet | None:
    """The list item that begins on a line. With `dots` also one whose sign is a •, which Markdown does not know."""
    found = (DOTTED if dots else BULLET).match(line)
    if found is None:
        return None
    text = line[found.end() :].strip()
    box = _BOX.match(text)
    return Bullet(found[1], found[2], box[1] if box else None, text[box.end() :] if box else text)


def unmarked(line: str) -> str:
    """A line without what sets it in: signs of quotes, a list sign, a box."""
    return line[_MARKED.match(line).end() :]  # type: ignore[union-attr]  # it matches the empty text


def heading_of(line: str) -> HeadingLine | None:
    """The heading that a line is, by its hashes."""
    found = _HEADING.match(line)
    return HeadingLine(len(found[1]), _heading_text(line[found.end() :])) if found else None


def fence_after(line: str, fence: str, *, nested: bool = False) -> str:
    """The signs around the code that is open after a line, "" for none; `fence` are those open before it. A line is code, or
    a fence around it, when either is not empty. `nested`: also fences in lists, quotes, and set in."""
    if "```" not in line and "~~~" not in line:
        return fence
    front = _CONTAINER.match(line)[0]  # type: ignore[index]  # it matches the empty text
    found = _FENCE.match(line, len(front))
    if found is None or not (nested or (len(front) <= 3 and not front.strip(" "))):
        return fence
    if fence:
        closes = not front.strip(" \t>") and found[1].startswith(fence) and not found[2].strip()
        return "" if closes else fence
    return "" if found[1][0] == "`" and "`" in found[2] else found[1]


def comment_after(line: str, inside: bool) -> bool:
    """Whether a comment is open after a line, given whether one was before it."""
    opened, closed = line.rfind("<!--"), line.rfind("-->")
    return opened > closed if closed >= 0 else inside or opened >= 0


def without_code(text: str, *, nested: bool = False) -> Iterator[tuple[int, str]]:
    """The lines outside fenced code, each with its number."""
    numbered = enumerate(lines_with_place(text, nested=nested), start=1)
    return ((number, line) for number, (line, place) in numbered if place != "code")


def lines_with_place(text: str, *, nested: bool = False) -> Iterator[tuple[str, str]]:
    """Each line with what it stands in: "front" matter, "code" with its fences, a "comment" that a line above began, or "".
    What is a heading ends code that was never closed, and a comment that nothing ends begins with its line, or is none.
    `nested`: also fences in lists, quotes, and set in."""
    fence, inside, at, last = "", False, front_matter_end(text), text.rfind("-->")
    ends = {part.start for part in sections(text) if not part.claimed} if "```" in text or "~~~" in text else ()
    yield from ((line, "front") for line in lines_of(text[:at]))
    for line in lines_of(text[at:]):
        before, at = "" if at in ends else fence, at + len(line)
        fence = before if inside else fence_after(line, before, nested=nested)
        yield line, "code" if before or fence else "comment" if inside else ""
        is_comment = inside or at <= last or line.lstrip().startswith("<!--")
        inside = is_comment and not fence and comment_after(line, inside)


def without_tail(text: str, *, loose: bool = False) -> str:
    """A line without what dreaming put behind it, `_(score=0.71, hits=4, days=3)_`. With `loose` also without the same in plain
    brackets, such as "(since 2026-05-08)", which people write, too."""
    pattern, closing = (_LOOSE_TAIL, (")", ")_")) if loose else (_TAIL, ")_")
    for _ in range(_TAILS):
        shown = text.rstrip()
        tail = shown[-_TAIL_CHARS:]
        if not tail.endswith(closing) or (bare := pattern.sub("", tail)) == tail:
            break
        text = shown[: len(shown) - len(tail)] + bare
    return text


def evidence_of(line: str) -> tuple[float, int, int] | None:
    """The score, hits and days that a dreamed line says of itself."""
    found = _EVIDENCE.search(line, max(0, len(line) - _TAIL_CHARS))
    return (float(found[1]), int(found[2]), int(found[3])) if found else None


def front_matter_end(text: str) -> int:
    """Where the text after a YAML front matter begins; 0 when there is none."""
    start = len(BOM) if text.startswith(BOM) else 0
    if not text.startswith(("---\n", "---\r\n"), start):
        return 0
    found = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?(?:\n|\Z)", re.MULTILINE).search(text, text.index("\n", start) + 1)
    return found.end() if found else 0


def front_matter(text: str, path: str) -> Mapping[str, Any]:
    """The front matter as a mapping, empty when there is none. Raises BadText when it is not plain, small YAML."""
    end = front_matter_end(text)
    if not end:
        return {}
    body = text[text.index("\n") + 1 : end].rstrip().removesuffix("...").removesuffix("---")
    if len(body) > MAX_FRONT_MATTER:
        raise BadText(path, f"its front matter is longer than {MAX_FRONT_MATTER:,} characters")
    import yaml

    try:
        if "&" in body or "*" in body:  # only then can there be an anchor or an alias
            for event in yaml.parse(body, Loader=yaml.SafeLoader):
                if getattr(event, "anchor", None):
                    raise BadText(path, "its front matter uses YAML anchors or aliases, which are not read")
        value = yaml.safe_load(body)
    # Beside its own errors the parser lets others through, for values whose tag says what they are not.
    except (yaml.YAMLError, *_OF_YAML) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = f" near line {line + 2}" if line is not None else ""
        raise BadText(path, f"its front matter is not YAML{where}") from None
    if not isinstance(value, dict | None):
        raise BadText(path, "its front matter is not a list of keys")
    return {str(key): item for key, item in (value or {}).items()}


@lru_cache(maxsize=2)  # whoever places a line asks several times of one text
def sections(text: str) -> tuple[Section, ...]:
    """All sections in order of their start, the nameless first one included when anything stands before a heading."""
    outline = _Outline(text)
    # Where it is a matter of reading whether code goes on, what counts for privacy as code does so still.
    as_code = _Outline(text, ends=False).found if outline.ended else ()
    found = {(each.start, each.level, each.raw): replace(each, true=False, firm=False) for each in as_code}
    found |= {(each.start, each.level, each.raw): each for each in outline.found}
    return tuple(_close(text, sorted(found.values(), key=lambda each: each.start)))


@dataclass(frozen=True, slots=True)
class _Heading:
    """A heading, or a line that may be taken for one."""

    level: int
    raw: str  # with its marks
    start: int
    body: int
    true: bool  # outside code, comments, front matter, lists and quotes
    firm: bool  # true whichever way the text is read


def _heading_text(rest: str) -> str:
    """What stands on a heading line after its hashes, without the closing ones."""
    shown = rest.strip(" \t\r\n")
    bare = shown.rstrip("#")
    return bare.rstrip(" \t") if not bare or bare[-1] in " \t" else shown


class _Outline:
    """The headings of a text, found line by line. What only a full parser could tell is found, too, but is not firm."""

    def __init__(self, text: str, *, ends: bool = True) -> None:
        self.found: list[_Heading] = []
        self.ended, self._may_end = False, ends  # code that is never closed, by a heading outside of its list item
        self._fence, self._width, self._within = "", 0, 0  # the open fence, its indent, how many were found before it
        self._in_list = self._quoted = False  # the fence stands in a list or quote, which ends it when it ends
        self._ends = 0  # a heading that is set in less ends the item of the fence; 0 where it stands in none
        self._item = 0  # how far what is part of the open list item is set in; 0 outside of lists
        self._until: re.Pattern[str] | None = None  # what ends the block of HTML we are in
        self._loose = self._half = False  # in markup that a blank line ends; in a comment that began inside a line
        self._above: list[str] = []  # the paragraph so far, for an underline
        self._above_at, self._above_true, self._above_firm = 0, False, False
        self._above_wish = ""  # the last line of it that wants to be private
        self._lost = False  # it can be read in two ways what is code: nothing is firm from here on
        at, front = 0, front_matter_end(text)
        for line in lines_of(text):
            at += len(line)
            self._line(line if at > len(line) else line.removeprefix(BOM), at - len(line), at, at <= front)
        self.found.sort(key=lambda heading: heading.start)

    def _line(self, line: str, start: int, end: int, front: bool) -> None:
        prefix = _CONTAINER.match(line)[0]  # type: ignore[index]  # it matches the empty text
        inner, depth = line[len(prefix) :], len(line) - len(line.lstrip(" \t"))
        if not (within := 0 < self._item <= depth or not line.strip()):
            bullet, ends = bullet_of(line), not self._above or heading_of(line)
            self._item = depth + len(bullet.sign) + 1 if bullet else 0 if ends else self._item
        if self._fence and self._is_code(prefix, inner):
            return self._code(prefix, inner, start, end)
        in_markup = self._until is not None or self._half or self._loose
        fence = _FENCE.match(inner)
        self._lost = self._lost or (front and fence is not None)
        if fence and not front and not (fence[1][0] == "`" and "`" in fence[2]):
            indented = not prefix.strip() and (len(prefix) > 3 or "\t" in prefix)
            self._lost = self._lost or indented or in_markup or "\t" in prefix
            if not indented:  # else it is text or code, or a fence in a list
                self._fence, self._width, self._within = fence[1], len(prefix), len(self.found)
                self._in_list, self._quoted, self._above = bool(prefix.strip(" >")), ">" in prefix, []
                self._ends = self._item if within and self._may_end else 0
                self._lost = self._lost or (self._in_list and self._quoted)
                return None
        true = not (front or in_markup or prefix.strip() or len(prefix) > 3 or "\t" in prefix or within)
        nested = bool(prefix.strip()) or bool(_BARE_SIGN.match(inner))
        self._text(inner, start, end, true, true and not prefix and not self._lost, nested)
        # Blocks of HTML, and comments that begin inside a line: nothing in them is a heading for certain.
        self._half = comment_after(inner, self._half)
        self._loose = bool(line.strip()) and (self._loose or bool(_TAG.match(inner)))
        if self._until is None:
            self._until = next((ends for begins, ends in _MARKUP if begins.match(inner)), None)
            inner = inner[2:]
        if self._until is not None and self._until.search(inner):
            self._until = None
        return None

    def _is_code(self, prefix: str, inner: str) -> bool:
        """Whether a line is still inside the open fence: the end of a list item or quote ends the code in it."""
        indent = len(prefix) - len(prefix.lstrip(" "))
        inside = ">" in prefix if self._quoted else indent >= self._width or not (prefix + inner).strip()
        if inside or not self._width:
            return True
        if self._in_list or self._quoted:
            self._fence = ""
            return False
        self._lost = self._lost or not prefix  # set in by itself, or by a list that ends here: who can tell
        if indent < self._ends and heading_of(prefix + inner):
            self._fence, self._lost, self.ended = "", True, True
        return bool(self._fence)

    def _code(self, prefix: str, inner: str, start: int, end: int) -> None:
        closing = _FENCE.match(inner) if not prefix.strip(" >") and len(prefix) <= self._width + 3 else None
        if not closing or not closing[1].startswith(self._fence) or closing[2].strip():
            return self._text(inner, start, end, true=False, firm=False, nested=True)
        self._fence, self._above = "", []
        self._lost = self._lost or (not (self._in_list or self._quoted) and len(prefix) > 3)
        if not self._lost:  # code for certain: of what stood inside only a wish for privacy counts
            self.found[self._within :] = [h for h in self.found[self._within :] if _PRIVATE.search(h.raw)]
        return None

    def _text(self, inner: str, start: int, end: int, true: bool, firm: bool, nested: bool) -> None:
        hashes, under = _HASHES.match(inner), _UNDERLINE.match(inner) if self._above else None
        if hashes:
            title = _heading_text(inner[hashes.end() :])
            self.found.append(_Heading(len(hashes[0]), title, start, end, true, firm))
        elif under:
            true, firm = true and self._above_true, firm and self._above_firm
            raw = "".join(self._above).strip() if true else self._above_wish
            self.found.append(_Heading(1 if under[1] == "=" else 2, raw, self._above_at, end, true, firm))
        if true if hashes or under else _NO_TEXT.match(inner):
            self._above = []
            return
        # Whatever is no heading for certain may as well be part of a paragraph.
        if not self._above:
            self._above_at, self._above_true, self._above_firm, self._above_wish = start, True, True, ""
        self._above.append(inner)
        self._above_true &= true and not (nested or hashes or under or inner.startswith(("|", "<")))
        self._above_firm &= firm and self._above_true and not inner.startswith("[")
        if _PRIVATE.search(inner):
            self._above_wish = inner.strip()


def _close(text: str, found: list[_Heading]) -> Iterator[Section]:
    """Each heading with its ends: an outline's, that of what is private, and that of what is shared."""
    first = next((heading.start for heading in found if heading.true or _PRIVATE.search(heading.raw)), len(text))
    if first:
        yield Section(level=0, title="", start=0, body=0, end=first, private_end=first, shared_end=first)
    # By level: where the next heading of that level or above begins, among the true, the firm, and all of them.
    true, firm, any_of_them = ([len(text)] * 7 for _ in range(3))
    made = []
    for heading in reversed(found):
        level, start = heading.level, heading.start
        title, private, shared = marks(heading.raw)
        if heading.true or private:
            end = true[level if heading.true else 6]
            made.append(
                Section(
                    level=level,
                    title=title,
                    start=start,
                    body=heading.body,
                    end=end,
                    private=private,
                    private_end=firm[level],
                    shared=shared if heading.firm else frozenset(),
                    shared_end=any_of_them[level],
                    marked=bool(_HAS_MARK.search(heading.raw)),
                    claimed=not heading.true,
                )
            )
        for ends, counts in ((true, heading.true), (firm, heading.firm), (any_of_them, True)):
            if counts:
                ends[level:] = [start] * (7 - level)
    yield from reversed(made)


def marks(heading: str) -> tuple[str, bool, frozenset[Scope]]:
    """A heading without its marks, whether it is private, and the scopes it is shared with, as the closed comments on it say.
    Unknown scope names add nothing."""
    title, at, end, shared = "", 0, 0, set[Scope]()
    while (start := heading.find("<!--", end)) >= 0 and (close := heading.find("-->", start)) >= 0:
        end = close + len("-->")
        word, *names = re.split(r"[\s,:]+", heading[start + 4 : close].strip().casefold())
        shared.update(scope for scope in Scope if word == "share" and scope.value in names)
        if _HAS_MARK.match(heading, start):
            title, at = title + heading[at:start], end
    # A mark that is never closed on its line is still a wish for privacy.
    return (title + heading[at:]).strip(), bool(_PRIVATE.search(heading)), frozenset(shared)


@dataclass(frozen=True, slots=True)
class Marks:
    """Where a text is marked: spans with whom each is shared, and spans that are private; sections, and single lines."""

    shared: tuple[tuple[int, int, frozenset[Scope]], ...] = ()
    private: tuple[tuple[int, int], ...] = ()
    lines: tuple[tuple[int, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.shared or self.private or self.lines)


def may_be_marked(text: str) -> bool:
    """Whether a mark stands anywhere in a text."""
    return "<" in text and _HAS_MARK.search(text) is not None  # one sign alone is found many times faster


def all_sections(text: str) -> tuple[Section, ...]:
    """The sections where marks count, those after a lone carriage return among them; places are those of the text."""
    return sections(_plain(text))


def _plain(text: str) -> str:
    return _LONE_RETURN.sub("\n", text) if "\r" in text else text  # as long as before


def marks_in(text: str) -> Marks:
    """All that is marked in a text."""
    if not may_be_marked(text):
        return Marks()
    plain, found = _plain(text), all_sections(text)
    return Marks(
        shared=tuple((s.start, s.shared_end, s.shared) for s in found if s.shared),
        private=tuple((s.start, s.private_end) for s in found if s.private),
        lines=tuple(line.span() for line in _PRIVATE_LINE.finditer(plain)),  # a mark on no heading hides its line
    )


def view(text: str, *, scope: Scope, visible: bool, owner: bool, marked: Marks | None = None) -> View:
    """What `scope` sees of a text whose file is `visible` to it or not. A private section is for the owner in MAIN alone; a
    shared one also for the scopes it names. Private wins."""
    own = owner and scope is Scope.MAIN
    if visible and (own or (marked is None and not ("<" in text and _PRIVATE.search(text)))):
        return View(text=text, hidden=0, whole=True, spans=((0, len(text)),))  # nothing in it can be kept back
    marked = marks_in(text) if marked is None else marked
    if not marked:
        return View(text=text if visible else "", hidden=0, whole=visible, spans=((0, len(text)),) if visible else ())
    shown = bytearray(b"\x01" if visible else b"\x00") * len(text)
    if owner or scope is not Scope.MAIN:  # what is shared with MAIN is shared with the owner
        paint(shown, ((start, end) for start, end, shared in marked.shared if scope in shared), b"\x01")
    kept_back = 0
    if not own:
        paint(shown, marked.private, b"\x00")
        kept_back = len(marked.private) + sum(any(shown[start:end]) for start, end in marked.lines)
        paint(shown, marked.lines, b"\x00")
    spans = tuple(run.span() for run in re.finditer(rb"\x01+", bytes(shown)))
    seen = "".join(text[start:end] for start, end in spans)
    return View(text=seen, hidden=kept_back, whole=all(shown), spans=spans)


def lines_shown(text: str, part: View) -> list[bool]:
    """Of each line of a text whether all of it is in the view."""
    spans, found, end = iter(part.spans), [], 0
    first, last = next(spans, (0, 0))
    for line in lines_of(text):
        start, end = end, end + len(line)
        while last < end and (following := next(spans, None)):
            first, last = following
        found.append(first <= start and end <= last)
    return found


def marked_at(found: Iterable[Section], at: int, *, also: re.Pattern[str]) -> int | None:
    """The level of the outermost of a text's `all_sections` that a line at this place would stand in and that is marked
    shared or private, or whose title `also` knows; None where there is none. A heading of that level ends it."""
    levels = list[int]()
    for part in (part for part in found if part.level and part.start < at):
        is_shared, is_private = part.shared and at <= part.shared_end, part.private and at <= part.private_end
        if is_shared or is_private or ((part.marked or also.match(part.title)) and at <= part.end):
            levels.append(part.level)
    return min(levels, default=None)


def paint(shown: bytearray, spans: Iterable[tuple[int, int]], colour: bytes) -> None:
    """Paints spans that come in the order of their start; each place once, so that time grows with the text alone."""
    done = 0
    for start, end in spans:
        if end > max(start, done):
            start = max(start, done)
            shown[start:end] = colour * (end - start)
            done = end


@lru_cache(maxsize=64)
def _tag_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(r"<(?=\s*(?:/\s*)?(?:" + "|".join(map(re.escape, names)) + r")(?![\w-]))", re.IGNORECASE)


def defuse_tags(text: str, names: tuple[str, ...]) -> str:
    """The text with the `<` of any tag of these names made a `‹`, so that it can open or close no frame of ours."""
    return _tag_pattern(names).sub("‹", text) if "<" in text else text


def add_to(text: str, found: Sequence[Section], section: Section, line: str) -> str:
    """The text with one line added at the end of a section's own part; `found` are all its headings. Nothing else is touched,
    and the text's own line end is used."""
    body, end, newline, line = section.body, own_end(found, section), newline_of(text), line.rstrip("\r\n")
    if kept := text[body:end].rstrip():
        # After the last line with anything on it, its trailing blanks included.
        at = text.find("\n", body + len(kept), end)
        at = end if at < 0 else at - (text[at - 1] == "\r")
        last = kept.rpartition("\n")[2]
        added = (newline if BULLET.match(last) or last[0].isspace() else newline * 2) + line
    elif not text.endswith("\n", 0, body):
        at, added = body, newline * 2 + line
    else:
        blank = lines_of(text[body:end])
        gap = newline if end < len(text) and len(blank) < 2 else ""
        has_room = bool(blank) and blank[0].endswith("\n")
        at, added = body + len(blank[0]) if has_room else body, ("" if has_room else newline) + line + newline + gap
    return text[:at] + added + text[at:]


def own_end(found: Sequence[Section], section: Section) -> int:
    """Where the part of a section ends that stands before its first deeper heading."""
    return min([section.end, *(s.start for s in found if section.start < s.start < section.end)])


def add_section(text: str, title: str, line: str, *, level: int = 2) -> str:
    """The text with one more section at its end, and a line in it. A text that ends without a line end still does."""
    newline = newline_of(text)
    gap = newline if text.strip(BOM).strip() else ""
    return add_last(text, f"{gap}{'#' * level} {title}{newline}{newline}{line}")


def add_last(text: str, added: str) -> str:
    """The text with lines added at its very end."""
    newline, added = newline_of(text), added.rstrip("\r\n")
    is_ended = not text.strip(BOM) or text.endswith("\n")
    return text + added + newline if is_ended else text + newline + added


def ended(text: str) -> str:
    """The text, ending in a newline of its own kind unless it is empty."""
    return text if not text.strip(BOM) or text.endswith("\n") else text + newline_of(text)
