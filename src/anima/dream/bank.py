"""The bank: typed memory pages kept from the `## Retain` sections of daily logs, and the changes that bring them in step.

A bullet there is `W` (the world), `B` (an experience), `O(c=0.8)` (an opinion and how sure) or `S` (an observation),
then the statement; `@Ana` and `[[Casa Azul]]` in it name entities.

Promise: a page's managed block, between two comment marks, is made anew from what is retained today; every byte outside
it stays, and pages that are right already are left alone. A statement is used only when every line of it may be built
on: written by the owner or from a clean session of the owner's, reviewed when it came from outside, and without a secret
or a danger in it. Decides, and writes nothing: a sweep submits the changes. Not here: reading pages (text.bank).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from anima.errors import Damaged, HomeError
from anima.gate.scan import scan_text
from anima.layout.table import Policy
from anima.model import Actor, Change, DocPath, Document, Kind, Origin, Scope, Severity, digest_of
from anima.site import Site
from anima.text.bank import BEGIN, END, FOLDER, blocks_in, entities_in, is_point, plain, slug_of
from anima.text.markdown import bullet_text, fence_after, lines_of, newline_of, sections

UNSAID = 0.6  # how sure an opinion is that does not say so
MOST = 400  # lines of one section of a page; older ones are still in the logs
_TITLE = "retain"
_ITEM = re.compile(r"([WBSO])(?:\((?:c ?= ?)?([^()\n]{0,20})\))?(?: ?: ?| )(?=\S)")
_SURE = re.compile(r"(?:0?[.,]\d{1,6}|[01](?:[.,]\d{1,6})?)\Z", re.ASCII)
_PRIVATE = re.compile(r"<!--[-\s]*private\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_NEGATIONS = frozenset(
    """not no never nor without cannot nicht kein keine keinen nie ohne sin nunca ni jamás tampoco ne pas jamais sans não nem
    sem non mai senza""".split()
)
_FILLERS = frozenset("a an the el la los las un una der die das ein eine le les des does do did is are was be".split())


class RetainedKind(StrEnum):
    WORLD = "W"
    EXPERIENCE = "B"
    OPINION = "O"
    OBSERVATION = "S"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """One statement of a daily log. `text` is in its own words; `confidence` is given for opinions alone."""

    kind: RetainedKind
    text: str
    entities: tuple[str, ...]
    confidence: float | None
    path: str
    line: int
    day: date | None
    last: int  # the last line it takes, where it goes on below

    @property
    def citation(self) -> str:
        return f"{self.path}#L{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """An opinion with how sure it is by now, and the statements for and against it, oldest first."""

    text: str
    confidence: float
    pro: tuple[Retained, ...]
    contra: tuple[Retained, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BankPage:
    """A page as it should stand."""

    path: DocPath
    text: str


# -- reading what is retained --------------------------------------------------------------------------------------------


def retained(text: str, *, path: str, day: date | None) -> tuple[Retained, ...]:
    """The statements of a log's `## Retain` sections, in order. Bullets without a kind are left alone."""
    found = []
    for number, parts in _bullets(text, _open_spans(text)):
        one = _statement(
            " ".join(" ".join(parts).split()), path=path, line=number, day=day, last=number + len(parts) - 1
        )
        if one is not None:
            found.append(one)
    return tuple(found)


def _open_spans(text: str) -> list[tuple[int, int]]:
    """Where retained statements stand, in order and apart from one another. What is private stays where it is."""
    spans: list[tuple[int, int]] = []
    hidden = 0
    for section in sections(text):
        hidden = max(hidden, section.private_end if section.private else 0)
        if section.title.casefold() == _TITLE and not section.claimed and section.start >= hidden:
            start = max(section.body, spans[-1][1] if spans else 0)
            spans += [(start, section.end)] if start < section.end else []
    return spans


def _bullets(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, list[str]]]:
    """Each bullet inside the spans with its line number; indented lines below it belong to it."""
    at, start, parts, fence, waiting = 0, 0, list[str](), "", list(reversed(spans))
    for number, line in enumerate(lines_of(text), start=1):
        while waiting and waiting[-1][1] <= at:
            waiting.pop()
        inside = bool(waiting) and waiting[-1][0] <= at
        at += len(line)
        before, fence = fence, fence_after(line, fence, nested=True) if inside else ""
        fenced = bool(before or fence)
        is_item = inside and not fenced and is_point(line)
        if parts and inside and not fenced and not is_item and line[:1].isspace() and line.strip():
            parts.append(line.strip())
            continue
        if parts:
            yield start, parts
        start, parts = number, [bullet_text(line)] if is_item else []
    if parts:
        yield start, parts


def _statement(text: str, *, path: str, line: int, day: date | None, last: int) -> Retained | None:
    head = _ITEM.match(text)
    if head is None or _PRIVATE.search(text):
        return None
    kind, words = RetainedKind(head[1]), text[head.end() :]
    sure = _confidence(head[2] or "") if kind is RetainedKind.OPINION else None
    return Retained(
        kind=kind, text=words, entities=entities_in(words), confidence=sure, path=path, line=line, day=day, last=last
    )


def _confidence(raw: str) -> float:
    return min(1.0, float(raw.strip().replace(",", "."))) if _SURE.match(raw.strip()) else UNSAID


# -- opinions ------------------------------------------------------------------------------------------------------------


def beliefs(opinions: Iterable[Retained]) -> tuple[Belief, ...]:
    """Opinions that say the same, or deny it, as one belief each, in the order in which they first came up."""
    topics: dict[tuple[str, ...], list[Retained]] = {}
    for one in sorted(opinions, key=_when):
        topics.setdefault(_topic(one.text)[0], []).append(one)
    return tuple(_belief(statements) for statements in topics.values())


def _topic(text: str) -> tuple[tuple[str, ...], bool]:
    """What an opinion is about, whichever way it is put, and whether it denies it."""
    words = [word.replace("’", "'") for word in _WORD.findall(plain(text))]
    split = [part for word in words for part in ((word[:-3], "not") if word.endswith("n't") else (word,))]
    denied = sum(word in _NEGATIONS for word in split) % 2 == 1
    return tuple(sorted({_bare(w) for w in split if w not in _NEGATIONS and w not in _FILLERS})), denied


def _bare(word: str) -> str:
    """Without the third person's s, so that "likes" and "does not like" meet."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _belief(statements: Sequence[Retained]) -> Belief:
    """Every later statement moves the confidence by a part of the way; the side that wins gives the words."""
    first = _topic(statements[0].text)[1]
    sure, pro, contra, days = 0.0, list[Retained](), list[Retained](), set[tuple[date | None, bool]]()
    for one in statements:
        agrees = _topic(one.text)[1] == first
        counts = (one.day, agrees) not in days  # said twice on one day is said once
        days.add((one.day, agrees))
        stated = one.confidence if one.confidence is not None else UNSAID
        if not pro and not contra:
            sure = stated
        elif counts:
            sure = _moved(sure, stated, agrees)
        (pro if agrees else contra).append(one)
    if contra and sure < 0.5:
        sure, pro, contra = 1 - sure, contra, pro
    return Belief(text=pro[-1].text, confidence=round(sure, 2), pro=tuple(pro), contra=tuple(contra))


def _moved(sure: float, stated: float, agrees: bool) -> float:
    """A third of the way to what is stated now; what is only repeated gains a little; a denial takes a third."""
    if not agrees:
        return sure - sure * stated / 3
    return sure + (stated - sure) / 3 + (0.05 * (1 - sure) if stated >= sure else 0.0)


# -- pages ---------------------------------------------------------------------------------------------------------------


def reflect(
    retained: Iterable[Retained], pages: Mapping[str, str], *, trusted: Callable[[Retained], bool]
) -> tuple[BankPage, ...]:
    """The bank pages that should stand otherwise than they do. `pages` are those there are now, by path.

    A page that nothing speaks for any more keeps its human text and an empty block; none is deleted.
    """
    kept = sorted((one for one in retained if trusted(one)), key=_when)
    blocks = {f"{FOLDER}/{name}.md": (title, body) for name, title, body in _main_pages(kept)}
    blocks |= _entity_pages(kept)
    keyed = {DocPath.parse(path).key: path for path in pages}
    wanted = {keyed.get(DocPath.parse(path).key, path): block for path, block in blocks.items()}
    wanted |= {path: ("", []) for path, text in pages.items() if path not in wanted and _is_ours(path, text)}
    found = []
    for path, (title, body) in sorted(wanted.items()):
        old = pages.get(path, "")
        new = _with_block(old, title=title, body=body) if body or _block(old) else old
        if new != old:
            found.append(BankPage(path=DocPath.parse(path), text=new))
    return tuple(found)


def _main_pages(kept: Sequence[Retained]) -> Iterator[tuple[str, str, list[str]]]:
    loose = [one for one in _of(kept, RetainedKind.OBSERVATION) if not one.entities]
    yield "world", "World", _joined([("", _facts(_of(kept, RetainedKind.WORLD))), ("## Observations", _facts(loose))])
    yield "experience", "Experience", _joined([("", _days(_of(kept, RetainedKind.EXPERIENCE)))])
    yield "opinions", "Opinions", _joined([("", [*_opinions(_of(kept, RetainedKind.OPINION), evidence=True)])])


def _entity_pages(kept: Sequence[Retained]) -> dict[str, tuple[str, list[str]]]:
    named: dict[str, list[Retained]] = {}
    spelled: dict[str, Counter[str]] = {}
    for one in kept:
        for name in one.entities:
            slug = slug_of(name)
            spelled.setdefault(slug, Counter())[name] += 1
            if not (group := named.setdefault(slug, [])) or group[-1] is not one:
                group.append(one)
    titles = {slug: names.most_common(1)[0][0] for slug, names in spelled.items()}
    return {f"{FOLDER}/entities/{slug}.md": (titles[slug], _entity(slug, ones, titles)) for slug, ones in named.items()}


def _entity(slug: str, ones: Sequence[Retained], titles: Mapping[str, str]) -> list[str]:
    company = Counter(other for one in ones for other in {slug_of(name) for name in one.entities} - {slug})
    named_with = [f"- [[{_safe(titles[other])}]] ({count})" for other, count in sorted(company.items(), key=_most)[:12]]
    days = sorted({one.day for one in ones if one.day})
    span = [f"*From {days[0]} to {days[-1]}, {_count(len(ones), 'statement')}.*"] if days else []
    parts = [
        ("", span),
        ("## Summary", _facts(_of(ones, RetainedKind.OBSERVATION))),
        ("## Facts", _facts(_of(ones, RetainedKind.WORLD))),
        ("## Experience", _days(_of(ones, RetainedKind.EXPERIENCE))),
        ("## Opinions", [*_opinions(_of(ones, RetainedKind.OPINION), evidence=False)]),
        ("## Named with", named_with),
    ]
    return _joined(parts)


def _of(ones: Sequence[Retained], kind: RetainedKind) -> list[Retained]:
    return [one for one in ones if one.kind is kind]


def _facts(ones: Sequence[Retained]) -> list[str]:
    """One bullet a statement, however often it was made, with the days it was made on."""
    same: dict[str, list[Retained]] = {}
    for one in ones:
        same.setdefault(" ".join(_WORD.findall(plain(one.text))) or one.text, []).append(one)
    return _newest([f"- {_safe(group[-1].text)} ({_evidence(group)})" for group in same.values()])


def _days(ones: Sequence[Retained]) -> list[str]:
    return _newest([f"- {f'{one.day}: ' if one.day else ''}{_safe(one.text)} ({one.citation})" for one in ones])


def _opinions(ones: Sequence[Retained], *, evidence: bool) -> Iterator[str]:
    for belief in beliefs(ones)[-MOST:]:
        sides = f"{len(belief.pro)} for" + (f", {len(belief.contra)} against" if belief.contra else "")
        yield f"- {_safe(belief.text)} (confidence {belief.confidence:.2f}; {sides})"
        if evidence:
            said = [(one, "for") for one in belief.pro] + [(one, "against") for one in belief.contra]
            for one, side in sorted(said, key=lambda pair: _when(pair[0]))[-12:]:
                yield f"  - {one.day or 'undated'} {side}, c={one.confidence:g}: {one.citation}"


def _evidence(group: Sequence[Retained]) -> str:
    days = sorted({one.day.isoformat() for one in group if one.day})
    told = ", ".join(days if len(days) < 4 else [days[0], f"{len(days) - 2} days between", days[-1]])
    return "; ".join(part for part in (told, group[-1].citation) if part)


def _newest(lines: list[str]) -> list[str]:
    if len(lines) <= MOST:
        return lines
    return [f"- … {len(lines) - MOST} older ones are in the daily logs", *lines[-MOST:]]


def _joined(parts: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    found: list[str] = []
    for heading, lines in parts:
        if lines:
            found += [*([""] if found else []), *([heading, ""] if heading else []), *lines]
    return found


def _is_ours(path: str, text: str) -> bool:
    return path.startswith(FOLDER + "/") and _block(text)


def _block(text: str) -> bool:
    return END in text and bool(blocks_in(lines_of(text)))


def _with_block(text: str, *, title: str, body: Sequence[str]) -> str:
    newline = newline_of(text)
    block = newline.join([BEGIN, *body, END])
    lines = lines_of(text)
    blocks = blocks_in(lines)
    if not blocks:
        head = text or f"# {_safe(title)}{newline}"
        return head + ("" if head.endswith("\n") else newline) + newline + block + newline
    for start, end in reversed(blocks[1:]):  # a copy of our block would keep what was forgotten
        del lines[start:end]
    start, end = blocks[0]
    tail = lines[end - 1][len(lines[end - 1].rstrip("\r\n")) :]
    return "".join([*lines[:start], block + tail, *lines[end:]])


def _safe(text: str) -> str:
    """Words that can neither begin nor end a comment, and so no block."""
    return text.replace("<!--", "‹!--").replace("-->", "--›")


def _when(one: Retained) -> tuple[date, str, int]:
    return one.day or date.min, one.path, one.line


def _most(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# -- of one home ---------------------------------------------------------------------------------------------------------


Statements = dict[Retained, tuple[str, ...]]  # with the lines of each


@dataclass(frozen=True, slots=True)
class _Retaining:
    """What one log retains, as it was last read. Statements with a finding are left out."""

    digest: str
    statements: Statements


class Reflection:
    """The bank of one home. Of the logs only those are cut and scanned again that changed since the last look."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._logs: dict[str, _Retaining] = {}

    def changes(self) -> list[Change]:
        """The changes that bring the bank pages in step with the logs, archived ones among them; none when they are."""
        documents, layout = self._site.store.documents, self._site.layout
        statements = self._statements()
        pages = {page.path.text: page.text for page in readable(self._site, FOLDER)}
        if not statements and not pages:
            return []
        wanted = reflect(statements, pages, trusted=lambda one: self._may_be_built_on(one.path, statements[one]))
        return [
            Change(
                path=page.path,
                kind=Kind.WRITE,
                text=page.text,
                actor=Actor.DREAMER,
                origin=Origin.DERIVED,
                base=digest_of(pages[page.path.text]) if page.path.text in pages else "",
                reason="reflection",
            )
            for page in wanted
            if (
                page.path.text in pages or documents.actual(page.path) is None
            )  # one that cannot be read stays as it is
            and layout.row_of(page.path).policy is Policy.MEMORY  # some dialects have no such pages
        ]

    def _statements(self) -> Statements:
        found: Statements = {}
        for log in readable(self._site, self._site.layout.daily):
            known = self._logs.get(log.path.text)
            if known is None or known.digest != log.digest:
                known = self._logs[log.path.text] = _Retaining(log.digest, dict(self._retained(log)))
            found |= known.statements
        return found

    def _retained(self, log: Document) -> Iterator[tuple[Retained, tuple[str, ...]]]:
        if "retain" not in log.text.casefold() or (day := self._site.layout.date_of(log.path)) is None:
            return
        lines = lines_of(log.text)
        for statement in retained(log.text, path=log.path.text, day=day):
            own = tuple(lines[statement.line - 1 : statement.last])
            if not any(f.severity >= Severity.DANGER or f.kind.startswith("secret") for f in scan_text("".join(own))):
                yield statement, own

    def _may_be_built_on(self, path: str, lines: tuple[str, ...]) -> bool:
        for line in lines:
            source = self._site.store.provenance.source(DocPath.parse(path), line)
            if not source.trusted or not (source.scope in (None, Scope.MAIN) or source.approver):
                return False
        return True


def readable(site: Site, folder: str) -> Iterator[Document]:
    """Every document beneath a folder that is text.

    A disk that fails for a moment raises Damaged: without this document a page would be another page.
    """
    documents = site.store.documents
    for entry in documents.list_all(folder) if documents.actual(DocPath.parse(folder)) else ():
        path = DocPath.parse(entry.path)
        if path.is_markdown:
            try:
                yield documents.read(path)
            except Damaged:
                raise
            except HomeError:
                continue  # doctor says more; one file that is no text keeps no other from being read
