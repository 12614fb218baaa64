"""The pages that nights write: MEMORY.md's dreamed sections, what is past, what was moved out, the diary, and the bank.

Promise: the same plan gives the same words. Of MEMORY.md only machine-written lines that are named go, and a dreamed
heading that stands over nothing; every other byte stays. The diary quotes only lines that are trusted and that the scan
sees nothing in. The bank is made anew from the `## Retain` sections of logs: of a page only the block between two
comment marks. Not here: which lines (plan), whether a statement may be built on (sweep), reading the bank (text.pages).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise

from anima.dream.material import Candidate, Doubt, Held, LogNote, Material, Promotion, SweepPlan, Theme, why_junk
from anima.ledger import Key
from anima.model import DocPath
from anima.text import bullet_text, markdown, read_table, stem, tags
from anima.text.markdown import bullet_of, ended, heading_of, lines_of, lines_with_place, newline_of, without_tail
from anima.text.notes import POSSIBLE
from anima.text.pages import BANK, BEGIN, END, blocks_in, day_in, entities_in, is_point, placed, plain, slug_of
from anima.text.reading import NEGATIONS, signs

_SAID = read_table("dream", "sentences")
OPENING, PAST, MOVED = (_SAID["opening"][name] for name in ("diary", "past", "moved"))
LONGEST = 160  # characters of a line that is quoted
Place = tuple[str, str]  # a path, and the digest of a line in it, or the line itself
_QUIET, _KEPT, _REFUSED = _SAID["quiet"], _SAID["kept"], _SAID["refused"]
LIGHT, REM = timedelta(days=2), timedelta(days=7)
MOST_THEMES, MOST_TRUTHS = 3, 3
FEWEST, STRENGTH = 3, 0.375  # what a theme needs: lines, and a share of the week's
HEADING = re.compile(r"## Dreamed (?:until )?(\d{4}-\d\d-\d\d)(?: \d\d:\d\d)? UTC\s*\Z")
_SINCE = re.compile(r"\s*\(since (\d{4}-\d\d-\d\d)\)\s*\Z")
_TIME = re.compile(r"\A(?:\[\d{1,2}:\d{2}(?::\d{2})?\]|\d{1,2}:\d{2}(?::\d{2})?\s+[-–—|])\s*")
UNSAID = 0.6  # how sure an opinion is that does not say so
MOST = 400  # lines of one section of a page; older ones are still in the logs
_ITEM = re.compile(r"([WBSO])(?:\((?:c ?= ?)?([^()\n]{0,20})\))?(?: ?: ?| )(?=\S)")
_SURE = re.compile(r"(?:0?[.,]\d{1,6}|[01](?:[.,]\d{1,6})?)\Z", re.ASCII)
_PRIVATE = re.compile(r"<!--[-\s]*private\b", re.IGNORECASE)
_FILLERS = frozenset("a an the el la los las un una der die das ein eine le les des does do did is are was be".split())
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One note of a log: its first line's number, its lines, and all its words on one line."""

    line: int
    raws: tuple[str, ...]
    text: str


def items(markdown: str) -> list[Item]:
    """The notes of a log, one for each bullet (with what hangs below it) or plain line; no headings, code or comments."""
    found: list[Item] = []
    for number, (line, place) in enumerate(lines_with_place(markdown), start=1):
        raw = line.rstrip("\r\n")
        bare = raw.strip()
        if not bare or place in ("code", "comment") or heading_of(raw) or bare.startswith("<!--"):
            continue
        if raw[:1].isspace() and not ((item := bullet_of(raw)) and item.text) and found and len(found[-1].raws) < 40:
            last = found[-1]
            found[-1] = Item(line=last.line, raws=(*last.raws, raw), text=f"{last.text} {bare}")
        else:
            found.append(Item(line=number, raws=(raw,), text=_TIME.sub("", bullet_text(raw))))
    return found


def fact_of(line: str) -> tuple[str, date | None]:
    """What a line of MEMORY.md says, without its evidence, and since when it is said to be so."""
    text = without_tail(bullet_text(line))
    found = _SINCE.search(text)
    if found and (since := day_in(found[1])):
        return text[: found.start()], since
    return text, None


def _nights(lines: Sequence[str]) -> list[tuple[int, int, date]]:
    """The dreamed sections of a page: where the heading stands, from 0, where the section ends, and the night's date."""
    heads = [n for n, line in enumerate(lines) if heading_of(line)]
    marks = [(n, end, HEADING.match(lines[n].rstrip())) for n, end in pairwise([*heads, len(lines)])]
    return [(n, end, night) for n, end, mark in marks if mark and (night := day_in(mark[1]))]


def dreamed_on(markdown: str) -> dict[int, date]:
    """For each line number under a dreamed heading, the night's date."""
    return {n + 1: night for start, end, night in _nights(lines_of(markdown)) for n in range(start + 1, end)}


def dreamed_page(
    material: Material,
    promotions: Sequence[Promotion],
    *,
    gone: Collection[int],
    instead: Mapping[int, str] | None = None,
    fold: bool,
) -> str:
    """MEMORY.md without some of its lines, with others in their place, and new ones where they belong; in the form of the
    seed, in a section at its end. A line that makes another untrue stands where that one stood."""
    lines, instead, new = lines_of(material.memory), dict(instead or {}), list[Promotion]()
    dreamed = dreamed_on(material.memory)
    for promotion in promotions:  # only in a section that people made does a line stand where another stood
        old = [held.number for held in promotion.candidate.replaces if held.number not in {*dreamed, *instead}]
        if old and not material.seed_form:
            instead[old[0]] = promotion.line
        else:
            new.append(promotion)
    for number, text in instead.items():
        stood = lines[number - 1]
        lines[number - 1] = text + stood[len(stood.rstrip("\r\n")) :]
    page = without("".join(lines), set(gone) - instead.keys())
    page = folded(page) if fold else page
    if material.seed_form:
        return with_section(page, f"## Dreamed {material.now:%Y-%m-%d %H:%M} UTC", [p.line for p in new])
    for promotion in new:
        page = placed(page, promotion.line).text
    return page


def without(markdown: str, numbers: Collection[int]) -> str:
    """The page without some of its lines, and without dreamed headings that stand over nothing then."""
    lines = [line for n, line in enumerate(lines_of(markdown), start=1) if n not in numbers]
    bare = ((n, end) for n, end, _ in _nights(lines) if not "".join(lines[n + 1 : end]).strip())
    for start, end in reversed([*bare]):
        del lines[start:end]
    return "".join(lines)


def with_section(markdown: str, title: str, bullets: Sequence[str]) -> str:
    """The page with one more section at its end."""
    if not bullets:
        return markdown
    newline = newline_of(markdown)
    page = ended(markdown) if markdown.strip() else f"# Memory{newline}"
    gap = "" if page.endswith(newline * 2) else newline
    return page + gap + newline.join([title, "", *bullets]) + newline


def folded(markdown: str) -> str:
    """The page with all dreamed sections but the newest in one: fewer headings, the same lines."""
    lines = lines_of(markdown)
    if len(nights := _nights(lines)) < 3:
        return markdown
    old, newline = nights[:-1], newline_of(markdown)
    until = max(night for *_, night in old)
    body = [ended(line) for start, end, _ in old for line in lines[start + 1 : end] if line.strip()]
    for start, end, _ in reversed(old):
        del lines[start:end]
    lines[old[0][0] : old[0][0]] = [f"## Dreamed until {until} UTC{newline}", newline, *body, newline]
    return "".join(lines)


# -- the diary --------------------------------------------------------------------------------------------------------


def subject(made: SweepPlan) -> str:
    """One line for history."""
    parts = ((len(made.promotions), "kept"), (len(made.retirements), "no longer so"), (len(made.moves), "moved"))
    told = ", ".join(f"{count} {what}" for count, what in parts if count)
    return f"dream of {made.now:%Y-%m-%d}: {told or 'nothing kept'}"


def with_diary(made: SweepPlan, *, doubt: Doubt, prose: str = "", remark: str = "") -> SweepPlan:
    """The plan with its diary entry. `prose` opens it, in a model's words; `remark` says what became of asking one."""
    week = [c for c in made.considered if made.today - c.evidence.last <= REM and why_junk(c.note.text) is None]
    # Tags that run through many of the week's lines.
    chosen = [tags(candidate.note.text) for candidate in week if candidate.lasting >= POSSIBLE]
    counts = Counter(tag for each in chosen for tag in each).most_common(8)
    found = (Theme(tag=tag, strength=round(min(1.0, 2 * n / len(chosen)), 2), lines=n) for tag, n in counts)
    themes = [theme for theme in found if theme.lines >= FEWEST and theme.strength >= STRENGTH][:MOST_THEMES]
    truths = tuple((note, sure) for note, sure in _truths_of(week) if doubt(note) is None)
    made = replace(made, themes=tuple(themes), truths=truths)
    if not made.recalls and made.memory is None:
        return made
    opening, ending = [prose, ""] if prose else [], [remark] if remark else []
    lines = [f"## {made.now:%Y-%m-%d %H:%M} UTC", "", *opening, *_entry(made), *ending, ""]
    return replace(made, diary="\n".join(lines) + "\n")


def _entry(made: SweepPlan) -> Iterator[str]:
    searches = _count(made.recalls, "search", "searches")
    lines = _count(sum(made.today - candidate.evidence.last <= LIGHT for candidate in made.considered), "line")
    yield f"Light sleep: {searches} since last night, {lines} came back to me."
    if made.themes:
        yield f"REM sleep: the week circled around {_listed([f'*{theme.tag}*' for theme in made.themes])}."
    for note, sure in made.truths:
        yield f"- It may be so: “{_short(note.fact)}” ({sure:.0%} sure; it needs to be asked for again)."
    if not (made.promotions or made.retirements or made.moves or made.wishes):
        yield f"Deep sleep: {_QUIET[made.now.toordinal() % len(_QUIET)]}"
    if made.promotions:
        yield f"Deep sleep. {_KEPT[made.now.toordinal() % len(_KEPT)]}"
    for promotion in made.promotions:
        candidate = promotion.candidate
        e, notes = candidate.evidence, (candidate.note, *(also.note for also in promotion.also))
        often = {1: "once", 2: "twice"}.get(e.recalls, f"{e.recalls} times")
        asked = f"asked for {often} on {_count(e.days, 'day')} (score {candidate.score.total:.2f})"
        why = asked if e.recalls else "it takes the place of what was so before"
        places = ", ".join(f"{note.path}:{note.line}" for note in notes)
        yield f"- “{_short(promotion.fact)}”: {why}, noted in {places}."
    for gone in made.retirements:
        yield f"- Let go: “{_short(gone.held.fact)}” was so until {gone.until}."
    for rewording in made.reworded:
        yield f"- Said anew: “{_short(rewording.fact)}”."
    for held in made.moves:
        yield f"- Put away, because memory was full and nobody asked for it: “{_short(held.fact)}”."
    for wish in made.wishes:
        yield f"- Your own line “{_short(wish.held.fact)}” may be outdated; I only ask, the change waits for you."
    refused = Counter(gate.name for candidate in made.considered if (gate := candidate.refusal))
    if refused:
        reasons = [f"{count} {_REFUSED.get(name, name)}" for name, count in refused.most_common(4)]
        yield f"Left where they are: {_listed(reasons)}."


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def traces(made: SweepPlan, *, key: Key, memory: str, prose: str = "") -> list[list[str]]:
    """The rows of a mark: path, digest of a line there, digest of a line this sweep writes. `memory` is MEMORY.md's path."""
    diary = [line for line in made.diary.split("\n") if line.strip()]
    spoken = [line for line in prose.split("\n") if line.strip()]
    rows: dict[tuple[str, str, str], None] = {}
    for sources, fact, new in _told(made, memory):
        quote = f"“{fact[: LONGEST - 1].rstrip()}"
        lines = [new, *(line for line in diary if quote in line), *spoken]
        for path, raw in sources:
            rows |= {(path, key.line(raw), key.line(line)): None for line in lines}
    return [[*row] for row in rows if row[1] and row[2]]


def _told(made: SweepPlan, memory: str) -> Iterator[tuple[list[Place], str, str]]:
    """The lines that something comes from, the fact it states, and its new line; "" where only the diary tells of it."""

    def places(held: Iterable[Held], *notes: LogNote) -> list[Place]:
        return [*((memory, one.raw) for one in held), *((note.path, raw) for note in notes for raw in note.raws)]

    for p in made.promotions:
        yield places(p.held, p.candidate.note, *(c.note for c in p.also)), p.fact, p.line
    for rewording in made.reworded:
        yield places(rewording.held), rewording.fact, rewording.line
    for gone in made.retirements:
        yield places([gone.held], gone.by), gone.held.fact, gone.line
    for held in made.moves:
        yield places([held]), held.fact, made.moved_line(held)
    for wish in made.wishes:
        yield places([wish.held]), wish.held.fact, ""
    for note, _ in made.truths:
        yield places([], note), note.fact, ""


def _truths_of(week: Sequence[Candidate]) -> list[tuple[LogNote, float]]:
    """What seems to be so and is not kept yet, because it was asked for too seldom; and how sure that is."""
    found = []
    for candidate in week:
        e, refusal = candidate.evidence, candidate.refusal
        waits = refusal is not None and refusal.name in ("recalls", "questions", "days", "score")
        often, spread = 0.25 * min(1, e.recalls / 3), 0.2 * min(1, e.days / 3)
        confidence = 0.45 * e.relevance + often + spread + 0.1 * min(1, e.tags / 6)
        if waits and e.recalls and candidate.lasting >= POSSIBLE and confidence >= 0.45:
            found.append((candidate.note, round(confidence, 2)))
    return sorted(found, key=lambda each: -each[1])[:MOST_TRUTHS]


# -- the bank: what is retained ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Retained:
    """One statement of a daily log. `text` is in its own words; `confidence` is given for opinions alone."""

    kind: str  # W, B, O or S
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


def retained(text: str, *, path: str, day: date | None) -> tuple[Retained, ...]:
    """The statements of a log's `## Retain` sections, in order. Bullets without a kind are left alone."""
    found, lines = [], lines_of(text)
    for line, parts in _bullets(text):
        whole = " ".join(" ".join(parts).split())
        head = _ITEM.match(whole)
        if head is None or _PRIVATE.search(whole):
            continue
        kind, words, raw = head[1], whole[head.end() :], (head[2] or "").strip()
        sure = min(1.0, float(raw.replace(",", "."))) if _SURE.match(raw) else UNSAID
        confidence = sure if kind == "O" else None
        entities, raws = entities_in(words), tuple(lines[line - 1 : line - 1 + len(parts)])
        found.append(Retained(kind, words, entities, confidence, path=path, line=line, day=day, raws=raws))
    return tuple(found)


def _bullets(text: str) -> Iterator[tuple[int, list[str]]]:
    """Each bullet where retained statements stand, with its line number; indented lines below it belong to it. What is
    private stays where it is."""
    spans: list[tuple[int, int]] = []
    hidden = 0
    for section in markdown.sections(text):
        hidden = max(hidden, section.private_end if section.private else 0)
        if section.title.casefold() == "retain" and not section.claimed and section.start >= hidden:
            spans.append((section.body, section.end))
    at, start, parts = 0, 0, list[str]()
    for number, (line, place) in enumerate(lines_with_place(text, nested=True), start=1):
        while spans and spans[0][1] <= at:
            spans.pop(0)
        is_text = bool(spans) and spans[0][0] <= at and not place
        at += len(line)
        is_item = is_text and is_point(line)
        if parts and is_text and not is_item and line[:1].isspace() and line.strip():
            parts.append(line.strip())
            continue
        if parts:
            yield start, parts
        start, parts = number, [bullet_text(line)] if is_item else []
    if parts:
        yield start, parts


def beliefs(opinions: Iterable[Retained]) -> tuple[Belief, ...]:
    """Opinions that say the same, or deny it, as one belief each, in the order in which they first came up."""
    topics: dict[tuple[str, ...], list[tuple[Retained, bool]]] = {}
    for one in sorted(opinions, key=_when):
        words = [word.replace("’", "'") for word in _WORD.findall(plain(one.text))]
        split = [part for word in words for part in ((word[:-3], "not") if word.endswith("n't") else (word,))]
        denied = sum(word in NEGATIONS for word in split) % 2 == 1
        # Without the third person's s, so that "likes" and "does not like" meet.
        topic = {stem(word) for word in split if word not in NEGATIONS and word not in _FILLERS}
        topics.setdefault((*sorted(topic), *signs(one.text)), []).append((one, denied))
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


# -- pages of the bank ---------------------------------------------------------------------------------------------------------------


def reflect(ones: Iterable[Retained], now: Mapping[str, str], *, trusted: Callable[[Retained], bool]) -> dict[str, str]:
    """The bank pages that should stand otherwise than they do, by path. `now` are those there are. A page that
    nothing speaks for any more keeps its human text and an empty block; none is deleted."""
    blocks = _blocks(sorted((one for one in ones if trusted(one)), key=_when))
    keyed = {DocPath.parse(path).key: path for path in now}
    wanted = {keyed.get(DocPath.parse(path).key, path): block for path, block in blocks.items()}
    wanted |= {path: ("", []) for path in now if path not in wanted and path.startswith(BANK + "/")}
    found: dict[str, str] = {}
    for path, (title, body) in sorted(wanted.items()):
        old = now.get(path, "")
        new = _with_block(old, title=title, body=body) if body or (END in old and blocks_in(lines_of(old))) else old
        if new != old:
            found[path] = new
    return found


def _blocks(kept: Sequence[Retained]) -> dict[str, tuple[str, list[str]]]:
    """The title and the block of every page, by path."""
    loose = [one for one in _of(kept, "S") if not one.entities]
    world = {"": _facts(_of(kept, "W")), "## Observations": _facts(loose)}
    found = {
        f"{BANK}/world.md": ("World", _joined(world)),
        f"{BANK}/experience.md": ("Experience", _days(_of(kept, "B"))),
        f"{BANK}/opinions.md": ("Opinions", [*_opinions(_of(kept, "O"), evidence=True)]),
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
        "## Summary": _facts(_of(ones, "S")),
        "## Facts": _facts(_of(ones, "W")),
        "## Experience": _days(_of(ones, "B")),
        "## Opinions": [*_opinions(_of(ones, "O"), evidence=False)],
        "## Named with": [f"- [[{_safe(titles[other])}]] ({times})" for other, times in most],
    }
    return _joined(parts)


def _of(ones: Sequence[Retained], kind: str) -> list[Retained]:
    return [one for one in ones if one.kind == kind]


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
