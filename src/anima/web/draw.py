"""Drawing pages: templates, and how text of a home is shown in them.

Promise: everything is escaped; a name a template does not know is an error; text of documents is shown inert, with
control and direction characters by number, so that it cannot imitate the page around it. Markdown is drawn line by line,
and no line is lost, joined or split: a likeness, not a parser, and linear in the text. A mark beside a line says what
provenance says, in a word and a sign, never by colour alone. Not here: what a page shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote

from jinja2 import BytecodeCache, Environment, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from jinja2.runtime import Macro
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from anima import Source, __version__, front_matter_end, highlight, lines_of, time_of
from anima.model import UNTRUSTED, Actor
from anima.text import read_table

MOST_LINES = 2_000  # of a diff
TURNS = 50  # of a session on one page
SCOPES = read_table("web", "scopes")  # as pages call them
LONGEST = 4_000  # characters; a longer line is shown without emphasis
WORDS = {
    Actor.OWNER: "you",
    Actor.AGENT: "agent",
    Actor.DREAMER: "dream",
    Actor.IMPORTER: "import",
    Actor.OUTSIDE: "outside",
}
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_FENCE = re.compile(r"[ \t>]*(?:[-*+][ \t]+)?(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|\Z)")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})\Z")
_ITEM = re.compile(r"([ \t]*)([-*+]|[0-9]{1,9}[.)])[ \t]+(?:\[([ xX])\][ \t]+)?")
_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)+")
_INLINE = re.compile(
    r"(?P<code>`[^`]+`)|(?P<bold>\*\*[^*]+\*\*|__[^_]+__)|(?P<em>\*[^*\s][^*]*\*)|(?P<wiki>\[\[[^\[\]]+\]\])"
    r"|(?P<at>(?<![\w@.])@[^\W\d_][\w-]*)|\[(?P<said>[^\[\]]*)\]\((?P<to>[^()\s]*)\)|(?P<note><!--(?:[^-<]|-(?!->))*-->)"
)
_OWN_PAGE = re.compile(r"[\w-][\w./ -]*\.md")
_TO_NAME = Markup('<a class="wiki" href="/graph/about?name={}">{}</a>')
_TABLE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_EMPHASIS = {  # the tag, and how many signs are taken off at both ends
    "code": (Markup("<code>{}</code>"), 1),
    "bold": (Markup("<b>{}</b>"), 2),
    "em": (Markup("<i>{}</i>"), 1),
    "note": (Markup('<span class="aside">{}</span>'), 0),
}


class _Compiled(BytecodeCache):
    """Templates as they were compiled first: every application of a process has the same ones."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._kept:
            bucket.bytecode_from_string(self._kept[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._kept[bucket.key] = bucket.bytecode_to_string()


_COMPILED = _Compiled()


class Drawing:
    def __init__(self, clock: Callable[[], datetime], pages: Sequence[Any], *, cookie: str, hosted: bool) -> None:
        self._pages = pages
        self._templates = Environment(
            loader=PackageLoader("anima.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            bytecode_cache=_COMPILED,
        )
        self._templates.filters |= {"inert": inert, "moment": moment, "timed": time_of, "count": count}
        self._templates.filters |= {"ago": lambda time: ago(clock(), time), "entry_address": entry_address}
        self._templates.globals |= {"version": __version__, "cookie": cookie, "hosted": hosted, "scopes": SCOPES}
        self._templates.globals |= {"diff_lines": diff_lines, "highlight": highlight, "lines_drawn": prose}
        # A part is drawn without what stands outside its block, imports among it, so shared macros are known everywhere.
        for name in ("shared.html", "chart.html"):
            macros = vars(self._templates.get_template(name).module)
            self._templates.globals |= {name: macro for name, macro in macros.items() if isinstance(macro, Macro)}

    def shell(self) -> HTMLResponse:
        """The page with nothing in it: its script fetches the same address with the key, and puts it there."""
        return HTMLResponse(self._templates.get_template("shell.html").render())

    def page(self, request: Request, template: str, context: Mapping[str, Any], *, status: int = 200) -> HTMLResponse:
        """A page, or the part of it that `?part=` names: the template's block of that name."""
        state = request.scope.get("state", {})
        given = {"pages": self._pages, "current": "", "who": state.get("who"), "path": request.url.path}
        agent: dict[str, Any] | None = None
        if "served" in state:  # who the agent is and how much waits, for the rail beside every page
            here = state["served"]
            who, waiting = here.home.identity.resolved(), sum(here.waiting())
            agent = {"name": who.name.value, "emoji": who.emoji.value if who.emoji else "", "waiting": waiting}
        given |= {"agent": agent, **context}
        found = self._templates.get_template(template)
        part = request.query_params.get("part")
        if part is None or part not in found.blocks:
            return HTMLResponse(found.render(given), status_code=status)
        drawn = "".join(found.blocks[part](found.new_context(given)))
        return HTMLResponse(drawn, status_code=status)


def moment(time: datetime) -> str:
    """A time as a machine reads it, for `<time datetime>`; the script shows it in the reader's own zone."""
    return time.astimezone(UTC).isoformat(timespec="seconds").removesuffix("+00:00") + "Z"


def ago(now: datetime, time: datetime) -> str:
    seconds = (now - time).total_seconds()
    span = abs(seconds)
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if span >= size:
            said = count(max(1, int(span // size if seconds > 0 else round(span / size))), name)
            return f"{said} ago" if seconds > 0 else f"in {said}"
    return "just now" if seconds >= 0 else "in a moment"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def entry_address(hit: Any) -> str:
    return f"/sessions/{quote(hit.session_id, safe='')}?start={hit.entry - hit.entry % TURNS}#e{hit.entry}"


def inert(text: str) -> Markup:
    """Text with what a reader would not see, or a browser would act on, shown by number."""
    if text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable():
        return escape(text)
    odd = Markup('<span class="odd" title="a character that is not seen">⟨U+{:04X}⟩</span>')
    return Markup("").join(escape(c) if c in "\n\t" or c.isprintable() else odd.format(ord(c)) for c in text)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a diff as a page shows it: a kind, a sign, and the numbers on both sides."""

    kind: Literal["file", "place", "add", "cut", "same", "note"]  # the first two and the last are no content
    text: str
    old: int | None = None
    new: int | None = None


def diff_lines(diff: str, most: int | None = MOST_LINES) -> Iterator[DiffLine]:
    """The lines of a unified diff, numbered; a long one ends with a line that says how much is left out, where there is a
    `most`. The counts of each hunk decide what is content, so that none can pass for the heading of another file."""
    old = new = old_end = new_end = 0
    lines = diff.split("\n")[: -1 if diff.endswith("\n") else None]
    for line in lines[:most]:
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
    if most is not None and len(lines) > most:
        yield DiffLine(kind="note", text=f"… {len(lines) - most:,} lines more")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProseLine:
    """One line. `kind` is a class of the style sheet; `sign` stands before an item; `depth` is how far it is set in."""

    n: int
    kind: str  # h1 … h6, item, quote, code, rule, front, note, text, blank
    body: Markup
    sign: str = ""
    depth: int = 0


def prose(text: str) -> Iterator[ProseLine]:
    fence, comment, at, front, in_table = "", False, 0, front_matter_end(text), False
    lines = lines_of(text)
    for n, raw in enumerate(lines, start=1):
        at += len(raw)
        line = raw.removesuffix("\n").removesuffix("\r").removeprefix("\ufeff" if n == 1 else "")
        begins = not in_table and "|" in line and n < len(lines) and _is_table_rule(lines[n])
        in_table = not fence and not comment and "|" in line and (in_table or begins)
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
        elif in_table:
            rule = not begins and _is_table_rule(raw)
            cells = line.strip().removeprefix("|").removesuffix("|").split("|")
            drawn = (Markup('<span class="cell">{}</span>').format(_emphasised(cell.strip())) for cell in cells)
            yield ProseLine(n=n, kind="td-rule" if rule else "tr th" if begins else "tr", body=Markup("").join(drawn))
        else:
            yield _prose_line(n, line)


def _is_table_rule(line: str) -> bool:
    return "|" in line and len(line) <= LONGEST and _TABLE.fullmatch(line.rstrip("\r\n")) is not None


def source(text: str) -> Iterator[ProseLine]:
    """The same lines as they stand in the file."""
    for n, raw in enumerate(lines_of(text), start=1):
        yield ProseLine(n=n, kind="code", body=inert(raw.removesuffix("\n").removesuffix("\r")))


def _prose_line(n: int, line: str) -> ProseLine:
    if not line.strip():
        return ProseLine(n=n, kind="blank", body=Markup(""))
    if found := _HEADING.match(line):
        return ProseLine(n=n, kind=f"h{len(found[1])}", body=_emphasised(line[found.end() :]))
    if _RULE.match(line):
        return ProseLine(n=n, kind="rule", body=Markup(""))
    if found := _ITEM.match(line):
        boxed = {None: "", " ": "☐ "}.get(found[3], "☑ ")
        sign = boxed + ("•" if found[2] in "-*+" and not boxed else found[2] if found[2] not in "-*+" else "")
        depth = min(4, len(found[1].expandtabs(4)) // 2)
        return ProseLine(n=n, kind="item", sign=sign.strip(), depth=depth, body=_emphasised(line[found.end() :]))
    found = _QUOTE.match(line)
    return ProseLine(n=n, kind="quote" if found else "text", body=_emphasised(line[found.end() if found else 0 :]))


def _emphasised(text: str) -> Markup:
    """A line with its emphasis drawn. Names and pages of the home are links; where any other leads is shown, and cannot be
    followed."""
    if len(text) > LONGEST:
        return inert(text)
    parts, at = [], 0
    for found in _INLINE.finditer(text):
        if found.lastgroup in _EMPHASIS:
            tag, signs = _EMPHASIS[found.lastgroup]
            drawn = tag.format(inert(found[0][signs : len(found[0]) - signs]))
        elif found["wiki"] or found["at"]:
            name = found[0].strip("[]@").partition("|")[0]
            drawn = _TO_NAME.format(quote(name, safe=""), inert(found[0]))
        elif _OWN_PAGE.fullmatch(found["to"]):
            drawn = Markup('<a class="wiki" href="/memory/{}">{}</a>').format(quote(found["to"]), inert(found["said"]))
        else:
            drawn = Markup('{} <span class="to">({})</span>').format(inert(found["said"]), inert(found["to"]))
        parts += [inert(text[at : found.start()]), drawn]
        at = found.end()
    return Markup("").join([*parts, inert(text[at:])])


@dataclass(frozen=True, slots=True, kw_only=True)
class LineMark:
    """The mark beside a line. `word` is shown where a run of lines with the same one begins."""

    source: Source
    word: str
    begins: bool


def marks(sources: Iterable[Source | None]) -> Iterator[LineMark | None]:
    """A mark for each line; None for a line with nothing on it, which nobody wrote."""
    before: tuple[str, str] | None = None
    for source in sources:
        if source is None:
            yield None
            continue
        # Who wrote it; with a sign before what was read when that was no text of the owner's.
        foreign = sorted(({source.origin} | source.taint) & UNTRUSTED)
        word = f"{'✓' if source.trusted else '!'} {'+'.join(foreign)}" if foreign else WORDS[source.actor]
        yield LineMark(source=source, word=word, begins=(str(source.actor), word) != before)
        before = (str(source.actor), word)
