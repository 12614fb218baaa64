"""Facts over time: whether a newer note replaces an older one, adds to it, or has nothing to do with it.

Promise: pure, and the same for any two sentences in any order of asking. A newer note replaces an older one only when
it is about the same subject and the same thing, and only the value differs: it keeps the older one's frame or label and
has another value, or says now / no longer / moved and speaks of the same attribute, or denies what the older one says. A
second allergy, dog or language is an addition, and both stay, as do look-alikes about somebody or something else.
Not here: what follows from it (dream.plan).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from anima.text import fold
from anima.text import notes as known
from anima.text.notes import LONGEST, Sentence, content, is_any_verb, is_verb

LONGEST_VALUE = 7  # words
FOR_LIFE = next(n for n, row in enumerate(known.SAME_ATTRIBUTE) if "born" in row)  # nobody is born a second time

HOME = next(n for n, row in enumerate(known.SAME_ATTRIBUTE) if "lives" in row)  # nobody has two by mistake


class Relation(StrEnum):
    SAME = "same"
    REPLACES = "replaces"
    ADDS = "adds"


@lru_cache(maxsize=262_144)
def relation(old: Sentence, new: Sentence, *, together: bool = False, crowded: bool = True) -> Relation | None:
    """What `new` is to `old`. `together` says whether searches that found one also found the other; `crowded`, whether
    other things are said of what they are about, as of a person; of a standup or a dentist there is one thing to say."""
    if old.frame == new.frame:
        return None if _negated(old) != _negated(new) else Relation.SAME
    if not old.heads & new.heads:
        return None
    if found := _by_frame(old, new, together, crowded):
        return found
    if new.changes and (_denies(old, new) or _says_otherwise(old, new, together, crowded)):
        return Relation.REPLACES
    return None


def value_of(old: Sentence, new: Sentence) -> frozenset[str]:
    """The words in which the older one differs: what it claimed and is no longer so."""
    return stems(old) - (stems(new) - denied(new)) - {stem(old.head)}


def is_paraphrase(one: Sentence, other: Sentence, value: frozenset[str], rare: Callable[[str], bool]) -> bool:
    """Whether a sentence claims in other words what another claimed: by the value that both name, and what else they
    share. `rare` says of a word that few notes have it, so that it alone points to one fact."""
    here = stems(other)
    named = value & here
    if not named or 2 * len(named) < len(value) or _other_subject(one, other):
        return False
    theirs = (frozenset(other.tokens) - set(one.tokens)) | (subject(one) - set(other.tokens))
    if theirs & known.KIN or _looks_alike(one, other):
        return False
    mine, yours = _attributes_of(one, other)
    if mine and yours and not mine & yours:
        return False
    topic = (stems(one) & here) - value
    if topic - {stem(one.head)} or (topic and (len(named) > 1 or mine & yours)):
        return True
    if same_subject(one, other) and value <= here and value - known.CALENDAR:
        return True
    # A name that few notes have points to one fact; a number does when the subject is the same.
    alone = named - known.CALENDAR
    if not topic and not mine & yours:
        alone -= _stemmed(subject(other))  # it says something of the value, not that it is one
    return any(rare(word) and (not word[0].isdigit() or (topic and len(word) > 2)) for word in alone)


def _looks_alike(one: Sentence, other: Sentence) -> bool:
    """Whether two are one sentence but for what stands before the verb: the same said of something else."""
    front = shared_start(one.frame, other.frame)
    back = shared_start(one.frame[front:][::-1], other.frame[front:][::-1])
    end = one.frame[len(one.frame) - back :]
    return front > 0 and any(word in known.BE or word in known.STATIVE for word in end)


def _other_subject(one: Sentence, other: Sentence) -> bool:
    """Whether the other is about somebody or something that the first does not name."""
    theirs = subject(other) & (other.names | known.KIN)
    return bool(theirs) and not _stemmed(theirs) & stems(one)


@lru_cache(maxsize=65_536)
def _stemmed(found: frozenset[str]) -> frozenset[str]:
    return frozenset(map(stem, found))


def stem(word: str) -> str:
    """A word without what its number adds to it. Coarse; for comparing two notes only."""
    if any(char.isdigit() for char in word):
        return word
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


@lru_cache(maxsize=65_536)
def stems(sentence: Sentence) -> frozenset[str]:
    """The words that carry what is said, and every number; no verbs that any wording may choose."""
    numbers = {word for word in sentence.frame if any(char.isdigit() for char in word)}
    return _stemmed((content(sentence) | numbers) - ((known.STATIVE | known.CHANGES) - sentence.names))


@lru_cache(maxsize=65_536)
def denied(sentence: Sentence) -> frozenset[str]:
    """The words that a sentence says are no longer so: what stands behind "no longer" in its clause."""
    found: set[str] = set()
    for clause in known.DENIAL.findall(sentence.core[:LONGEST]):
        found |= {stem(folded) for word in _WORD.findall(clause) if len(folded := fold(word)) > 2}
    return frozenset(found) - known.ARTICLES - {"mehr"}


_WORD = re.compile(r"[^\W_]+(?:[.:'’/@-][^\W_]+)*")


def same_subject(one: Sentence, other: Sentence) -> bool:
    """Whether two sentences are about the same: what stands before the verb of one stands there in the other, too."""
    mine, yours = subject(one), subject(other)
    if (mine ^ yours) & known.KIN:
        return False  # Ana's sister is not Ana
    return bool(mine) and bool(yours) and (mine <= yours or yours <= mine)


@lru_cache(maxsize=65_536)
def subject(sentence: Sentence) -> frozenset[str]:
    """The words of content before the verb."""
    frame = sentence.frame
    place = next(
        (n for n, word in enumerate(frame) if n and word not in sentence.names and is_any_verb(word)), len(frame)
    )
    if sentence.label:
        place = min(place, sentence.label)
    elif place == len(frame):  # "standup at nine": no verb, but a word that ends the subject
        place = next((n for n, word in enumerate(frame) if n and word in known.TIES), place)
    return content(sentence) & frozenset(frame[:place])


def gist(sentence: Sentence) -> frozenset[str]:
    """What a sentence claims, without whom it is about and without the nouns that any wording may choose."""
    return stems(sentence) - _stemmed(frozenset({sentence.head}) | known.ATTRIBUTES | known.NAMING)


@lru_cache(maxsize=262_144)
def says_too(one: Sentence, other: Sentence) -> bool:
    """Whether two sentences claim the same of the same in other words, so that recalls of one speak for both."""
    mine, yours = gist(one), gist(other)
    if not mine or not yours or not (mine <= yours or yours <= mine) or not same_subject(one, other):
        return False
    if _negated(one) != _negated(other):
        return False
    here, there = _attributes_of(one, other)
    return not here or not there or bool(here & there)


@lru_cache(maxsize=65_536)
def attributes(sentence: Sentence, apart: frozenset[str] = frozenset()) -> frozenset[int]:
    """Which of the known attributes a sentence speaks of, apart from words that only name whom it is about."""
    told = frozenset(sentence.tokens) - apart
    return frozenset(n for n, row in enumerate(known.SAME_ATTRIBUTE) if not row.isdisjoint(told))


def _attributes_of(one: Sentence, other: Sentence) -> tuple[frozenset[int], frozenset[int]]:
    """The attributes that each speaks of, apart from words for the same one that both are about."""
    common = subject(one) & subject(other) & known.KIN
    return attributes(one, common), attributes(other, common)


def _attributes_shared(one: Sentence, other: Sentence) -> bool:
    mine, yours = _attributes_of(one, other)
    return not mine.isdisjoint(yours)


def _by_frame(old: Sentence, new: Sentence, together: bool, crowded: bool) -> Relation | None:
    """The same sentence but for one run of words behind what it is about."""
    a, b = old.frame, new.frame
    b = b[1:] if len(b) > 2 and b[0] in known.CHANGES else b  # without a bare "moved;" or "changed:"
    front = shared_start(a, b)
    back = shared_start(a[front:][::-1], b[front:][::-1])
    gone, come = a[front : len(a) - back], b[front : len(b) - back]
    if not gone or not come or max(len(gone), len(come)) > LONGEST_VALUE or "'s" in (gone[0], come[0]):
        return None
    start, end = a[:front], a[len(a) - back :]
    if (frozenset(gone) ^ frozenset(come)) & ((known.KIN - old.names - new.names) | known.NAMING):
        return None  # of somebody else
    before_thing = bool(start) and start[-1] not in known.BE and start[-1] not in known.TIES  # else there is a value
    if not 0 < old.label <= len(start) and before_thing and _tied(gone) and _tied(come):
        return None  # "moved | the demo to May" and "moved | the party to June": of something else
    verbs = [word for n, word in enumerate(start) if n and word not in old.names and is_verb(word)]
    if not verbs and not _is_dense(start):
        return _by_topic(old, new, _Cut(start, end, gone, come), together, crowded)
    if old.adds or new.adds or _several(start, end, verbs) or (a[0] in known.ALWAYS and not new.changes):
        return Relation.ADDS if not new.changes else Relation.REPLACES
    at_verb = bool(verbs) and start[-1] == verbs[-1] and not end
    bare = at_verb and verbs[-1] in known.LOOSEST
    if not new.changes and at_verb and not _same_slot(old, verbs[-1], gone, come):
        return None
    if _is_dense(start) or _is_tight(start, end, verbs) or (new.changes and not bare):
        return Relation.REPLACES
    if together or _attributes_shared(old, new):
        return Relation.REPLACES
    one_thing = not bare or (not crowded and verbs[-1] in known.BE)
    return Relation.REPLACES if one_thing and _alike(old, new, gone, come) else None


def _tied(words: tuple[str, ...]) -> int:
    """Where, behind a thing, a small word ties a value to it; 0 for nowhere. A number, a time and what is tied itself are
    no things."""
    first = words[0] if words else "0"
    if first[0].isdigit() or first in known.TIES or stem(first) in known.SPANS | known.CALENDAR:
        return 0
    return next((n for n, word in enumerate(words[:-1]) if n and word in known.TIES), 0)


@lru_cache(maxsize=65_536)
def _changed(sentence: Sentence) -> frozenset[str]:
    """What a sentence says was changed, in "Ana moved the dentist to Monday" the dentist: the thing it speaks of."""
    frame = sentence.frame
    place = next((n + 1 for n, word in enumerate(frame) if n and word in known.CHANGES), len(frame))
    return content(sentence) & frozenset(frame[place : place + _tied(frame[place:])])


def _other_thing(old: Sentence, new: Sentence, common: frozenset[str]) -> bool:
    """Whether what the newer one says was changed is something else than the older one speaks of."""
    thing, known = _stemmed(_changed(new)), _stemmed((subject(old) - common) | _changed(old))
    return bool(thing and known) and not (thing <= known or known <= thing)


class _Cut(NamedTuple):
    """Two frames laid on one another: what they share at both ends, and the run of words in which they differ."""

    start: tuple[str, ...]
    end: tuple[str, ...]
    gone: tuple[str, ...]
    come: tuple[str, ...]


ENOUGH = 2  # signs that a note without a verb has another value of the same thing


def _by_topic(old: Sentence, new: Sentence, cut: _Cut, together: bool, crowded: bool) -> Relation | None:
    """A note without a verb before its value: "gym: Northside", "review on Friday", "savings goal 400"."""
    topic = [word for word in cut.start if _is_topic(word)]
    if any(word not in old.names and (word in known.BE or word in known.STATIVE) for word in cut.end):
        return None  # the verb comes after what differs, so that is what they are about
    if not topic or _differs_before(old, cut.gone, new, cut) or _differs_before(new, cut.come, old, cut):
        return None
    if old.adds or new.adds or any(map(known.is_several, (*cut.start, *cut.end))):
        return Relation.ADDS if not new.changes else Relation.REPLACES
    one_thing = len(topic) > 1 or not crowded
    labelled = 0 < old.label <= len(cut.start) and (old.label == new.label or (new.changes and not new.label))
    alike = _alike(old, new, cut.gone, cut.come)
    lone_name = len(topic) == 1 and topic[0] in old.names  # may be a person, of whom a label says no attribute
    closing = cut.start[-2 if cut.start[-1] in known.OWNERS and len(cut.start) > 1 else -1]
    signs = (
        len(topic) > 1,
        labelled or closing in known.TIES,
        labelled and one_thing and not lone_name,
        any(_is_topic(word) for word in cut.end),
        alike,
        new.changes and one_thing,
        _attributes_shared(old, new),
        together,
    )
    return Relation.REPLACES if one_thing and sum(signs) >= ENOUGH else None


def _is_topic(word: str) -> bool:
    """Whether a word can be what a note is about: no small word, no sort of note."""
    return len(word) > 1 and word != "'s" and word not in known.TIES and word not in _NO_TOPIC and not word[0].isdigit()


_NO_TOPIC = known.NAMING | known.OWNERS | known.RULES | known.DECISIONS | known.BE | known.SORTS


def _differs_before(sentence: Sentence, value: tuple[str, ...], other: Sentence, cut: _Cut) -> bool:
    """Whether the differing words are part of what it is about, or of what is claimed: a verb or the label's end is there."""
    if sentence.label and (sentence.label == other.label or sentence.label > len(cut.start)):
        return sentence.label > len(cut.start)
    if is_any_verb(value[0]) and value[0] not in sentence.names:
        return True
    return any(word not in sentence.names and (word in known.BE or word in known.STATIVE) for word in value)


def _same_slot(old: Sentence, verb: str, gone: tuple[str, ...], come: tuple[str, ...]) -> bool:
    """Whether two values hang on a verb in the same way: "works at …" and "works from …" are two things to say."""
    one, other = (word if word in known.TIES else "" for word in (gone[0], come[0]))
    if one == other or (one in known.PLACES and other in known.PLACES) or HOME in attributes(old):
        return True
    return verb in known.BE


def shared_start(a: Sequence[str], b: Sequence[str]) -> int:
    """How many of the first words, or letters, are the same."""
    return next((n for n, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))


def _is_dense(start: tuple[str, ...]) -> bool:
    """A script without blanks, where a word is a character: three shared ones are a subject and a verb."""
    return len(start) >= 3 and all(len(word) == 1 for word in start)


def _several(start: tuple[str, ...], end: tuple[str, ...], verbs: list[str]) -> bool:
    """Whether they tell of something that one may have several of; not only of such a one: "my sister is reachable on …"."""
    place = start.index(verbs[-1]) if verbs else 0
    named = not verbs or start[-1] in (verbs[-1], "called", "named", "heisst", "llama")
    told = start[1:] if named else start[max(1, place) :]
    return any(map(known.is_several, (*told, *end)))


def _is_tight(start: tuple[str, ...], end: tuple[str, ...], verbs: list[str]) -> bool:
    """Whether the frame says more than "somebody uses …": an attribute by name, or words behind the value."""
    if any(word not in known.BE and len(word) > 2 for word in end):
        return True
    if verbs and verbs[-1] not in known.LOOSE:
        return True
    if verbs and start[-1] != verbs[-1]:
        return True  # the frame goes on behind the verb: "is at", "is called", "uses … for"
    if sum(len(word) > 2 and word not in known.NAMING for word in start) >= 4:
        return True  # a beginning that says this much is about one thing
    if not verbs or verbs[-1] not in known.BE:
        return False
    before = start[: start.index(verbs[-1])]
    if before[-1] in known.KIN:
        return False
    return "'s" in before or any(
        word in ("of", "de", "del", "von", "der", "du", "for", "para", "fur", "pour") for word in before
    )


def _alike(old: Sentence, new: Sentence, gone: tuple[str, ...], come: tuple[str, ...]) -> bool:
    """Whether two values look like values of one attribute: both names, or both numbers, of about one length."""
    return _shape(old, gone) == _shape(new, come) != "words" and abs(len(gone) - len(come)) <= 1


def _shape(sentence: Sentence, value: tuple[str, ...]) -> str:
    if not sentence.names.isdisjoint(value):
        return "name"
    return "number" if any(char.isdigit() for char in "".join(value)) else "words"


@lru_cache(maxsize=65_536)
def _negated(sentence: Sentence) -> bool:
    plain = f" {' '.join(sentence.tokens)} "
    return any(
        f" {phrase} " in plain for phrase in ("no longer", "not", "ya no", "nicht mehr", "never", "nunca", "ne plus")
    )


def _says_otherwise(old: Sentence, new: Sentence, together: bool, crowded: bool) -> bool:
    """A sentence of change about the same subject, and about the same attribute or the very value that was."""
    if not same_subject(old, new):
        return False
    common, (mine, yours) = subject(old) & subject(new), _attributes_of(old, new)
    if FOR_LIFE in mine or (mine and yours and not mine & yours):
        return False
    if _other_thing(old, new, common):
        return False
    if any(map(known.is_several, old.frame[1:])) and not _negated(new):
        return False
    gone = denied(new) - _stemmed(known.STATIVE)
    if gone and not gone & stems(old) and HOME not in mine & yours:
        return False  # it says what is no longer so, and that is something else
    shared = (stems(old) & stems(new)) - _stemmed(common | known.NAMING)
    if mine & yours or shared:
        return True
    named = not _changed(new) or bool(_stemmed(_changed(new)) & stems(old))
    return named and (together or (not crowded and _one_claim(old, new)))


def _one_claim(old: Sentence, new: Sentence) -> bool:
    """Whether two are about just the same, and neither has a verb of its own that claims something else."""
    claimed = {word for word in new.frame if word in known.STATIVE and word not in new.names}
    was = next((word for n, word in enumerate(old.frame) if n and word not in old.names and is_verb(word)), "is")
    return subject(old) == subject(new) and claimed <= set(old.frame) and (was in known.PLAIN or was in new.frame)


def _denies(old: Sentence, new: Sentence) -> bool:
    """Whether the newer one says in so many words that what the older one says is no longer so."""
    gone, here = denied(new) - _stemmed((known.STATIVE | known.TIES) - old.names), stems(old)
    if not gone & here or not (gone <= here or any(word in _stemmed(old.names) for word in gone & here)):
        return False
    return bool((_stemmed(new.heads) & here) - gone)
