"""Pages of memory: the section that a line belongs to, and the page with the line there; what is remembered, noted and
edited, as a page holds it; and bank pages, read.

Promise: one rule for all that is added to memory: the section that was named (made when there is none), else the one it is most
like by shared words and their meaning, else `## Notes`. Only who names a heading that is shared, private or dreamed gets under
it. The same page and line give the same place; no model is asked, and what is read of a page is bounded. A line that a page
says already is found with its place; an edit looks for its text in what the listener sees alone, and only the span asked for
changes. Not here: who may (gate), the write (memory), what is retained and how bank pages are made (dream.pages).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from functools import cache, lru_cache
from itertools import chain, islice, pairwise, repeat, takewhile
from pathlib import Path
from typing import NamedTuple

from anima.errors import BadArguments, BadPath
from anima.model import Choose, DocPath
from anima.text import bullet_text, cut, markdown, read_table, word_set, words_in
from anima.text.markdown import Section, View, bullet_of, heading_of, lines_of, newline_of, sections, without_tail

NOTES = "Notes"
SURE = 0.55  # how likely a section must be for nobody to be asked
MOST_OFFERED = 8  # sections to choose from
MOST_LEARNED = 200  # lines about somebody that are put in their places; the others come at the end
LEAST = 0.35  # how likely the best section must be; below that, a line in Notes is easier to find than a misfiled one
MOST_LINES, MOST_SECTIONS = 60, 200  # of a section, the newest; of a page
_FIELD = re.compile(
    r"^ {0,3}(?:[-*+][ \t]+)?(?P<bold>\*\*|__|)(?P<name>[^:*_\n]{1,40})(?::(?P=bold)|(?P=bold):)(?P<value>[^\r\n]*)",
    re.MULTILINE,
)
_NO_TITLE = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]|<!--|-->")  # what would make more of a heading than its words
_DREAMED = re.compile(r"Dreamed\b")
_NO_LETTERS = bytes(byte for byte in range(128) if not chr(byte).isalnum() and byte != 10)
_WORD, _CAPITAL = re.compile(r"[^\W\d_]+"), re.compile(r"[^\W\d_]")
_MANY = re.compile(r"\W*\w+s (?:are|were|have|do)\b")
_GOES_ON = re.compile(r"[^\S\n]+\S|[a-zß-öø-ÿа-я]")  # a line of the item above it: set in, or going on in small letters


class Landed(NamedTuple):
    """A page with a line put in, and the heading it stands under; None where the page has no sections. Where that was not
    sure and nobody was asked, `likely` are others that it may belong under, the likeliest first."""

    text: str
    section: str | None
    likely: tuple[str, ...] = ()


def placed(text: str, line: str, *, section: str | None = None, choose: Choose | None = None) -> Landed:
    """The page with one more bullet, further lines hanging below it, where it belongs. `choose` is asked in doubt."""
    if not text.strip(markdown.BOM).strip():
        text = f"{text}# Memory{newline_of(text)}"
    found = [part for part in sections(text) if part.level and not part.claimed]
    level = markdown.marked_at(markdown.all_sections(text), len(text), also=_DREAMED)
    if section is None and len(found) < 2 and level is None:  # one list, whatever it says
        last = lines_of(text)[-1]
        bullet = bullet_of(last)
        gap = "" if (bullet and bullet.is_point) or not last.strip() else newline_of(text)
        return Landed(markdown.add_last(text, gap + line), None)
    likely: tuple[str, ...] = ()
    if section is None:
        section, target, likely = _most_alike(text, found, line, choose)
    elif (target := _titled(text, section)) is None and choose is not None:
        target = _near(found, section, choose)
    if target is not None:
        return Landed(markdown.add_to(text, found, target, line), target.title, likely)
    if not section.strip() or section.lstrip().startswith("#") or _NO_TITLE.search(section):
        why = "a heading is one line of plain words; nothing was written"
        raise BadArguments(why, hint="marks are set in the document")
    return Landed(markdown.add_section(text, section, line, level=min(level or 2, 2)), section, likely)


def filled(text: str, content: str) -> str:
    """A page that says who somebody is, with what was learned of them: values go to the page's fields (`- **Name:** …`;
    a new one comes after the others), lines under a heading that it has go there, and the rest comes at its end."""
    under, rest = "", list[str]()
    for number, line in enumerate(lines_of(content.strip("\r\n") + "\n")):
        heading, said = (heading_of(line), _FIELD.match(line)) if number < MOST_LEARNED else (None, None)
        fields = list(_fields(text)) if said and said["value"].strip() else []
        name = said["name"].strip().casefold() if said and fields else ""
        field = next((each for each in fields if name and each["name"].strip().casefold() == name), None)
        if said and field:
            text = f"{text[: field.start('value')]} {said['value'].strip()}{text[field.end('value') :]}"
        elif said and name and said["bold"]:
            at = fields[-1].end()
            text = f"{text[:at]}{newline_of(text)}{said[0].strip()}{text[at:]}"
        elif heading and (known := _titled(text, heading.title)):
            under = known.title
        elif heading or not under or number >= MOST_LEARNED:
            under = ""
            rest.append(line)
        elif line.strip():
            text = placed(text, line.rstrip("\r\n"), section=under).text
    left = "".join(rest).strip("\r\n")
    return markdown.add_last(text, f"{opening_for(text) or newline_of(text)}{left}") if left.strip() else text


def _fields(text: str) -> Iterator[re.Match[str]]:
    """The fields of a page that a reader sees: bold labels outside of code and comments."""
    at = 0
    for line, place in markdown.lines_with_place(text):
        found = None if place or line.lstrip().startswith("<!--") else _FIELD.match(text, at)
        if found and found["bold"]:
            yield found
        at += len(line)


def _titled(text: str, title: str) -> Section | None:
    found = (part for part in sections(text) if part.level and not part.claimed)
    return next((part for part in found if part.title.casefold() == title.casefold()), None)


def _near(found: Sequence[Section], title: str, choose: Choose) -> Section | None:
    """The section whose heading is spelt nearly so, if whoever named a new one says that they meant it."""
    titles = {part.title.casefold(): part for part in reversed(found)}
    near = [titles[each] for each in get_close_matches(title.casefold(), titles, n=1, cutoff=0.7)]
    return next((part for part in near if choose([part.title], title) == part.title), None)


def opening_for(text: str) -> str:
    """What must stand between a text and lines added at its end: nothing, unless its last section is marked."""
    if not markdown.may_be_marked(text) and "Dreamed" not in text:
        return ""  # which a long log need not be read for
    if (level := markdown.marked_at(markdown.all_sections(text), len(text), also=_DREAMED)) is None:
        return ""
    newline = newline_of(text)
    return f"{newline}{'#' * min(level, 2)} {NOTES}{newline}{newline}"


def _most_alike(
    text: str, found: Sequence[Section], line: str, choose: Choose | None
) -> tuple[str, Section | None, tuple[str, ...]]:
    """The heading that most speaks for, if enough does, and its section; else, or where others read it, the one for all the rest,
    which a page may lack. Whoever can be asked chooses where nothing is sure; else the headings to choose from are told."""
    marks = markdown.all_sections(text)
    known = [(part, markdown.own_end(found, part)) for part in found[:MOST_SECTIONS]]
    lines = [[row for row in lines_of(text[part.body : end])[-MOST_LINES:] if row.strip()] for part, end in known]
    places = [at for at, (part, _) in enumerate(known) if part.level > 1 or any(map(bullet_of, lines[at]))]  # no title
    said = [[without_tail(bullet_text(row), loose=True) for row in lines[at]] for at in places]
    titles, own = [known[at][0].title for at in places], without_tail(bullet_text(line), loose=True)
    likely = likelihoods(titles, said, own)
    lowered = _CAPITAL.sub(lambda first: first[0].lower(), own, count=1)
    bare = likely if opens_with_a_name(own) else likelihoods(titles, said, lowered)  # if the capital is a sentence's
    ranked = sorted(zip(likely, places, strict=True), key=lambda each: (-each[0], each[1]))
    free = [at for _, at in ranked if markdown.marked_at(marks, known[at][1], also=_DREAMED) is None]
    rest = next((found[at] for at in sorted(free) if found[at].title.casefold() == NOTES.casefold()), None)
    best, at = ranked[0] if ranked else (0.0, -1)
    target = found[at] if best >= LEAST and at in free else rest
    title = target.title if target else NOTES  # which another heading may be called, too, that others read
    is_sure = best >= SURE and at in free and bare[places.index(at)] >= max(1 - sum(bare), *bare)
    others = [] if is_sure else [found[each] for each in free if found[each] is not target][:MOST_OFFERED]
    offered = tuple(part.title for part in others)
    if choose is None or not others:
        return title, target, offered
    wanted = choose(offered, title)
    if not isinstance(wanted, str | None):
        raise BadArguments("choose names a heading, or None; nothing was written")
    if wanted in (None, title):
        return title, target, ()
    return wanted, next((part for part in others if part.title == wanted), _titled(text, wanted)), ()


# -- how well a line goes under each section --------------------------------------------------------------------------------

# The meaning of words is a table made beforehand (`benchmarks/placing.py` makes it anew from word lists and pages that are in the
# repository; the vectors it begins with are those of wordllama, MIT): a few numbers for each of some thousand English words, and
# the weight of each thing that is looked at. A word that it does not have counts only where both have it, as do the words of all
# other languages. It is read when a line is first placed.
FILE = Path(__file__).parent / "tables" / "meaning.bin"
TELLS = 0.2  # the weight of a word that says what a line is about
EARLY, FADES = 1.0, 2.0  # how much more the first such word counts, and how fast the rest falls behind
DOUBT = 1.0  # what little is known of a line says little
FIRST = 3  # words of a line that may name its subject
_ASKS, _NAMES = tuple(cut("question")), tuple(cut("person"))
Vector = list[float]


class Meanings:
    """What each word means, in some numbers, with its weight as the last; and how much each feature speaks for a section,
    with what a section must reach as the last. A signed byte is 127 times a number."""

    def __init__(self, words: Sequence[str], numbers: bytes, says: Sequence[float]) -> None:
        self.rows, self.says = {word: at for at, word in enumerate(words)}, says
        self.numbers, self._wide = numbers, len(numbers) // len(words)
        self._read: dict[int, Vector] = {}

    def vector(self, row: int) -> Vector:
        """A word's numbers, each times its weight, and the weight."""
        if row not in self._read:
            raw = memoryview(self.numbers).cast("b")[row * self._wide : (row + 1) * self._wide]
            weight = raw[-1] / 127
            self._read[row] = [number / 127 * weight for number in raw[:-1]] + [weight]
        return self._read[row]


@cache
def table() -> Meanings:
    first, rest = FILE.read_bytes().split(b"\n", 1)
    about = json.loads(first)
    *words, numbers = rest.split(b"\n", about["words"])
    return Meanings([word.decode() for word in words], numbers, about["says"])


def likelihoods(heads: Sequence[str], lines: Sequence[Sequence[str]], line: str) -> list[float]:
    """How likely it is that a person would choose each section. What is left of one is for none of them."""
    *says, least = table().says
    rows = features(table(), heads, lines, line)
    odds = [math.exp(min(sum(map(float.__mul__, row, says)) - least, 50)) for row in rows]
    return [each / (1 + sum(odds)) for each in odds]


def opens_with_a_name(line: str) -> bool:
    """Whether a line begins with a common first name."""
    word, known = _WORD.search(line), word_set(read_table("text", "names")["first"])
    return word is not None and word[0][0].isupper() and plain(word[0]) in known


def features(known: Meanings, heads: Sequence[str], lines: Sequence[Sequence[str]], line: str) -> list[Vector]:
    """What is looked at of each section, as numbers."""
    mine, titles = _read(line), [_read(head) for head in heads]
    under = [[_read(each) for each in some] for some in lines]
    times = [Counter(word for each in some for word in each.words) for some in under]
    spread = Counter(
        w for title, found in zip(titles, times, strict=True) for w in mine.words if w in title.words or found[w]
    )
    length = math.hypot(*mine.meaning)
    about = [number / (length + DOUBT) for number in mine.meaning]
    rares = {word: math.log(1 + len(heads) / count) / math.log(1 + len(heads)) for word, count in spread.items()}
    weights = {word: known.vector(known.rows[word])[-1] if word in known.rows else 1.0 for word in spread}
    subject, found = set(list(mine.words)[:FIRST]), []
    for title, some, seen in zip(titles, under, times, strict=True):
        of_title = _unit(title.meaning)
        of_lines = _unit(list(map(sum, zip(*(_unit(each.meaning) for each in some), strict=True))))
        near = [sum(map(float.__mul__, about, each)) for each in (of_title, of_lines if some else of_title)]
        row = [*near, float(not some), 0.0, 0.0, 0.0, 0.0]
        for word, rare in rares.items():
            told = rare * weights[word]
            row[3] += told * (word in title.words)
            if seen[word]:
                row[4] += told * (1 + math.log(seen[word]) / 2) / math.sqrt(len(mine.words))
                row[5] += told * (word in subject)
                row[6] += rare * (word in mine.names)
        found.append(row)
    return found


class _Read(NamedTuple):
    words: Mapping[str, None]
    names: frozenset[str]
    meaning: Vector


@lru_cache(16_384)
def _read(text: str) -> _Read:
    """The words of a line, each once, those of them that are names, and what it means; a question has one word more,
    and so has one that begins with a name: with an unknown word and a capital, unless it is many ("Zebras are …")."""
    words, names, rows, is_many = dict[str, None](), set[str](), table().rows, _MANY.match(text)
    for number, (raw, forms) in enumerate(words_in(text)):
        is_name = len(raw) > 1 and raw[:1].isupper()
        is_name &= number > 0 or not (is_many or any(form in rows for form in forms))
        words.update(dict.fromkeys(forms))
        names.update(forms if is_name else ())
    leads = bool(words) and next(iter(words)) in names
    asks = dict.fromkeys(_ASKS if text.rstrip().endswith("?") else ())
    words = asks | dict.fromkeys(_NAMES if leads else ()) | words
    # What they mean together: their sum, the first of them counting more; zeros where none is known.
    meaning, told = [0.0] * (len(table().vector(0)) - 1), 0
    for row in [rows[word] for word in words if word in rows]:
        share, vector = 1 + EARLY * math.exp(-told / FADES), table().vector(row)
        meaning = [number + share * more for number, more in zip(meaning, vector, strict=False)]
        told += vector[-1] >= TELLS
    return _Read(words, frozenset(names), meaning)


def _unit(vector: Vector) -> Vector:
    length = math.hypot(*vector)
    return [number / length for number in vector] if length > 1e-9 else vector


# -- bank pages, read ---------------------------------------------------------------------------------------------------


BANK = "bank"
PAST = "past.md"  # the topic that holds what was true once
KEPT = "kept.md"  # and the one of lines that memory had no room for
BEGIN = "<!-- anima:kept (made anew by reflection; your own words go above or below) -->"
END = "<!-- /anima:kept -->"
_ENTITY = re.compile(r"(?<![\w@])@([^\W\d_][\w.-]{0,40})|\[\[([^\]|#\n]{1,80})(?:[|#][^\]\n]{0,200})?\]\]")
_BEGIN, _END = re.compile(r"[ \t]*<!-- anima:kept\b[^>\n]*-->[ \t]*\r?\n?\Z"), re.compile(r"[ \t]*<!-- /anima:kept -->")
_DAY = r"(\d{4}-\d{2}-\d{2})"
_WAS = re.compile(rf"\s_\((?:{_DAY} to |until ){_DAY}; then: ", re.ASCII)
_HELD = re.compile(rf"\((?:since {_DAY}|(?:from {_DAY} )?until {_DAY})\)\Z", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A line that held on a date. With neither `since` nor `until` nobody wrote down when it began."""

    text: str
    path: str
    line: int
    since: date | None
    until: date | None


def is_point(line: str) -> bool:
    bullet = bullet_of(line)
    return bullet is not None and bullet.is_point and len(bullet.indent) <= 3 and bool(bullet.text)


def entities_in(text: str) -> tuple[str, ...]:
    """The entities a statement names, each once: `@Ana`, `[[Casa Azul]]`."""
    names = ((match[1] or match[2]).replace("_", " ").strip(" .-") for match in _ENTITY.finditer(text))
    return tuple(dict.fromkeys(name for name in names if name))


def slug_of(name: str) -> str:
    """A name as part of a path: plain letters, safe on every file system, never empty."""
    slug = re.sub(r"[\W_]+", "-", plain(name)).strip("-")
    digest = hashlib.sha256(plain(name).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    if len(slug.encode("utf-8", "surrogatepass")) > 120:
        slug = f"{slug[:30]}-{digest}"
    try:
        return DocPath.parse(f"{BANK}/entities/{slug}.md").name.removesuffix(".md")
    except BadPath:
        return f"entity-{digest}"


def outside_blocks(text: str) -> str:
    """The text with the lines of managed blocks emptied, so that line numbers stay: what a person wrote."""
    lines = lines_of(text)
    for start, end in blocks_in(lines):
        lines[start:end] = ["\n"] * (end - start)
    return "".join(lines)


def blocks_in(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Each begin mark with the next end mark, when no other begin stands between: a lone mark owns nothing."""
    found, begun = list[tuple[int, int]](), -1
    for number, line in enumerate(lines):
        if _BEGIN.match(line):
            begun = number
        elif begun >= 0 and _END.match(line) and not line.strip().removeprefix(END):
            found.append((begun, number + 1))
            begun = -1
    return found


def facts_at(texts: Mapping[str, str], name: str, at: date) -> tuple[Fact, ...]:
    """What the lines that name it say of a date, dated ones first, the latest beginning first. A line ends `(since
    2026-02-03)`, `(from 2026-01-03 until 2026-02-03)` or `(until 2026-02-03)`, or as dreaming puts it, `_(2026-01-03 to
    2026-02-03; then: …)_` or `_(until 2026-02-03; then: …)_`; it holds from its first day to the day before its last, where
    its successor begins. A line without dates holds as far as anybody knows, except in `past.md`. What came after a fact is
    no part of it."""
    wanted = re.compile(rf"(?<!\w){re.escape(plain(name))}(?!\w)")
    found = []
    for path, text in texts.items():
        for number, line in enumerate(lines_of(text), start=1):
            if is_point(line) and wanted.search(plain(line)):
                fact = _fact(line, path, number)
                is_past = not (fact.since or fact.until) and path.rpartition("/")[2] == PAST
                holds = (fact.since or date.min) <= at and (fact.until is None or at < fact.until)
                if not is_past and holds and wanted.search(plain(fact.text)):
                    found.append(fact)
    found.sort(key=lambda f: (f.since is None and f.until is None, -(f.since or date.min).toordinal(), f.path, f.line))
    return tuple(found)


def _fact(line: str, path: str, number: int) -> Fact:
    text = without_tail(bullet_text(line))
    was = _WAS.search(text) if text.endswith(")_") else None
    at = was.start() if was else max(0, text.rfind("("))
    dated = was or _HELD.match(text, at)
    if dated and all(map(day_in, filter(None, dated.groups()))):
        *begins, until = map(day_in, dated.groups())
        since = next(filter(None, begins), None)
        return Fact(text=text[:at].rstrip(), path=path, line=number, since=since, until=until)
    return Fact(text=text, path=path, line=number, since=None, until=None)


def day_in(text: str | None) -> date | None:
    """The day that a text such as 2026-05-08 names; None for none, and for a day that no month has."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


def plain(text: str) -> str:
    kept = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join(kept.split())


# -- what verbs write into pages -----------------------------------------------------------------------------------------

MOST_FACT = 4_000  # characters; whoever has more to say has a document


class SaidAlready(NamedTuple):
    """A line that says the same already."""

    line: int
    text: str


def as_bullet(fact: str) -> str:
    """A fact as one bullet; more lines hang below it, indented."""
    lines = [line.strip() for line in fact.splitlines() if line.strip()]
    if not any(c.isalnum() or unicodedata.category(c) in ("So", "Sc") for c in fact):  # signs alone say nothing
        raise BadArguments("there is nothing to remember")
    said = "\n  ".join([_without_point(lines[0]), *lines[1:]])  # the same of a bullet as of its words, when it is kept
    if len(said) > MOST_FACT:
        raise BadArguments(
            f"a fact has at most {MOST_FACT:,} characters, and this has {len(said):,}; nothing was written",
            hint="write a long text as a document of its own, such as notes/gauge.md, and remember where it is",
        )
    return f"- {said}"


def _without_point(line: str) -> str:
    """A line without the sign of a list, unless it is a number, which may be part of what it says."""
    bullet = bullet_of(line)
    return bullet_text(line) if bullet and bullet.is_point and bullet.text else line.strip()


def twin_of(text: str, fact: str, *, section: str | None = None) -> SaidAlready | None:
    """The first item of a text that says just this fact: the same words in the same forms, and no line more; not of somebody
    else, where it is to go under a section that says of whom it is."""
    from anima.text.reading import wording  # with its tables, which a prompt need not wait for

    first, *rest = [line.strip() for line in fact.splitlines() if line.strip()] or [""]
    wanted, more, lines = wording(_without_point(first)), [*map(wording, rest)], lines_of(text)
    needle, looks = _letters(wanted), chain(range(1, MOST_LINES), repeat(0))  # no line without the letters is it
    plain = cache(lambda: {number for number, _ in markdown.without_code(text, nested=True)})  # once a line may be it
    for at, (line, letters) in enumerate(zip(lines, _letters(text).split(b"\n"), strict=False)):
        shown = without_tail(bullet_text(line)) if wanted and needle in letters and not _GOES_ON.match(line) else ""
        is_it = shown and wanted in (wording(shown), wording(line.strip())) and not heading_of(line)
        below = takewhile(_GOES_ON.match, lines[at + 1 : at + 2 + len(more)] if is_it else ())
        is_it = is_it and at + 1 in plain() and [wording(line.strip()) for line in below] == more
        if is_it and not (section and next(looks) and _is_elsewhere(text, sum(map(len, lines[:at])), shown, section)):
            return SaidAlready(at + 1, shown)
    return None


def _is_elsewhere(text: str, at: int, said: str, section: str) -> bool:
    """Whether what stands at a place of a text would be said of something else under that section."""
    from anima.text.reading import ToldLine, read

    found, target = [part for part in sections(text) if part.level and not part.claimed], _titled(text, section)
    places = (at, target.start if target else -1)
    above = [[part.title for part in found if part.start <= place < part.end] for place in places]
    titles = [" / ".join(each) for each in (above[0], above[1] or [section])]
    first = {form for _, forms in islice(words_in(said), 1) for form in forms}
    if first & table().rows.keys() and first.isdisjoint(cut(" ".join(titles))):
        said = _CAPITAL.sub(lambda first: first[0].lower(), said, count=1)  # it only begins a sentence
    here, there = read([ToldLine(path="", number=0, text=said, under=each) for each in titles])
    return here.is_elsewhere(there)


def _letters(text: str) -> bytes:
    """The letters and digits of ASCII in a text and its line feeds, folded: what no wording of a line leaves out."""
    return unicodedata.normalize("NFC", text.casefold()).encode("ascii", "ignore").translate(None, _NO_LETTERS)


def log_line(content: str, now: datetime) -> str:
    """A note as a line of the day's log: `- [14:30] …`; further lines hang below it."""
    lines = [line.rstrip() for line in content.strip().splitlines() if line.strip()]
    if not lines:
        raise BadArguments("there is nothing to note")
    return "\n".join([f"- [{now:%H:%M}] {_without_point(lines[0])}", *(f"  {line}" for line in lines[1:])]) + "\n"


def log_heading(now: datetime) -> str:
    return f"# {now:%Y-%m-%d}\n\n"


def replaced(text: str, old: str, new: str, *, every: bool, path: str, is_part: bool = False) -> str:
    """The text with one string for another. Raises BadArguments when it is not there, or there more than once. Where it is the
    part that a listener sees, whatever is wrong gets one answer, so that trying tells nothing about the rest."""
    if not old:
        raise BadArguments("the text to replace is empty; say which one")
    if "\r\n" in text and "\r\n" not in old and old not in text:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    found = text.count(old)
    if not found or (found > 1 and not every):
        copy = "read the document and copy it exactly"
        why = f"is not there; {copy}"
        if is_part:
            why = f"must stand there exactly once, or be replaced with replace_all; {copy}"
        elif found:
            lines = [str(n) for n, line in enumerate(lines_of(text), start=1) if old.split("\n")[0] in line][:8]
            why = f"stands {found} times (lines {', '.join(lines)}); give more of it, or replace_all"
        raise BadArguments(f"{path}: the text to replace {why}")
    return text.replace(old, new)


def put_into(text: str, wanted: str, view: Callable[[str], View]) -> str:
    """The text with what a listener's `view` has of it become what they want, and nothing else to see: where what is hidden
    would be seen in its place, or hide something, it comes elsewhere. That there is something they do not learn."""
    part, wanted = view(text), markdown.ended(wanted if wanted.strip(markdown.BOM) else "")
    spans = pairwise([(0, 0), *part.spans, (len(text), 0)])
    hidden = markdown.ended("".join(text[end:start] for (_, end), (start, _) in spans)).removeprefix(markdown.BOM)
    top = markdown.front_matter_end(hidden)  # anywhere else it is none, as a heading behind a mark of bytes is none
    for page in (_put_in_place(text, part, wanted), hidden[:top] + wanted + hidden[top:], hidden + wanted):
        if view(page).text == view(wanted).text:
            return page
    raise BadArguments("this would change what other lines are; leave code and comments as they are")


def _put_in_place(text: str, part: View, wanted: str) -> str:
    """What is hidden stays ahead of the same lines, or behind them, else comes behind all that changed: between whole lines, as
    half of one would run into what is hidden."""
    before = markdown.ended(part.text)
    old, new = lines_of(before), lines_of(wanted)
    pairs = (zip(old, new, strict=False), zip(reversed(old), reversed(new), strict=False))
    head, tail = (sum(len(one) for one, _ in takewhile(lambda pair: pair[0] == pair[1], each)) for each in pairs)
    made, seen, done = [text[: part.spans[0][0] if part.spans else 0]], 0, 0
    for (start, end), (after, _) in pairwise([*(part.spans or [(0, 0)]), (len(text), 0)]):
        seen += end - start
        rest = len(before) - seen if seen < len(part.text) else 0
        at = seen if tail < rest and seen <= head else len(wanted) - min(rest, tail)
        made += [wanted[done:at], text[end:after]]
        done = at
    return "".join(made)
