"""The memory verbs: remember, note, edit, seed, and what each writes: a line under a section, a note in a day's log, one
string for another.

Promise: each makes changes and submits them to the road, none writes by itself; only the span that is asked for changes;
an edit looks for its text in what the listener sees and nowhere else; a line that MEMORY.md says already, in the same or
nearly the same words, is found and told with its place. Not here: the road (write), who may (gate).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from anima.errors import BadArguments, StaleWrite
from anima.memory.write import Writer, owners
from anima.model import DocPath, Kind, Receipt, digest_of
from anima.text import bullet_text
from anima.text.markdown import View, bullet_of, ended, lines_of, newline_of, without_tail
from anima.text.pages import Landed, opening_for, placed

_SMALL = frozenset(
    """a an the and or of to in on at for with is are was be been it its this that his her their my your our as by from
    el la los las un una de del que en y o es con por para su sus lo der die das ein eine und oder ist mit von im le les des
    du une et est pour sur il elle""".split()
)
_NEGATIONS = frozenset(
    "not no never nor without nicht kein keine nie ohne sin nunca ni jamás ne pas jamais sans".split()
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_NEAR = 0.9
MOST_FACT = 4_000  # characters; whoever has more to say has a document


# -- the owner's verbs --------------------------------------------------------------------------------------------------


def remember(writer: Writer, fact: str, *, section: str | None, reason: str) -> Receipt:
    try:
        return _remember(writer, fact, section, reason)
    except StaleWrite:  # somebody else wrote meanwhile; with the home's lock nobody does
        with writer.store.lock():
            return _remember(writer, fact, section, reason)


def _remember(writer: Writer, fact: str, section: str | None, reason: str) -> Receipt:
    path = DocPath.parse(writer.site.layout.curated)
    text = writer.site.text_of(path)
    if twin := twin_of(text or "", fact):
        said = f"{path} line {twin.line} says so already: {twin.text}"
        return Receipt(status="refused", path=path, rule="duplicate", reason=said)
    page = remembered(text or "", fact, section=section)
    change = owners(path, Kind.WRITE, page.text, base=digest_of(text), reason=reason)
    return writer.submit([replace(change, under=page.section)])[0]


def note(writer: Writer, content: str, *, reason: str) -> Receipt:
    now = writer.site.now()
    path = writer.site.layout.daily_path(now.date())
    text = writer.site.text_of(path)
    before = opening_for(text) if text is not None else ""
    change = owners(path, Kind.APPEND, before + log_line(content, now), reason=reason)
    return writer.submit([replace(change, opening=log_heading(now))], what="note")[0]


def edit(writer: Writer, path: DocPath, old: str, new: str, *, every: bool, reason: str) -> Receipt:
    document = writer.site.store.documents.read(path)
    text = replaced(document.text, old, new, every=every, path=document.path.text)
    return writer.submit([owners(document.path, Kind.WRITE, text, base=document.digest, reason=reason)])[0]


def seed(writer: Writer, *, name: str, emoji: str | None, bootstrap: bool) -> tuple[str, ...]:
    from anima.layout import starter

    layout, documents = writer.site.layout, writer.site.store.documents
    wanted = []
    for file, text in starter.texts(name, emoji).items():
        role = "runbook" if file == starter.RUNBOOK else file.partition(".")[0].casefold()
        if (file == starter.BOOTSTRAP and not bootstrap) or not layout.has(role):
            continue
        path = DocPath.parse(layout.row(role).path)
        if documents.actual(path) is None:
            wanted.append(owners(path, Kind.WRITE, text, base="", reason="templates of a new home"))
    if wanted:
        writer.submit(wanted, what="seed")
    documents.make_folder(layout.daily)
    return tuple(change.path.text for change in wanted)


# -- what they write ----------------------------------------------------------------------------------------------------


class SaidAlready(NamedTuple):
    """A line that says the same already."""

    line: int
    text: str


def remembered(text: str, fact: str, *, section: str | None) -> Landed:
    """MEMORY.md with one more bullet, where it belongs, and the heading it stands under."""
    return placed(text, as_bullet(fact), section=section)


def apart(text: str, added: str) -> str:
    """The text with lines added at its end, under a heading of their own where the last section is a marked one."""
    return ended(text) + opening_for(text) + added


def as_bullet(fact: str) -> str:
    """A fact as one bullet; more lines hang below it, indented."""
    lines = [line.rstrip() for line in fact.strip().splitlines() if line.strip()]
    if not lines:
        raise BadArguments("there is nothing to remember")
    if len(fact) > MOST_FACT:
        raise BadArguments(
            f"a fact has at most {MOST_FACT:,} characters, and this has {len(fact):,}; nothing was written",
            hint="write a long text as a document of its own, such as notes/gauge.md, and remember where it is",
        )
    return "\n".join([f"- {_without_point(lines[0])}", *(f"  {line.strip()}" for line in lines[1:])])


def _without_point(line: str) -> str:
    """A line without the sign of a list, unless it is a number, which may be part of what it says."""
    bullet = bullet_of(line)
    return bullet_text(line) if bullet and bullet.is_point and bullet.text else line.strip()


def twin_of(text: str, fact: str) -> SaidAlready | None:
    """The first line of a text that says this fact in the same, or nearly the same, words."""
    wanted = _plain(fact)
    if not wanted:
        return None
    words = _words(fact)
    for number, line in enumerate(lines_of(text), start=1):
        shown = without_tail(bullet_text(line))
        if not shown or shown.startswith(("#", "<!--")):
            continue
        if _plain(shown) == wanted or near(words, _words(shown)):
            return SaidAlready(number, shown)
    return None


def near(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two sets of words say the same: all but a tenth shared, with the same numbers and negations."""
    if len(one) < 3 or len(other) < 3:
        return False
    differing = one ^ other
    if any(word in _NEGATIONS or any(c.isdigit() for c in word) for word in differing):
        return False
    return len(one & other) / len(one | other) >= _NEAR


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def _words(text: str) -> frozenset[str]:
    return frozenset(_plain(text).split()) - _SMALL


def log_line(content: str, now: datetime) -> str:
    """A note as a line of the day's log: `- [14:30] …`; further lines hang below it."""
    lines = [line.rstrip() for line in content.strip().splitlines() if line.strip()]
    if not lines:
        raise BadArguments("there is nothing to note")
    return "\n".join([f"- [{now:%H:%M}] {_without_point(lines[0])}", *(f"  {line}" for line in lines[1:])]) + "\n"


def log_heading(now: datetime) -> str:
    return f"# {now:%Y-%m-%d}\n\n"


def replaced(text: str, old: str, new: str, *, every: bool, path: str) -> str:
    """The text with one string for another. Raises BadArguments when it is not there, or there more than once."""
    if not old:
        raise BadArguments("old_string is empty; say which text to replace")
    count = text.count(old)
    if count == 0 and "\r\n" in text and "\r\n" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
        count = text.count(old)
    if count == 0:
        raise BadArguments(f"{path}: the text to replace is not there; read the document and copy it exactly")
    if count > 1 and not every:
        lines = [str(n) for n, line in enumerate(lines_of(text), start=1) if old.split("\n")[0] in line][:8]
        raise BadArguments(
            f"{path}: the text to replace stands {count} times (lines {', '.join(lines)}); give more of it, or replace_all"
        )
    return text.replace(old, new)


def replaced_in(text: str, part: View, old: str, new: str, *, every: bool, path: str) -> str:
    """The whole text with one string for another in what this listener sees of it.

    What is hidden stays where it is, and whatever is wrong gets one answer, so that trying tells nothing about it.
    """
    if not old:
        raise BadArguments("old_string is empty; say which text to replace")
    if "\r\n" in part.text and "\r\n" not in old and old not in part.text:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    found = [match.start() for match in re.finditer(re.escape(old), part.text)]
    if not found or (len(found) > 1 and not every):
        raise BadArguments(
            f"{path}: the text to replace must stand there exactly once, or be replaced with replace_all; "
            "read the document and copy it exactly"
        )
    return "".join(_pieces(text, part, found, old, new))


def _pieces(text: str, part: View, found: list[int], old: str, new: str) -> Iterator[str]:
    """The new text, piece by piece: what is hidden as it is, and each part that is seen without the old string."""
    edits = iter([*found, len(part.text)])
    at, seen, done = next(edits), 0, 0  # the next match, where this part begins in the view, how far the view is done
    for (start, end), before in zip(part.spans, [0, *(end for _, end in part.spans)], strict=False):
        yield text[before:start]
        piece, limit = "", seen + end - start
        while at < limit:
            piece += part.text[max(done, seen) : at] + new
            done, at = at + len(old), next(edits)
        piece += part.text[max(done, seen) : limit]
        # What is hidden begins on a line of its own, and goes on doing so: else it might no longer be hidden.
        yield piece + (newline_of(text) if end < len(text) and piece and not piece.endswith(("\n", "\r")) else "")
        seen = limit
    yield text[part.spans[-1][1] :]
