"""The bank: typed memory pages kept from the `## Retain` sections of daily logs, and the changes that bring them in step.

A bullet there is `W` (the world), `B` (an experience), `O(c=0.8)` (an opinion and how sure) or `S` (an observation),
then the statement; `@Ana` and `[[Casa Azul]]` in it name entities.

Promise: a page's managed block, between two comment marks, is made anew from what is retained today; every byte outside
it stays, and pages that are right already are left alone. A statement is used only when every line of it may be built
on: written by the owner or from a clean session of the owner's, reviewed when it came from outside, and without a secret
or a danger in it. Decides, and writes nothing: a sweep submits the changes. Not here: reading pages (text.pages).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum

from anima.errors import Damaged, HomeError
from anima.gate.scan import scan_text
from anima.layout import Policy
from anima.model import Actor, Change, DocPath, Document, Kind, Origin, Scope, Severity, digest_of
from anima.site import Site
from anima.text.changes import stem
from anima.text.markdown import bullet_text, fence_after, lines_of, newline_of, sections
from anima.text.pages import BANK, BEGIN, END, blocks_in, entities_in, is_point, plain, slug_of
from anima.text.reading import NEGATIONS

UNSAID = 0.6  # how sure an opinion is that does not say so
MOST = 400  # lines of one section of a page; older ones are still in the logs
_ITEM = re.compile(r"([WBSO])(?:\((?:c ?= ?)?([^()\n]{0,20})\))?(?: ?: ?| )(?=\S)")
_SURE = re.compile(r"(?:0?[.,]\d{1,6}|[01](?:[.,]\d{1,6})?)\Z", re.ASCII)
_PRIVATE = re.compile(r"<!--[-\s]*private\b", re.IGNORECASE)
_FILLERS = frozenset("a an the el la los las un una der die das ein eine le les des does do did is are was be".split())
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


class RetainedKind(StrEnum):
    WORLD = "W"
    EXPERIENCE = "B"
    OPINION = "O"
    OBSERVATION = "S"


@dataclass(frozen=True, slots=True)
class Retained:
    """One statement of a daily log. `text` is in its own words; `confidence` is given for opinions alone."""

    kind: RetainedKind
    text: str
    entities: tuple[str, ...]
    confidence: float | None
    path: str
    line: int
    day: date | None
    raws: tuple[str, ...]  # its lines

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


# -- reading what is retained --------------------------------------------------------------------------------------------


def retained(text: str, *, path: str, day: date | None) -> tuple[Retained, ...]:
    """The statements of a log's `## Retain` sections, in order. Bullets without a kind are left alone."""
    found, lines = [], lines_of(text)
    for line, parts in _bullets(text):
        whole = " ".join(" ".join(parts).split())
        head = _ITEM.match(whole)
        if head is None or _PRIVATE.search(whole):
            continue
        kind, words, raw = RetainedKind(head[1]), whole[head.end() :], (head[2] or "").strip()
        sure = min(1.0, float(raw.replace(",", "."))) if _SURE.match(raw) else UNSAID
        confidence = sure if kind is RetainedKind.OPINION else None
        entities, raws = entities_in(words), tuple(lines[line - 1 : line - 1 + len(parts)])
        found.append(Retained(kind, words, entities, confidence, path=path, line=line, day=day, raws=raws))
    return tuple(found)


def _bullets(text: str) -> Iterator[tuple[int, list[str]]]:
    """Each bullet where retained statements stand, with its line number; indented lines below it belong to it. What is
    private stays where it is."""
    spans: list[tuple[int, int]] = []
    hidden = 0
    for section in sections(text):
        hidden = max(hidden, section.private_end if section.private else 0)
        if section.title.casefold() == "retain" and not section.claimed and section.start >= hidden:
            spans.append((section.body, section.end))
    at, start, parts, fence = 0, 0, list[str](), ""
    for number, line in enumerate(lines_of(text), start=1):
        while spans and spans[0][1] <= at:
            spans.pop(0)
        inside = bool(spans) and spans[0][0] <= at
        at += len(line)
        before, fence = fence, fence_after(line, fence, nested=True) if inside else ""
        is_text = inside and not (before or fence)
        is_item = is_text and is_point(line)
        if parts and is_text and not is_item and line[:1].isspace() and line.strip():
            parts.append(line.strip())
            continue
        if parts:
            yield start, parts
        start, parts = number, [bullet_text(line)] if is_item else []
    if parts:
        yield start, parts


# -- opinions ------------------------------------------------------------------------------------------------------------


def beliefs(opinions: Iterable[Retained]) -> tuple[Belief, ...]:
    """Opinions that say the same, or deny it, as one belief each, in the order in which they first came up."""
    topics: dict[tuple[str, ...], list[tuple[Retained, bool]]] = {}
    for one in sorted(opinions, key=_when):
        words = [word.replace("’", "'") for word in _WORD.findall(plain(one.text))]
        split = [part for word in words for part in ((word[:-3], "not") if word.endswith("n't") else (word,))]
        denied = sum(word in NEGATIONS for word in split) % 2 == 1
        # Without the third person's s, so that "likes" and "does not like" meet.
        topic = {stem(word) for word in split if word not in NEGATIONS and word not in _FILLERS}
        topics.setdefault(tuple(sorted(topic)), []).append((one, denied))
    return tuple(map(_belief, topics.values()))


def _belief(statements: Sequence[tuple[Retained, bool]]) -> Belief:
    """Every later statement moves the confidence by a part of the way; the side that wins gives the words."""
    sure, pro, contra, days = 0.0, list[Retained](), list[Retained](), set[tuple[date | None, bool]]()
    for one, denied in statements:
        agrees = denied == statements[0][1]
        stated = one.confidence if one.confidence is not None else UNSAID
        if not days:
            sure = stated
        elif (one.day, agrees) in days:
            pass  # said twice on one day is said once
        elif agrees:  # a third of the way to what is stated now; what is only repeated gains a little
            sure += (stated - sure) / 3 + (0.05 * (1 - sure) if stated >= sure else 0.0)
        else:
            sure -= sure * stated / 3
        days.add((one.day, agrees))
        (pro if agrees else contra).append(one)
    if contra and sure < 0.5:
        sure, pro, contra = 1 - sure, contra, pro
    return Belief(text=pro[-1].text, confidence=round(sure, 2), pro=tuple(pro), contra=tuple(contra))


# -- pages ---------------------------------------------------------------------------------------------------------------


def reflect(
    retained: Iterable[Retained], pages: Mapping[str, str], *, trusted: Callable[[Retained], bool]
) -> dict[str, str]:
    """The bank pages that should stand otherwise than they do, by path. `pages` are those there are now.

    A page that nothing speaks for any more keeps its human text and an empty block; none is deleted.
    """
    blocks = _blocks(sorted((one for one in retained if trusted(one)), key=_when))
    keyed = {DocPath.parse(path).key: path for path in pages}
    wanted = {keyed.get(DocPath.parse(path).key, path): block for path, block in blocks.items()}
    wanted |= {path: ("", []) for path in pages if path not in wanted and path.startswith(BANK + "/")}
    found: dict[str, str] = {}
    for path, (title, body) in sorted(wanted.items()):
        old = pages.get(path, "")
        new = _with_block(old, title=title, body=body) if body or (END in old and blocks_in(lines_of(old))) else old
        if new != old:
            found[path] = new
    return found


def _blocks(kept: Sequence[Retained]) -> dict[str, tuple[str, list[str]]]:
    """The title and the block of every page, by path."""
    loose = [one for one in _of(kept, RetainedKind.OBSERVATION) if not one.entities]
    world = {"": _facts(_of(kept, RetainedKind.WORLD)), "## Observations": _facts(loose)}
    found = {
        f"{BANK}/world.md": ("World", _joined(world)),
        f"{BANK}/experience.md": ("Experience", _days(_of(kept, RetainedKind.EXPERIENCE))),
        f"{BANK}/opinions.md": ("Opinions", [*_opinions(_of(kept, RetainedKind.OPINION), evidence=True)]),
    }
    named: dict[str, dict[int, Retained]] = {}
    spelled: dict[str, Counter[str]] = {}
    for number, one in enumerate(kept):
        for name in one.entities:
            named.setdefault(slug_of(name), {})[number] = one
            spelled.setdefault(slug_of(name), Counter())[name] += 1
    titles = {slug: names.most_common(1)[0][0] for slug, names in spelled.items()}
    for slug, ones in named.items():
        found[f"{BANK}/entities/{slug}.md"] = titles[slug], _entity(slug, [*ones.values()], titles)
    return found


def _entity(slug: str, ones: Sequence[Retained], titles: Mapping[str, str]) -> list[str]:
    company = Counter(other for one in ones for other in {slug_of(name) for name in one.entities} - {slug})
    most = sorted(company.items(), key=lambda pair: (-pair[1], pair[0]))[:12]
    days = sorted({one.day for one in ones if one.day})
    count = f"{len(ones)} statement{'' if len(ones) == 1 else 's'}"
    parts = {
        "": [f"*From {days[0]} to {days[-1]}, {count}.*"] if days else [],
        "## Summary": _facts(_of(ones, RetainedKind.OBSERVATION)),
        "## Facts": _facts(_of(ones, RetainedKind.WORLD)),
        "## Experience": _days(_of(ones, RetainedKind.EXPERIENCE)),
        "## Opinions": [*_opinions(_of(ones, RetainedKind.OPINION), evidence=False)],
        "## Named with": [f"- [[{_safe(titles[other])}]] ({times})" for other, times in most],
    }
    return _joined(parts)


def _of(ones: Sequence[Retained], kind: RetainedKind) -> list[Retained]:
    return [one for one in ones if one.kind is kind]


def _facts(ones: Sequence[Retained]) -> list[str]:
    """One bullet a statement, however often it was made, with the days it was made on."""
    same: dict[str, list[Retained]] = {}
    for one in ones:
        same.setdefault(" ".join(_WORD.findall(plain(one.text))) or one.text, []).append(one)
    lines = []
    for group in same.values():
        days = sorted({one.day.isoformat() for one in group if one.day})
        told = ", ".join(days if len(days) < 4 else [days[0], f"{len(days) - 2} days between", days[-1]])
        evidence = "; ".join(filter(None, (told, group[-1].citation)))
        lines.append(f"- {_safe(group[-1].text)} ({evidence})")
    return _newest(lines)


def _days(ones: Sequence[Retained]) -> list[str]:
    return _newest([f"- {f'{one.day}: ' if one.day else ''}{_safe(one.text)} ({one.citation})" for one in ones])


def _opinions(ones: Sequence[Retained], *, evidence: bool) -> Iterator[str]:
    for belief in beliefs(ones)[-MOST:]:
        sides = f"{len(belief.pro)} for" + (f", {len(belief.contra)} against" if belief.contra else "")
        yield f"- {_safe(belief.text)} (confidence {belief.confidence:.2f}; {sides})"
        for one in sorted((*belief.pro, *belief.contra), key=_when)[-12:] if evidence else ():
            side = "for" if one in belief.pro else "against"
            yield f"  - {one.day or 'undated'} {side}, c={one.confidence:g}: {one.citation}"


def _newest(lines: list[str]) -> list[str]:
    if len(lines) <= MOST:
        return lines
    return [f"- … {len(lines) - MOST} older ones are in the daily logs", *lines[-MOST:]]


def _joined(parts: Mapping[str, Sequence[str]]) -> list[str]:
    found: list[str] = []
    for heading, lines in parts.items():
        if lines:
            found += [*([""] if found else []), *([heading, ""] if heading else []), *lines]
    return found


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


# -- of one home ---------------------------------------------------------------------------------------------------------


class Reflection:
    """The bank of one home. Of the logs only those are cut and scanned again that changed since the last look."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._logs: dict[str, tuple[str, list[Retained]]] = {}  # by path: a log's digest, and what it retains

    def changes(self) -> list[Change]:
        """The changes that bring the bank pages in step with the logs, archived ones among them; none when they are."""
        documents, layout = self._site.store.documents, self._site.layout
        statements: list[Retained] = []
        for log in readable(self._site, layout.daily):
            known = self._logs.get(log.path.text)
            if known is None or known[0] != log.digest:
                known = self._logs[log.path.text] = log.digest, self._retained(log)
            statements += known[1]
        pages = {page.path.text: page.text for page in readable(self._site, BANK)}
        if not statements and not pages:
            return []
        own = Change(
            path=DocPath.parse(layout.curated),
            kind=Kind.WRITE,
            text="",
            actor=Actor.DREAMER,
            origin=Origin.DERIVED,
            reason="reflection",
        )
        return [
            replace(own, path=path, text=text, base=digest_of(pages[name]) if name in pages else "")
            for name, text in reflect(statements, pages, trusted=self._may_be_built_on).items()
            # One that cannot be read stays as it is, and some dialects have no such pages.
            if layout.row_of(path := DocPath.parse(name)).policy is Policy.MEMORY
            and (name in pages or documents.actual(path) is None)
        ]

    def _retained(self, log: Document) -> list[Retained]:
        """What one log retains. Statements with a finding are left out."""
        if "retain" not in log.text.casefold() or (day := self._site.layout.date_of(log.path)) is None:
            return []
        return [
            one
            for one in retained(log.text, path=log.path.text, day=day)
            if not any(
                f.severity >= Severity.DANGER or f.kind.startswith("secret") for f in scan_text("".join(one.raws))
            )
        ]

    def _may_be_built_on(self, one: Retained) -> bool:
        sources = (self._site.store.provenance.source(DocPath.parse(one.path), line) for line in one.raws)
        return all(one.trusted and (one.scope in (None, Scope.MAIN) or one.approver) for one in sources)


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
