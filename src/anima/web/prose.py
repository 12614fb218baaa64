"""Markdown as a page shows it: line by line, inert, so that every line keeps its number.

Promise: no line is lost, joined or split; nothing of it becomes a tag, an address to follow or a picture; what is not
seen is shown by number. It is a likeness, not a parser: a line that only looks like a heading may be drawn as one.
Linear in the text, whatever the text. Not here: who wrote a line (pages.memory).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from anima.text.markdown import BOM, front_matter_end, lines_of
from anima.web.draw import inert

LONGEST = 4_000  # a longer line is shown without emphasis

_FENCE = re.compile(r"[ \t>]*(?:[-*+][ \t]+)?(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|\Z)")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})\Z")
_ITEM = re.compile(r"([ \t]*)([-*+]|[0-9]{1,9}[.)])[ \t]+(?:\[([ xX])\][ \t]+)?")
_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)+")
_INLINE = re.compile(
    r"(?P<code>`[^`]+`)|(?P<bold>\*\*[^*]+\*\*|__[^_]+__)|(?P<em>\*[^*\s][^*]*\*)|(?P<wiki>\[\[[^\[\]]+\]\])"
    r"|\[(?P<said>[^\[\]]*)\]\((?P<to>[^()\s]*)\)|(?P<note><!--(?:[^-<]|-(?!->))*-->)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProseLine:
    """One line. `kind` is a class of the style sheet; `sign` stands before an item; `depth` is how far it is set in."""

    n: int
    kind: str  # h1 … h6, item, quote, code, rule, front, note, text, blank
    body: Markup
    sign: str = ""
    depth: int = 0


def prose(text: str) -> Iterator[ProseLine]:
    """The lines of a document, drawn."""
    fence, comment, at, front = "", False, 0, front_matter_end(text)
    for n, raw in enumerate(lines_of(text), start=1):
        at += len(raw)
        line = raw.removesuffix("\n").removesuffix("\r")
        if n == 1:
            line = line.removeprefix(BOM)
        opened = _FENCE.match(line)
        if at <= front:
            yield ProseLine(n=n, kind="front", body=inert(line))
        elif fence:
            fence = "" if opened and opened[1].startswith(fence) and not line.strip(" \t>`~") else fence
            yield ProseLine(n=n, kind="code", body=inert(line))
        elif opened and not comment:
            fence = opened[1]
            yield ProseLine(n=n, kind="code", body=inert(line))
        elif comment or line.lstrip().startswith("<!--"):
            comment = "-->" not in line
            yield ProseLine(n=n, kind="note", body=inert(line))
        else:
            yield _plain(n, line)


def source(text: str) -> Iterator[ProseLine]:
    """The same lines as they stand in the file."""
    for n, raw in enumerate(lines_of(text), start=1):
        yield ProseLine(n=n, kind="code", body=inert(raw.removesuffix("\n").removesuffix("\r")))


def _plain(n: int, line: str) -> ProseLine:
    if not line.strip():
        return ProseLine(n=n, kind="blank", body=Markup(""))
    if found := _HEADING.match(line):
        return ProseLine(n=n, kind=f"h{len(found[1])}", body=_spoken(line[found.end() :]))
    if _RULE.match(line):
        return ProseLine(n=n, kind="rule", body=Markup(""))
    if found := _ITEM.match(line):
        boxed = {None: "", " ": "☐ "}.get(found[3], "☑ ")
        sign = boxed + ("•" if found[2] in "-*+" and not boxed else found[2] if found[2] not in "-*+" else "")
        depth = min(4, len(found[1].expandtabs(4)) // 2)
        return ProseLine(n=n, kind="item", sign=sign.strip(), depth=depth, body=_spoken(line[found.end() :]))
    if found := _QUOTE.match(line):
        return ProseLine(n=n, kind="quote", body=_spoken(line[found.end() :]))
    return ProseLine(n=n, kind="text", body=_spoken(line))


def _spoken(text: str) -> Markup:
    """A line with its emphasis drawn. Where a link leads is shown, and cannot be followed."""
    if len(text) > LONGEST:
        return inert(text)
    parts, at = [], 0
    for found in _INLINE.finditer(text):
        parts += [inert(text[at : found.start()]), _drawn(found)]
        at = found.end()
    return Markup("").join([*parts, inert(text[at:])])


def _drawn(found: re.Match[str]) -> Markup:
    whole = found[0]
    if found["code"]:
        return Markup("<code>{}</code>").format(inert(whole[1:-1]))
    if found["bold"]:
        return Markup("<b>{}</b>").format(inert(whole[2:-2]))
    if found["em"]:
        return Markup("<i>{}</i>").format(inert(whole[1:-1]))
    if found["wiki"]:
        return Markup('<span class="to">{}</span>').format(inert(whole))
    if found["note"]:
        return Markup('<span class="aside">{}</span>').format(inert(whole))
    return Markup('{} <span class="to">({})</span>').format(inert(found["said"]), inert(found["to"]))
