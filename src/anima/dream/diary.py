"""The pages a sweep writes, as text: MEMORY.md's dreamed sections, what is past, what was moved out, and the diary.

Promise: pure; the same plan gives the same words. Of MEMORY.md only machine-written lines that are named go, each exact
to the byte, and a dreamed heading that stands over nothing; every other byte stays. The diary says what was considered,
kept, let go and refused, and why; it quotes only lines that are trusted and that the scan sees nothing in. A sweep in
which nothing was asked for and nothing changed has no entry. Every line that a sweep writes is named with every line it
was made of, by digest alone. Not here: which lines (plan), writing (sweep).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from anima.dream.material import Candidate, Held, LogNote, Material, Promotion, SweepPlan, Theme, Truth, why_junk
from anima.ledger import Key
from anima.text import read_table, tags
from anima.text.markdown import (
    bullet_of,
    bullet_text,
    ended,
    heading_of,
    lines_of,
    newline_of,
    without_code,
    without_tail,
)
from anima.text.notes import POSSIBLE
from anima.text.pages import placed

_SAID = read_table("dream", "sentences")
OPENING, PAST, MOVED = (_SAID["opening"][name] for name in ("diary", "past", "moved"))
LONGEST = 160  # characters of a line that is quoted
_QUIET, _KEPT, _REFUSED = _SAID["quiet"], _SAID["kept"], _SAID["refused"]
LIGHT, REM = timedelta(days=2), timedelta(days=7)
STRENGTH, CONFIDENCE = 0.75, 0.45
MOST_THEMES, MOST_TRUTHS = 3, 3
FEWEST = 3  # lines a theme needs
HEADING = re.compile(r"## Dreamed (?:until )?(\d{4}-\d\d-\d\d)(?: \d\d:\d\d)? UTC\s*\Z")
_SINCE = re.compile(r"\s*\(since (\d{4}-\d\d-\d\d)\)\s*\Z")
_TIME = re.compile(r"\A(?:\[\d{1,2}:\d{2}(?::\d{2})?\]|\d{1,2}:\d{2}(?::\d{2})?\s+[-–—|])\s*")


# -- notes and pages --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One note of a log: its first line's number, its lines, and all its words on one line."""

    line: int
    raws: tuple[str, ...]
    text: str


def items(markdown: str) -> list[Item]:
    """The notes of a log, one for each bullet (with what hangs below it) or plain line; no headings, code or comments."""
    found: list[Item] = []
    for number, line in without_code(markdown):
        raw = line.rstrip("\r\n")
        bare = raw.strip()
        if not bare or heading_of(raw) or bare.startswith("<!--"):
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
    if found := _SINCE.search(text):
        return text[: found.start()], date.fromisoformat(found[1])
    return text, None


def dreamed_on(markdown: str) -> dict[int, date]:
    """For each line number under a dreamed heading, the night's date."""
    found: dict[int, date] = {}
    night: date | None = None
    for number, line in enumerate(lines_of(markdown), start=1):
        if heading_of(line):
            mark = HEADING.match(line.rstrip())
            night = date.fromisoformat(mark[1]) if mark else None
        elif night is not None:
            found[number] = night
    return found


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
    kept: list[str] = []
    waiting: list[str] = []  # a dreamed heading and the blank lines below it
    for line in (line for n, line in enumerate(lines_of(markdown), start=1) if n not in numbers):
        if waiting and line.strip():
            if not heading_of(line):
                kept += waiting
            waiting = []
        if HEADING.match(line.rstrip()):
            waiting = [line]
        else:
            (waiting if waiting else kept).append(line)
    return "".join(kept)


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
    places = [n for n, line in enumerate(lines) if HEADING.match(line.rstrip())]
    if len(places) < 3:
        return markdown
    ends = [next((m for m in range(n + 1, len(lines)) if heading_of(lines[m])), len(lines)) for n in places]
    newline, old = newline_of(markdown), list(zip(places, ends, strict=True))[:-1]
    until = max(m[1] for n, _ in old if (m := HEADING.match(lines[n].rstrip())))
    body = [line for start, end in old for line in lines[start + 1 : end] if line.strip()]
    inside = {n for start, end in old for n in range(start, end)}
    merged = [f"## Dreamed until {until} UTC{newline}", newline, *(ended(line) for line in body), newline]
    first = old[0][0]
    out: list[str] = []
    for n, line in enumerate(lines):
        out += merged if n == first else [] if n in inside else [line]
    return "".join(out)


# -- the diary --------------------------------------------------------------------------------------------------------


def subject(made: SweepPlan) -> str:
    """One line for history."""
    parts = ((len(made.promotions), "kept"), (len(made.retirements), "no longer so"), (len(made.moves), "moved"))
    told = ", ".join(f"{count} {what}" for count, what in parts if count)
    return f"dream of {made.now:%Y-%m-%d}: {told or 'nothing kept'}"


def with_diary(
    made: SweepPlan, *, doubt: Callable[[LogNote], str | None], prose: str = "", remark: str = ""
) -> SweepPlan:
    """The plan with its themes, its truths and its diary entry.

    `prose` opens the entry, in a model's words; `remark` says what became of asking one.
    """
    week = [c for c in made.considered if made.today - c.evidence.last <= REM and why_junk(c.note.text) is None]
    truths = tuple(truth for truth in _truths_of(week) if doubt(truth.note) is None)
    made = replace(made, themes=_themes_of(week), truths=truths)
    if not made.recalls and not made.changes_memory:
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
    for truth in made.truths:
        yield f"- It may be so: “{_short(truth.fact)}” ({truth.confidence:.0%} sure; it needs to be asked for again)."
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


# -- what the week was about ------------------------------------------------------------------------------------------


def _themes_of(week: Sequence[Candidate]) -> tuple[Theme, ...]:
    """Tags that run through many of the week's lines."""
    chosen = [candidate for candidate in week if candidate.lasting >= POSSIBLE]
    counts = Counter(tag for candidate in chosen for tag in tags(candidate.note.text)).most_common(8)
    found = (Theme(tag=tag, strength=round(min(1.0, 2 * n / len(chosen)), 2), lines=n) for tag, n in counts)
    strong = [theme for theme in found if theme.lines >= FEWEST and theme.strength >= STRENGTH / 2]
    return tuple(strong[:MOST_THEMES])


def _truths_of(week: Sequence[Candidate]) -> list[Truth]:
    """What seems to be so and is not kept yet, because it was asked for too seldom."""
    found = []
    for candidate in week:
        e, refusal = candidate.evidence, candidate.refusal
        waits = refusal is not None and refusal.name in ("recalls", "questions", "days", "score")
        often, spread = 0.25 * min(1, e.recalls / 3), 0.2 * min(1, e.days / 3)
        confidence = 0.45 * e.relevance + often + spread + 0.1 * min(1, e.tags / 6)
        if waits and e.recalls and candidate.lasting >= POSSIBLE and confidence >= CONFIDENCE:
            note = candidate.note
            found.append(Truth(fact=note.fact, confidence=round(confidence, 2), note=note))
    return sorted(found, key=lambda truth: -truth.confidence)[:MOST_TRUTHS]


# -- what came of which line ------------------------------------------------------------------------------------------

Place = tuple[str, str]  # a path, and the digest of a line in it, or the line itself


def traces(made: SweepPlan, *, key: Key, memory: str, prose: str = "") -> list[list[str]]:
    """The rows of a mark: path, digest of a line there, digest of a line this sweep writes. `memory` is MEMORY.md's path."""
    diary = [line for line in made.diary.split("\n") if line.strip()]
    spoken = [line for line in prose.split("\n") if line.strip()]
    rows: dict[tuple[str, str, str], None] = {}
    for sources, fact, new in _written(made, memory):
        quote = f"“{fact[: LONGEST - 1].rstrip()}"
        lines = [new, *(line for line in diary if quote in line), *spoken]
        for path, raw in sources:
            rows |= {(path, key.line(raw), key.line(line)): None for line in lines}
    return [[*row] for row in rows if row[1] and row[2]]


def _written(made: SweepPlan, memory: str) -> Iterator[tuple[list[Place], str, str]]:
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
    for truth in made.truths:
        yield places([], truth.note), truth.fact, ""
