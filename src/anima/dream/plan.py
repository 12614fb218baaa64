"""Planning: from recalls and notes to what a night changes. Decides; writes nothing.

Promise: the same material gives the same plan; a line is promoted only when every gate lets it pass, and each gate says
why; a line that a newer note made untrue leaves memory whether or not the newer one is asked for yet, and the newer one
takes its place with the recalls of both; the owner's own lines are never taken out. Linear in notes and lines: a line is
compared with at most 200 others about the same subject. Not here: gathering and writing (sweep), the diary (pages).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache, lru_cache, partial

from anima.dream import material as values
from anima.dream.material import Candidate, Gate, Held, LogNote, Material, Promotion, Retirement, SweepPlan, Tally
from anima.dream.pages import dreamed_page
from anima.text import notes, tags
from anima.text.notes import Relation, Sentence, lasting, relation, same_words, says_too, sentence, value_of

ROOM = 200  # characters of the budget that stay free, for the owner's next line
HEADING = 40  # characters of a heading that new lines may need, with its blank lines
MOST_COMPARED = 200  # notes about one subject that a line is compared with, so that no home makes a night long
MOST_ANSWERS = 3  # a question that more notes than this answer is about no one attribute
CROWD = 4  # so many notes about one thing, and it is one of which there is much to say
RARE = 3  # notes that have a word which points to one fact
MOST_SHARING = 12  # notes that have a word by which others are looked up
DOUBTFUL_RECALLS, DOUBTFUL_DAYS, DOUBTFUL_QUESTIONS = 4, 3, 2  # what a line needs that is only perhaps lasting
KINDS = {"attribute": "lasting attribute", "rule": "every time", "decision": "a decision"}  # by what reasons say


@dataclass(slots=True, eq=False)
class _Group:
    """Notes that say the same, with the recalls of all of them."""

    notes: list[LogNote] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)

    @property
    def first(self) -> LogNote:
        return self.notes[0]

    @property
    def newest(self) -> LogNote:
        return self.notes[-1]


class PlannedNight:
    """What a night changes, while its plan is being made."""

    def __init__(self, material: Material) -> None:
        self.m, self.rules = material, material.rules
        self.groups: dict[tuple[str, ...], _Group] = {}
        self.alike: dict[tuple[str, ...], set[date]] = defaultdict(set)
        self.filed: dict[str, list[_Group]] = defaultdict(list)  # by whom or what a note is about
        self.asked: Counter[str] = Counter()  # for how many groups a question speaks
        self.holding: dict[str, list[_Group]] = defaultdict(list)  # by every word that carries what a note says
        self.headed: dict[str, list[date]] = defaultdict(list)  # when something was first said of it
        # Each of these is asked many times a night.
        self._doubt, self._about = cache(material.doubt), cache(self._groups_about)
        self._others, self._successor_of = cache(self._twins_of), cache(self._heir_of)

    def plan(self) -> SweepPlan:
        self._gather()
        retirements, wishes, heirs = self._outdated()
        least = 1 if self.rules.careful else 2
        considered = [
            self._candidate(group, heirs.get(key, []))
            for key, group in self.groups.items()
            if group.tally.hits >= least or key in heirs
        ]
        considered.sort(key=lambda c: (-c.score.total, c.note.day, c.note.path, c.note.line))
        chosen = [c for c in considered if c.passed][: self.rules.limit]
        text, promotions, moves, waiting = self._fitted(chosen, {r.held.number for r in retirements})
        memory = text if text != self.m.memory else None
        made = SweepPlan(now=self.m.now, today=self.m.today, rules=self.rules, recalls=self.m.recalls, memory=memory)
        made = replace(made, promotions=tuple(promotions), retirements=tuple(retirements), moves=tuple(moves))
        return replace(made, wishes=tuple(wishes), considered=tuple(waiting.get(id(c), c) for c in considered))

    def _gather(self) -> None:
        for note in self.m.notes:
            for key in frames(note.text):
                self.alike[key].add(note.day)
            if values.why_junk(note.text) is None:
                group = self.groups.setdefault(sentence(note.text).key, _Group())
                group.notes.append(note)
                if note.tally:
                    group.tally.join(note.tally)
        for group in self.groups.values() if self.rules.careful else ():
            self.asked.update(group.tally.strong_questions)
            found = sentence(group.first.text)
            if lasting(found).degree >= notes.POSSIBLE:  # what passes replaces nothing and is not replaced
                for head in found.heads:
                    self.filed[head].append(group)
                for word in found.stems:
                    self.holding[word].append(group)
                self.headed[found.head].append(group.first.day)
        for days in self.headed.values():
            days.sort()

    def _groups_about(self, heads: frozenset[str]) -> tuple[_Group, ...]:
        """The groups of lasting notes that name what a sentence is about: those of its rarest word first, the newest ones."""
        chosen: dict[int, _Group] = {}
        for head in sorted(heads, key=lambda head: (len(self.filed.get(head, ())), head)):
            newest = self.filed.get(head, ())[-(MOST_COMPARED - len(chosen)) :]
            chosen |= {id(group): group for group in newest}
            if len(chosen) >= MOST_COMPARED:
                break
        return tuple(chosen.values())

    def _degree(self, text: str) -> notes.Lasting:
        exact, *near = (len(self.alike.get(key, ())) for key in frames(text))
        return lasting(sentence(text), min(9, max(0, max(near, default=1) - 1)), min(9, max(0, exact - 1)))

    def _successor(self, old: Sentence, since: date, tally: Tally | None) -> _Group | None:
        """The newest group of notes that replaces a sentence said on that day."""
        best: _Group | None = None
        for group in self._about(old.heads):
            if group.newest.day < since or (best and group.newest.day <= best.newest.day):
                continue
            if self._replaces(old, group, since, tally):
                best = group
        return best

    def _replaces(self, old: Sentence, group: _Group, since: date, tally: Tally | None) -> bool:
        new, mine = sentence(group.newest.text), self.groups.get(old.key)
        crowded = self._crowded(old, group.first.day)
        if new is old or relation(old, new, together=True, crowded=crowded) is not Relation.REPLACES:
            return False  # not even if the same questions had found both
        if relation(old, new, crowded=crowded) is not Relation.REPLACES and not self._together(tally, group.tally):
            return False
        if mine and not new.changes and mine.first.day < group.first.day < mine.newest.day:
            return False  # said again after the other was: both are so
        if any(sentence(other.first.text).adds for other in self._others(group)):
            return False  # the same was said elsewhere as an addition
        if group.newest.day == since:  # on one day, what stands further down was said later
            where = (mine.newest.path, mine.newest.line) if mine else ("", 0)
            if where[0] != group.newest.path or where[1] >= group.newest.line:
                return False
        return self._degree(group.newest.text).degree >= notes.POSSIBLE and self._doubt(group.newest) is None

    def _crowded(self, old: Sentence, on: date) -> bool:
        """Whether by that day other things were said of it, too. Later notes do not change what was decided then."""
        if old.subject & (notes.NAMING | notes.KIN):
            return True  # of a person there is always more to say
        return bisect_right(self.headed.get(old.head, ()), on) >= CROWD

    def _rare(self, word: str, on: date) -> bool:
        return sum(group.first.day <= on for group in self.holding.get(word, ())) <= RARE

    def _together(self, one: Tally | None, other: Tally | None) -> bool:
        """Whether a question that is about little else found both."""
        shared = one.strong_questions & other.strong_questions if one and other else ()
        return any(self.asked[question] <= MOST_ANSWERS for question in shared)

    def _outdated(self) -> tuple[list[Retirement], list[Retirement], dict[tuple[str, ...], list[Held]]]:
        """Lines of memory that newer notes made untrue: machine-written ones, the owner's; and who takes their place."""
        retirements: list[Retirement] = []
        wishes: list[Retirement] = []
        heirs: dict[tuple[str, ...], list[Held]] = defaultdict(list)
        if not self.rules.careful:
            return [], [], heirs
        for held in self.m.held:
            old = sentence(held.fact)
            group = self.groups.get(old.key)
            said = group.newest.day if group else held.since or held.night or self.m.today
            if not held.machine and group is None:
                said = held.since or date.min  # nobody knows when the owner wrote it; any change that says so counts
            by = self._successor(old, said, group.tally if group else held.tally) or self._successor_of_twin(old, said)
            if by is None or (not held.machine and not sentence(by.newest.text).changes):
                continue
            start = held.since or (group.first.day if group else None)
            found = Retirement(held=held, by=by.newest, since=start, until=by.first.day)
            (retirements if held.machine else wishes).append(found)
            if held.machine:
                heirs[sentence(found.by.text).key].append(held)
        return retirements, wishes, heirs

    def _successor_of_twin(self, old: Sentence, said: date) -> _Group | None:
        """What replaced a sentence that says the same as this one in other words, and has a word in common which few have."""
        few = (groups for word in old.stems if len(groups := self.holding.get(word, ())) <= MOST_SHARING)
        for group in {id(group): group for groups in few for group in groups}.values():
            other = sentence(group.first.text)
            by = self._successor_of(group) if other is not old else None
            if by is None or by.first.day <= said or self.groups.get(old.key) is by:
                continue
            lost = value_of(other, sentence(by.newest.text))
            if notes.is_paraphrase(other, old, lost, partial(self._rare, on=by.first.day)):
                return by
        return None

    def _heir_of(self, group: _Group) -> _Group | None:
        """What replaced a whole group."""
        return self._successor(sentence(group.newest.text), group.newest.day, group.tally)

    def _candidate(self, group: _Group, replaces: list[Held]) -> Candidate:
        note = group.newest if replaces else max(group.notes, key=lambda n: (n.tally.hits if n.tally else 0, n.day))
        found = self._degree(note.text)
        evidence = self._evidence(group, note, replaces, found)
        points = values.score(evidence, today=self.m.today, rules=self.rules)
        since = group.first.day if replaces or sentence(note.text).changes else None
        gates = tuple(self._gates(evidence, points.total, found, heir=bool(replaces)))
        if all(gate.passed for gate in gates):  # the others cost more, and matter only now
            gates += tuple(self._truth_gates(group, note, replaces))
        made = Candidate(
            note=note, evidence=evidence, score=points, lasting=found.degree, reasons=found.reasons, gates=gates
        )
        return replace(made, since=since, replaces=tuple(replaces))

    def _evidence(self, group: _Group, note: LogNote, replaces: list[Held], degree: notes.Lasting) -> values.Evidence:
        tally, noted = group.tally, {n.day for n in group.notes}
        if self.rules.careful:
            others = self._others(group)
            noted |= {n.day for other in others for n in other.notes}
            told = [group, *others, *(self.groups.get(sentence(held.fact).key) for held in replaces)]
            tally = Tally()
            for part in (*(each.tally for each in told if each), *(held.tally for held in replaces if held.tally)):
                tally.join(part)
        last = date.fromisoformat(tally.last) if tally.last else note.day
        first = date.fromisoformat(tally.first) if tally.first else note.day
        strong, hits, told_of = self.rules.careful, max(1, tally.hits), " ".join(degree.reasons)
        total = tally.relative if strong else tally.ranked if self.rules.name == "nexo" else tally.scored
        return values.Evidence(
            recalls=len(tally.strong) if strong else tally.hits,
            questions=len(tally.strong_questions if strong else tally.questions),
            days=len({day for day, _ in tally.strong} if strong else tally.days),
            relevance=total / hits,
            first=first,
            last=last,
            mentions=len(noted),
            tags=len(tags(note.text)),
            kind=next((kind for kind, sign in KINDS.items() if sign in told_of), "") if strong else "",
        )

    def _twins_of(self, group: _Group) -> list[_Group]:
        """Groups that say the same in other words."""
        mine, near = sentence(group.first.text), self._about(sentence(group.first.text).heads)
        return [other for other in near if other is not group and says_too(mine, sentence(other.first.text))]

    def _gates(self, e: values.Evidence, total: float, degree: notes.Lasting, *, heir: bool) -> Iterator[Gate]:
        rules = self.rules
        need, days, questions = rules.recalls, rules.days, rules.questions
        if rules.careful:
            yield Gate("lasting", degree.degree >= notes.POSSIBLE, f"{degree.degree:.2f} of {notes.POSSIBLE}")
            if degree.degree < notes.SURE:
                need, days, questions = DOUBTFUL_RECALLS, DOUBTFUL_DAYS, DOUBTFUL_QUESTIONS
        # Noted on two days and asked for once is as good as asked for twice, where the line is surely lasting.
        told = rules.careful and degree.degree >= notes.SURE and e.recalls > 0 and e.mentions > 1
        yield Gate("recalls", heir or told or e.recalls >= need, f"{e.recalls} of {need}")
        yield Gate("questions", heir or e.questions >= questions, f"{e.questions} of {questions}")
        yield Gate("days", heir or told or e.days >= days, f"{e.days} of {days}")
        yield Gate("score", heir or total >= rules.score, f"{total:.2f} of {rules.score}")
        if rules.oldest is not None:
            age = (self.m.today - e.last).days
            yield Gate("age", age <= rules.oldest, f"last asked for {age} days ago")

    def _truth_gates(self, group: _Group, note: LogNote, replaces: list[Held]) -> Iterator[Gate]:
        mine, numbers = sentence(note.text), {held.number for held in replaces}
        others = (held for held in self.m.held if held.number not in numbers)
        known = next((held for held in others if same_words(mine, sentence(held.fact))), None)
        said = f"memory says so already: {known.fact}" if known else "memory does not say so"
        yield Gate("new", known is None, said)
        before = self.m.promoted.get(key_of(note.text))
        again = before is not None and group.newest.day <= before and known is None
        said = f"it was in memory on {before} and was taken out" if again else "never taken out"
        yield Gate("not taken out", not again, said)
        if self.rules.careful:
            old, until = sentence(group.newest.text), group.newest.day
            by = self._successor_of(group) or self._successor_of_twin(old, until)
            said = f"replaced on {by.first.day}: {by.first.text}" if by else "nothing newer says otherwise"
            yield Gate("still so", by is None, said)
        doubt = self._doubt(note)
        yield Gate("trusted", doubt is None, doubt or "its words come from you or your agent alone")

    def _fitted(
        self, chosen: list[Candidate], gone: set[int]
    ) -> tuple[str, list[Promotion], list[Held], dict[int, Candidate]]:
        """The new page, with as many promotions as there is room for, the least asked-for lines of ours making some; the
        lines that were moved out; and the candidates that wait for room."""
        promotions = list[Promotion]()
        for c in chosen:  # of several that say the same in other words tonight, the one that recalls speak for most
            mine = sentence(c.note.text)
            if not any(same_words(mine, sentence(kept.fact)) for kept in promotions):
                line = self.m.line(c.note.fact, c.since, [c.figures])
                promotions.append(Promotion(line=line, fact=c.note.fact, candidate=c))
        moves = [held for held in self.m.held if held.number not in gone and self._is_routine(held)]
        waiting: dict[int, Candidate] = {}
        free = [held for held in self.m.held if held.machine and held.number not in gone and held not in moves]
        free.sort(key=lambda held: (held.hits, held.night or date.min, held.number))
        fold = False
        while True:
            out_of = gone | {held.number for held in moves}
            if self._fits(promotions, out_of, fold=fold) or (fold and not (free or promotions)):
                return dreamed_page(self.m, promotions, gone=out_of, fold=fold), promotions, moves, waiting
            last = promotions[-1].candidate if promotions else None
            if not fold:
                fold = True
            elif free and (last is None or last.replaces or last.evidence.recalls > free[0].hits):
                moves.append(free.pop(0))
            else:
                out = promotions.pop().candidate
                said = f"MEMORY.md has {self.m.budget:,} characters and all are taken"
                waiting[id(out)] = replace(out, gates=(*out.gates, Gate("room", False, said)))

    def _is_routine(self, held: Held) -> bool:
        """A dreamed line whose like was noted so often since that it would not be kept today."""
        if not held.machine or not self.rules.careful or sentence(held.fact).key not in self.groups:
            return False
        return self._degree(held.fact).degree < notes.POSSIBLE <= lasting(sentence(held.fact)).degree

    def _fits(self, promotions: list[Promotion], gone: set[int], *, fold: bool) -> bool:
        """Whether there is room for these lines, and for a heading above them."""
        added = sum(len(promotion.line) + 1 for promotion in promotions)
        size = len(dreamed_page(self.m, (), gone=gone, fold=fold)) + added + (HEADING if promotions else 0)
        return size <= self.m.budget - ROOM


def key_of(text: str) -> str:
    """The words of a fact, by which earlier sweeps are remembered."""
    return " ".join(sentence(text).key)


@lru_cache(maxsize=65_536)
def frames(text: str) -> tuple[tuple[str, ...], ...]:
    """A note with each of its words blotted out in turn, numbers always: what two notes of one routine have in common."""
    found = sentence(text[:200]).tokens[:14]
    masked = tuple("0" if notes.has_digit(word) else word for word in found)
    blotted = ((*masked[:n], "*", *masked[n + 1 :]) for n in range(len(masked)))
    return (masked, *blotted) if len(masked) > 2 else (masked,)
