"""Drawing pages: templates, and how text of a home is shown in them.

Promise: everything is escaped; a name a template does not know is an error; text of documents is shown inert, with
control and direction characters by number, so that it cannot imitate the page around it. Not here: what a page shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.runtime import Macro
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from anima import __version__
from anima.errors import HomeError
from anima.text.words import cut

if TYPE_CHECKING:
    from anima.web.served import Served

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_WORDS = re.compile(r"\w+|\W+")
MOST_LINES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a diff as a page shows it: a kind, a sign, and the numbers on both sides."""

    kind: Literal["file", "place", "add", "cut", "same", "note"]  # the first two and the last are no content
    text: str
    old: int | None = None
    new: int | None = None


class Drawing:
    """The templates of one application."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._templates = Environment(
            loader=PackageLoader("anima.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {"inert": inert, "ago": self._ago, "moment": moment, "count": count}
        self._templates.globals |= {"version": __version__, "diff_lines": diff_lines}
        # A part is drawn without what stands outside its block, imports among it, so shared macros are known everywhere.
        for name in ("shared.html", "chart.html"):
            macros = vars(self._templates.get_template(name).module)
            self._templates.globals |= {name: macro for name, macro in macros.items() if isinstance(macro, Macro)}

    def page(self, request: Request, template: str, context: Mapping[str, Any], *, status: int = 200) -> HTMLResponse:
        """A page, or the part of it that `?part=` names: the template's block of that name."""
        from anima.web.pages import PAGES

        state = request.scope.get("state", {})
        given = {
            "pages": PAGES,
            "current": "",
            "csrf": state.get("csrf", ""),
            "who": state.get("who"),
            "path": request.url.path,
        }
        given |= {"agent": self._agent() if given["who"] else None, **context}
        found = self._templates.get_template(template)
        part = request.query_params.get("part")
        if part is None or part not in found.blocks:
            return HTMLResponse(found.render(given), status_code=status)
        drawn = "".join(found.blocks[part](found.new_context(given)))
        return HTMLResponse(drawn, status_code=status)

    def _agent(self) -> dict[str, Any]:
        """Who the agent is and how many proposals wait, for the rail beside every page."""
        home = self._served.home
        who = home.identity()
        try:
            waiting = len(home.pending())
        except HomeError:
            waiting = 0
        return {"name": who.name.value, "emoji": who.emoji.value if who.emoji else "", "waiting": waiting}

    def _ago(self, time: datetime) -> str:
        return ago(self._served.home.clock(), time)


def inert(text: str) -> Markup:
    """Text with what a reader would not see, or a browser would act on, shown by number."""
    if text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable():
        return escape(text)
    return Markup("").join(_shown(char) for char in text)


def _shown(char: str) -> Markup:
    if char in "\n\t" or char.isprintable():
        return escape(char)
    return Markup('<span class="odd" title="a character that is not seen">⟨U+{:04X}⟩</span>').format(ord(char))


def pieces_of(text: str, stems: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """A text in pieces, and whether each is one of the words that were asked for."""
    plain = ""
    for match in _WORDS.finditer(text):
        word = match[0]
        if word[0].isalnum() and len(word) <= 60 and not stems.isdisjoint(cut(word)):
            if plain:
                yield plain, False
            yield word, True
            plain = ""
        else:
            plain += word
    if plain:
        yield plain, False


def diff_lines(diff: str) -> Iterator[DiffLine]:
    """The lines of a unified diff, numbered. Long ones end with a line that says how much is left out.

    The counts of each hunk decide what is content, so that no content can pass for the heading of another file.
    """
    old = new = old_end = new_end = 0
    lines = diff.split("\n")[: -1 if diff.endswith("\n") else None]
    for line in lines[:MOST_LINES]:
        sign = line[:1]
        if sign == "\\":
            yield DiffLine(kind="note", text="no newline at the end")
        elif sign == "+" and new < new_end:
            yield DiffLine(kind="add", text=line[1:], new=new)
            new += 1
        elif sign == "-" and old < old_end:
            yield DiffLine(kind="cut", text=line[1:], old=old)
            old += 1
        elif sign == " " and old < old_end and new < new_end:
            yield DiffLine(kind="same", text=line[1:], old=old, new=new)
            old, new = old + 1, new + 1
        elif found := _HUNK.match(line):
            old, new = int(found[1]), int(found[3])
            old_end, new_end = old + int(found[2] or 1), new + int(found[4] or 1)
            yield DiffLine(kind="place", text=line)
        else:
            yield DiffLine(kind="file", text=line)
    if len(lines) > MOST_LINES:
        yield DiffLine(kind="note", text=f"… {len(lines) - MOST_LINES:,} lines more")


def moment(time: datetime) -> str:
    """A time as a machine reads it, for `<time datetime>`; the script shows it in the reader's own zone."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ago(now: datetime, time: datetime) -> str:
    """How long ago, or how long until, in words."""
    seconds = (now - time).total_seconds()
    span = abs(seconds)
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if span >= size:
            said = count(max(1, int(span // size if seconds > 0 else round(span / size))), name)
            return f"{said} ago" if seconds > 0 else f"in {said}"
    return "just now" if seconds >= 0 else "in a moment"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
