"""Two notes compared: whether they say the same, whether the newer one replaces the older one or adds to it, or neither.

Promise: pure, and the same for any two sentences in any order of asking. A newer note replaces an older one only when
it is about the same subject and the same thing, and only the value differs: it keeps the older one's frame or label and
has another value, or says now / no longer / moved and speaks of the same attribute, or denies what the older one says. A
second allergy, dog or language is an addition, and both stay, as do look-alikes about somebody or something else.
Not here: what follows from it (dream.plan, text.pages), lines of which one may go (upkeep.hygiene).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import lru_cache

from anima.text import notes as known
from anima.text import stem
from anima.text.notes import Sentence, has_digit, is_any_verb, is_verb, stemmed

LONGEST_VALUE = 7  # words
ALIKE = 0.9  # the least share of words that two sentences have in common which say the same
ENOUGH = 2  # signs that a note without a verb has another value of the same thing
FOR_LIFE = next(n for n, row in enumerate(known.SAME_ATTRIBUTE) if "born" in row)  # nobody is born a second time
HOME = next(n for n, row in enumerate(known.SAME_ATTRIBUTE) if "lives" in row)  # nobody has two by mistake
_VERBS = known.BE | known.STATIVE
_NO_TOPIC = known.NAMING | known.OWNERS | known.RULES | known.DECISIONS | known.BE | known.SORTS | known.TIES | {"'s"}


class Relation(StrEnum):
    SAME = "same"
    REPLACES = "replaces"
    ADDS = "adds"


# -- the same -------------------------------------------------------------------------------------------------------------


def same_words(one: Sentence, other: Sentence) -> bool:
    """Whether two say the same in nearly the same words: all but a tenth, and no number, denial or attribute apart."""
    mine, yours = one.words, other.words
    near = min(len(mine), len(yours)) > 3 and len(mine & yours) >= ALIKE * len(mine | yours)
    if not mine or (mine != yours and (not near or any(map(has_digit, mine ^ yours)))):
        return False
    apart = {*one.tokens} ^ {*other.tokens}
    if one.negated != other.negated or any(word in known.DENIALS or word.endswith("n't") for word in apart):
        return False
    here, there = _attributes(one, other)  # to live somewhere is not to work there
    return not here or not there or bool(here & there)


def same_course(one: Sentence, other: Sentence) -> bool:
    """Whether the words that two sentences share follow one another alike (from Lima to Bogota is no way back), and neither
    has a verb of its own: who works in Lima may live elsewhere."""
    if not known.DOING.isdisjoint({*one.frame} ^ {*other.frame}):
        return False
    mine, yours = ([*dict.fromkeys(map(stem, each.frame))] for each in (one, other))
    shared = one.words & other.words
    return [word for word in mine if word in shared] == [word for word in yours if word in shared]


@lru_cache(maxsize=262_144)
def says_too(one: Sentence, other: Sentence) -> bool:
    """Whether two sentences claim the same of the same in other words, so that recalls of one speak for both: without
    whom they are about, and without the nouns that any wording may choose."""
    mine, yours = (
        each.stems - stemmed(frozenset({each.head}) | known.ATTRIBUTES | known.NAMING) for each in (one, other)
    )
    nested = bool(mine and yours) and (mine <= yours or yours <= mine)
    if not nested or one.negated != other.negated or not _same_subject(one, other):
        return False
    here, there = _attributes(one, other)
    return not here or not there or bool(here & there)


def value_of(old: Sentence, new: Sentence) -> frozenset[str]:
    """The words in which the older one differs: what it claimed and is no longer so."""
    return old.stems - (new.stems - new.denied) - {stem(old.head)}


def is_paraphrase(one: Sentence, other: Sentence, value: frozenset[str], rare: Callable[[str], bool]) -> bool:
    """Whether a sentence claims in other words what another claimed: by the value that both name, and what else they
    share. `rare` says of a word that few notes have it, so that it alone points to one fact."""
    here, subject = other.stems, other.subject & (other.names | known.KIN)
    named = value & here
    if not named or 2 * len(named) < len(value) or (subject and not stemmed(subject) & one.stems):
        return False  # or it is about somebody or something that the first does not name
    theirs = (frozenset(other.tokens) - set(one.tokens)) | (one.subject - set(other.tokens))
    front, back = _shared_ends(one.frame, other.frame)
    if theirs & known.KIN or (front and not _VERBS.isdisjoint(one.frame[len(one.frame) - back :])):
        return False  # one sentence but for what stands before the verb: the same said of something else
    mine, yours = _attributes(one, other)
    if mine and yours and not mine & yours:
        return False
    topic = (one.stems & here) - value
    if topic - {stem(one.head)} or (topic and (len(named) > 1 or mine & yours)):
        return True
    if _same_subject(one, other) and value <= here and value - known.CALENDAR:
        return True
    # A name that few notes have points to one fact; a number does when the subject is the same.
    alone = named - known.CALENDAR
    if not topic and not mine & yours:
        alone -= stemmed(other.subject)  # it says something of the value, not that it is one
    return any(rare(word) and (topic or not word[0].isdigit()) for word in alone)


def _same_subject(one: Sentence, other: Sentence) -> bool:
    """Whether two sentences are about the same: what stands before the verb of one stands there in the other, too."""
    mine, yours = one.subject, other.subject
    if (mine ^ yours) & known.KIN:
        return False  # Ana's sister is not Ana
    return bool(mine) and bool(yours) and (mine <= yours or yours <= mine)


@lru_cache(maxsize=262_144)
def _attributes(one: Sentence, other: Sentence) -> tuple[frozenset[int], frozenset[int]]:
    """Which of the known attributes each speaks of, apart from words for the same one that both are about."""
    common = one.subject & other.subject & known.KIN
    mine, yours = (
        frozenset(n for n, row in enumerate(known.SAME_ATTRIBUTE) if row & (frozenset(each.tokens) - common))
        for each in (one, other)
    )
    return mine, yours


def _shared_ends(a: Sequence[str], b: Sequence[str]) -> tuple[int, int]:
    """How many of the first words, and how many of the last of the others, are the same."""

    def shared(a: Sequence[str], b: Sequence[str]) -> int:
        return next((n for n, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))

    front = shared(a, b)
    return front, shared(a[front:][::-1], b[front:][::-1])


# -- what replaces, and what adds --------------------------------------------------------------------------------------------


@lru_cache(maxsize=262_144)
def relation(old: Sentence, new: Sentence, *, together: bool = False, crowded: bool = True) -> Relation | None:
    """What `new` is to `old`. `together` says whether searches that found one also found the other; `crowded`, whether
    other things are said of what they are about, as of a person; of a standup or a dentist there is one thing to say."""
    if old.frame == new.frame:
        return None if old.negated != new.negated else Relation.SAME
    if not old.heads & new.heads:
        return None
    if found := _Laid(old, new).relation(together, crowded):
        return found
    if new.changes and (_denies(old, new) or _says_otherwise(old, new, together, crowded)):
        return Relation.REPLACES
    return None


class _Laid:
    """Two frames laid on one another: what they share at both ends, and the run of words in which they differ."""

    def __init__(self, old: Sentence, new: Sentence) -> None:
        a, b = old.frame, new.frame
        b = b[1:] if len(b) > 2 and b[0] in known.CHANGES else b  # without a bare "moved;" or "changed:"
        front, back = _shared_ends(a, b)
        self.old, self.new, self.start, self.end = old, new, a[:front], a[len(a) - back :]
        self.gone, self.come = a[front : len(a) - back], b[front : len(b) - back]
        self.verbs = [word for n, word in enumerate(self.start) if n and word not in old.names and is_verb(word)]

    def relation(self, together: bool, crowded: bool) -> Relation | None:
        """The same sentence but for one run of words behind what it is about."""
        old, new, start, gone, come = self.old, self.new, self.start, self.gone, self.come
        if not gone or not come or max(len(gone), len(come)) > LONGEST_VALUE or "'s" in (gone[0], come[0]):
            return None
        if (frozenset(gone) ^ frozenset(come)) & ((known.KIN - old.names - new.names) | known.NAMING):
            return None  # of somebody else
        before_thing = bool(start) and start[-1] not in known.BE | known.TIES  # else there is a value
        if not 0 < old.label <= len(start) and before_thing and _tied(gone) and _tied(come):
            return None  # "moved | the demo to May" and "moved | the party to June": of something else
        mine, yours = _attributes(old, new)
        told = together + bool(mine & yours)
        # A script without blanks, where a word is a character: three shared ones are a subject and a verb.
        dense = len(start) >= 3 and all(len(word) == 1 for word in start)
        if not self.verbs and not dense:
            return self._by_topic(told, crowded)
        if old.adds or new.adds or self._several() or (start[:1] and start[0] in known.ALWAYS and not new.changes):
            return Relation.ADDS if not new.changes else Relation.REPLACES
        at_verb = bool(self.verbs) and start[-1] == self.verbs[-1] and not self.end
        bare = at_verb and self.verbs[-1] in known.LOOSEST
        if not new.changes and at_verb and not self._same_slot():
            return None
        one_thing = not bare or (not crowded and self.verbs[-1] in known.BE)
        same = dense or self._is_tight() or (new.changes and not bare) or told or (one_thing and self._alike())
        return Relation.REPLACES if same else None

    def _by_topic(self, told: int, crowded: bool) -> Relation | None:
        """A note without a verb before its value: "gym: Northside", "review on Friday", "savings goal 400"."""
        old, new, start = self.old, self.new, self.start
        topic = [word for word in start if _is_topic(word)]
        if not _VERBS.isdisjoint({*self.end} - old.names):
            return None  # the verb comes after what differs, so that is what they are about
        if not topic or self._is_part(old, self.gone, new.label) or self._is_part(new, self.come, old.label):
            return None
        if old.adds or new.adds or any(map(known.is_several, (*start, *self.end))):
            return Relation.ADDS if not new.changes else Relation.REPLACES
        one_thing = len(topic) > 1 or not crowded
        labelled = 0 < old.label <= len(start) and (old.label == new.label or (new.changes and not new.label))
        lone_name = len(topic) == 1 and topic[0] in old.names  # may be a person, of whom a label says no attribute
        closing = start[-2 if start[-1] in known.OWNERS and len(start) > 1 else -1]
        signs = (
            len(topic) > 1,
            labelled or closing in known.TIES,
            labelled and not lone_name,
            any(map(_is_topic, self.end)),
            self._alike(),
            new.changes,
        )
        return Relation.REPLACES if one_thing and sum(signs) + told >= ENOUGH else None

    def _is_part(self, one: Sentence, value: tuple[str, ...], label: int) -> bool:
        """Whether the differing words are part of what one is about, or of what is claimed: a verb or the label's end is
        there."""
        if one.label and (one.label == label or one.label > len(self.start)):
            return one.label > len(self.start)
        return (is_any_verb(value[0]) and value[0] not in one.names) or not _VERBS.isdisjoint({*value} - one.names)

    def _same_slot(self) -> bool:
        """Whether two values hang on a verb in the same way: "works at …" and "works from …" are two things to say."""
        one, other = (word if word in known.TIES else "" for word in (self.gone[0], self.come[0]))
        return one == other or {one, other} <= known.PLACES or self.verbs[-1] in known.BE

    def _several(self) -> bool:
        """Whether they tell of something one may have several of; not only of such a one: "my sister is reachable on …"."""
        start, verbs = self.start, self.verbs
        named = not verbs or start[-1] in (verbs[-1], "called", "named", "heisst", "llama")
        told = start[1:] if named else start[max(1, start.index(verbs[-1])) :]
        return any(map(known.is_several, (*told, *self.end)))

    def _is_tight(self) -> bool:
        """Whether the frame says more than "somebody uses …": an attribute by name, or words behind the value."""
        start, verb = self.start, self.verbs[-1]
        if any(len(word) > 2 for word in self.end) or verb not in known.LOOSE or start[-1] != verb:
            return True  # it goes on behind the verb, too: "is at", "is called", "uses … for"
        if sum(len(word) > 2 for word in start) >= 4:
            return True  # a beginning that says this much is about one thing
        before = start[: start.index(verb)]
        return verb in known.BE and before[-1] not in known.KIN and not (known.OF | {"'s"}).isdisjoint(before)

    def _alike(self) -> bool:
        """Whether two values look like values of one attribute: both names, or both numbers, of about one length."""
        named = (not self.old.names.isdisjoint(self.gone), not self.new.names.isdisjoint(self.come))
        counted = (has_digit("".join(self.gone)), has_digit("".join(self.come)))
        return (all(named) or (not any(named) and all(counted))) and abs(len(self.gone) - len(self.come)) <= 1


def _is_topic(word: str) -> bool:
    """Whether a word can be what a note is about: no small word, no sort of note."""
    return len(word) > 1 and word not in _NO_TOPIC and not word[0].isdigit()


def _tied(words: tuple[str, ...]) -> int:
    """Where, behind a thing, a small word ties a value to it; 0 for nowhere. A number, a time and what is tied itself are
    no things."""
    first = words[0] if words else "0"
    if first[0].isdigit() or first in known.TIES or stem(first) in known.SPANS | known.CALENDAR:
        return 0
    return next((n for n, word in enumerate(words[:-1]) if n and word in known.TIES), 0)


def _changed(sentence: Sentence) -> frozenset[str]:
    """What a sentence says was changed, in "Ana moved the dentist to Monday" the dentist: the thing it speaks of."""
    frame = sentence.frame
    place = next((n + 1 for n, word in enumerate(frame) if n and word in known.CHANGES), len(frame))
    return sentence.content & frozenset(frame[place : place + _tied(frame[place:])])


def _says_otherwise(old: Sentence, new: Sentence, together: bool, crowded: bool) -> bool:
    """A sentence of change about the same subject, and about the same attribute or the very value that was."""
    if not _same_subject(old, new):
        return False
    common, (mine, yours), changed = old.subject & new.subject, _attributes(old, new), stemmed(_changed(new))
    if FOR_LIFE in mine or (mine and yours and not mine & yours):
        return False
    thing = stemmed((old.subject - common) | _changed(old))
    if changed and thing and not (changed <= thing or thing <= changed):
        return False  # what was changed is something else than the older one speaks of
    if any(map(known.is_several, old.frame[1:])) and not new.negated:
        return False
    gone = new.denied - stemmed(known.STATIVE)
    if gone and not gone & old.stems and HOME not in mine & yours:
        return False  # it says what is no longer so, and that is something else
    if mine & yours or (old.stems & new.stems) - stemmed(common | known.NAMING):
        return True
    if changed and not changed & old.stems:
        return False
    return together or (not crowded and _one_claim(old, new))


def _one_claim(old: Sentence, new: Sentence) -> bool:
    """Whether two are about just the same, and neither has a verb of its own that claims something else."""
    claimed = known.STATIVE.intersection(new.frame) - new.names
    was = next((word for n, word in enumerate(old.frame) if n and word not in old.names and is_verb(word)), "is")
    return old.subject == new.subject and claimed <= {*old.frame} and (was in known.PLAIN or was in new.frame)


def _denies(old: Sentence, new: Sentence) -> bool:
    """Whether the newer one says in so many words that what the older one says is no longer so."""
    gone, here = new.denied - stemmed((known.STATIVE | known.TIES) - old.names), old.stems
    if not gone & here or not (gone <= here or gone & here & stemmed(old.names)):
        return False
    return bool((stemmed(new.heads) & here) - gone)
