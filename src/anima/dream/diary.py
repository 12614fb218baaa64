"""The diary: a night told in a few sentences that a person likes to read. Templates; a model's words may open it.

Promise: says what was considered, kept, let go and refused, and why; quotes only lines that are trusted and that the scan
sees nothing in, and counts the others; the same night gives the same words. A night in which nothing was asked for and
nothing changed has no entry. Not here: the plan itself (planning).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date

from anima.dream.material import Note, Plan, Promotion
from anima.dream.phases import light, with_phases

OPENING = "# Dreams\n\nWhat this home dreamed of, night by night. Nothing here is read into a prompt.\n\n"
LONGEST = 160  # characters of a line that is quoted
_QUIET = (
    "A quiet night. Nothing pressed to be kept.",
    "I turned the day over once or twice and left memory as it was.",
    "Little stayed. Some nights are for forgetting.",
    "I slept well, and memory needed nothing from me.",
)
_KEPT = ("Kept for good:", "What I want to know tomorrow, too:", "These stay with me:", "Now in memory:")
_REFUSED = {
    "lasting": "were about a moment, not about what stays",
    "recalls": "were asked for too seldom",
    "questions": "answered one question only",
    "days": "were asked for on one day only",
    "score": "did not weigh enough yet",
    "age": "were asked for too long ago",
    "new": "were known already",
    "not taken out": "had been taken out of memory before",
    "still so": "are no longer so",
    "trusted": "did not come from words I may trust",
    "room": "found no room in memory",
}


def subject(made: Plan) -> str:
    """One line for history."""
    parts = ((len(made.promotions), "kept"), (len(made.retirements), "no longer so"), (len(made.moves), "moved"))
    told = ", ".join(f"{count} {what}" for count, what in parts if count)
    return f"dream of {made.now:%Y-%m-%d}: {told or 'nothing kept'}"


def told(made: Plan, *, today: date, doubt: Callable[[Note], str | None], prose: str = "", remark: str = "") -> Plan:
    """The plan with its diary entry. `prose` opens it, in a model's words; `remark` says what became of asking one."""
    made = with_phases(made, today=today)
    made = replace(made, truths=tuple(truth for truth in made.truths if doubt(truth.note) is None))
    if not made.recalls and not made.changes_memory:
        return made
    opening, ending = [prose, ""] if prose else [], [remark] if remark else []
    lines = [f"## {made.now:%Y-%m-%d %H:%M} UTC", "", *opening, *_entry(made, today), *ending, ""]
    return replace(made, diary="\n".join(lines) + "\n")


def _entry(made: Plan, today: date) -> Iterator[str]:
    gathered = light(made, today=today)
    yield f"Light sleep: {_count(made.recalls, 'search', 'searches')} since last night, {_count(gathered, 'line')} came back to me."
    yield from _themes(made)
    if not (made.promotions or made.retirements or made.moves or made.wishes):
        yield f"Deep sleep: {_QUIET[made.now.toordinal() % len(_QUIET)]}"
    if made.promotions:
        yield f"Deep sleep. {_KEPT[made.now.toordinal() % len(_KEPT)]}"
        yield from (_kept(promotion) for promotion in made.promotions)
    for found in made.retirements:
        yield f"- Let go: “{_short(found.held.fact)}” was so until {found.until}."
    for one in made.reworded:
        yield f"- Said anew: “{_short(one.fact)}”."
    for held in made.moves:
        yield f"- Put away, because memory was full and nobody asked for it: “{_short(held.fact)}”."
    for wish in made.wishes:
        yield f"- Your own line “{_short(wish.held.fact)}” may be outdated; I only ask, the change waits for you."
    yield from _left(made)


def _themes(made: Plan) -> Iterator[str]:
    if made.themes:
        yield f"REM sleep: the week circled around {_listed([f'*{theme.tag}*' for theme in made.themes])}."
    for truth in made.truths:
        yield f"- It may be so: “{_short(truth.fact)}” ({truth.confidence:.0%} sure; it needs to be asked for again)."


def _kept(promotion: Promotion) -> str:
    candidate = promotion.candidate
    e, note = candidate.evidence, candidate.note
    times = (
        f"asked for {_times(e.recalls)} on {_count(e.days, 'day')}"
        if e.recalls
        else "it takes the place of what was so before"
    )
    places = ", ".join(f"{found.path}:{found.line}" for found in (note, *(c.note for c in promotion.also)))
    return f"- “{_short(promotion.fact)}”: {times}, noted in {places}."


def _left(made: Plan) -> Iterator[str]:
    refused = Counter(gate.name for candidate in made.considered if (gate := candidate.refusal))
    said = [f"{count} {_REFUSED.get(name, name)}" for name, count in refused.most_common(4)]
    if said:
        yield f"Left where they are: {_listed(said)}."


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
