"""Facts over time: whether a newer note replaces an older one, adds to it, or has nothing to do with it.

Promise: pure, and the same for any two sentences in any order of asking. A newer note replaces an older one when it
keeps the older one's frame and has another value, or says now / no longer / moved and speaks of the same subject and
attribute; a second allergy, dog or language is an addition, and both stay. In doubt both stay. Not here: what follows.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache

from anima.dream import words
from anima.dream.sentences import Sentence, content, is_any_verb, is_verb

LONGEST_VALUE = 7  # words
FOR_LIFE = next(n for n, row in enumerate(words.SAME_ATTRIBUTE) if "born" in row)  # nobody is born a second time


class Relation(StrEnum):
    SAME = "same"
    REPLACES = "replaces"
    ADDS = "adds"


def relation(old: Sentence, new: Sentence, *, together: Callable[[], bool] = lambda: False) -> Relation | None:
    """What `new` is to `old`. `together` says whether searches that found one also found the other."""
    if old.frame == new.frame:
        return None if _negated(old) != _negated(new) else Relation.SAME
    if not old.heads & new.heads:
        return None
    if found := _by_frame(old, new, together):
        return found
    if new.changes and _says_otherwise(old, new, together):
        return Relation.REPLACES
    return None


def value_of(old: Sentence, new: Sentence) -> frozenset[str]:
    """The words of content in which the older one differs: what it claimed and is no longer so."""
    return content(old) - content(new) - {old.head} - words.STATIVE


def is_paraphrase(one: Sentence, other: Sentence, value: frozenset[str]) -> bool:
    """Whether a sentence claims the same value of the same subject and attribute as another, in other words."""
    if not value or not same_subject(one, other):
        return False
    if not value <= set(other.frame):
        return False
    common = subject(one) & subject(other) & words.KIN
    mine, yours = attributes(one, common), attributes(other, common)
    return not mine or not yours or bool(mine & yours)


def same_subject(one: Sentence, other: Sentence) -> bool:
    """Whether two sentences are about the same: what stands before the verb of one stands there in the other, too."""
    mine, yours = subject(one), subject(other)
    if (mine ^ yours) & words.KIN:
        return False  # Ana's sister is not Ana
    return bool(mine) and bool(yours) and (mine <= yours or yours <= mine)


@lru_cache(maxsize=65_536)
def subject(sentence: Sentence) -> frozenset[str]:
    """The words of content before the verb."""
    frame = sentence.frame
    place = next(
        (n for n, word in enumerate(frame) if n and word not in sentence.names and is_any_verb(word)), len(frame)
    )
    return content(sentence) & frozenset(frame[:place])


@lru_cache(maxsize=65_536)
def gist(sentence: Sentence) -> frozenset[str]:
    """What a sentence claims, without whom it is about and without the verbs and nouns that any wording may choose."""
    kept = content(sentence) - {sentence.head} - words.STATIVE - words.ATTRIBUTES - words.NAMING
    return frozenset(word.rstrip("s")[:8] for word in kept)


def says_too(one: Sentence, other: Sentence) -> bool:
    """Whether two sentences claim the same of the same in other words, so that recalls of one speak for both."""
    mine, yours = gist(one), gist(other)
    if not mine or not yours or not (mine <= yours or yours <= mine) or not same_subject(one, other):
        return False
    if _negated(one) != _negated(other):
        return False
    common = subject(one) & subject(other) & words.KIN
    here, there = attributes(one, common), attributes(other, common)
    return not here or not there or bool(here & there)


@lru_cache(maxsize=65_536)
def attributes(sentence: Sentence, apart: frozenset[str] = frozenset()) -> frozenset[int]:
    """Which of the known attributes a sentence speaks of, apart from words that only name whom it is about."""
    told = frozenset(sentence.tokens) - apart
    return frozenset(n for n, row in enumerate(words.SAME_ATTRIBUTE) if not row.isdisjoint(told))


def _attributes_shared(one: Sentence, other: Sentence) -> bool:
    common = subject(one) & subject(other) & words.KIN
    return bool(attributes(one, common) & attributes(other, common))


def _by_frame(old: Sentence, new: Sentence, together: Callable[[], bool]) -> Relation | None:
    """The same sentence but for one run of words behind the verb."""
    a, b = old.frame, new.frame
    front = _shared(a, b)
    back = _shared(a[front:][::-1], b[front:][::-1])
    gone, come = a[front : len(a) - back], b[front : len(b) - back]
    if not gone or not come or max(len(gone), len(come)) > LONGEST_VALUE or "'s" in (gone[0], come[0]):
        return None
    start, end = a[:front], a[len(a) - back :]
    verbs = _verbs(start, old.names)
    if not verbs and not _is_dense(start):
        return None
    if new.adds or _several(start, end):
        return Relation.ADDS if not new.changes else Relation.REPLACES
    bare = bool(verbs) and verbs[-1] in words.LOOSEST and start[-1] == verbs[-1] and not end
    if _is_dense(start) or _is_tight(start, end, verbs) or (new.changes and not bare):
        return Relation.REPLACES
    if together() or _attributes_shared(old, new):
        return Relation.REPLACES
    return Relation.REPLACES if not bare and _alike(old, new, gone, come) else None


def _shared(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    return next((n for n, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))


def _verbs(start: tuple[str, ...], names: frozenset[str]) -> list[str]:
    """The verbs that the shared beginning says of somebody or something."""
    return [word for n, word in enumerate(start) if n and word not in names and is_verb(word)]


def _is_dense(start: tuple[str, ...]) -> bool:
    """A script without blanks, where a word is a character: three shared ones are a subject and a verb."""
    return len(start) >= 3 and all(len(word) == 1 for word in start)


def _several(start: tuple[str, ...], end: tuple[str, ...]) -> bool:
    return any(word.startswith(words.SEVERAL) for word in (*start[1:], *end))


def _is_tight(start: tuple[str, ...], end: tuple[str, ...], verbs: list[str]) -> bool:
    """Whether the frame says more than "somebody uses …": an attribute by name, or words behind the value."""
    if any(word not in words.BE and len(word) > 2 for word in end):
        return True
    if verbs and verbs[-1] not in words.LOOSE:
        return True
    if verbs and start[-1] != verbs[-1]:
        return True  # the frame goes on behind the verb: "is at", "is called", "uses … for"
    if sum(len(word) > 2 and word not in words.NAMING for word in start) >= 4:
        return True  # a beginning that says this much is about one thing
    if not verbs or verbs[-1] not in words.BE:
        return False
    before = start[: start.index(verbs[-1])]
    if before[-1] in words.KIN:
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


def _stems(found: frozenset[str]) -> frozenset[str]:
    kept = found - words.STATIVE - words.NAMING - words.CHANGES
    return frozenset(word.rstrip("s")[:8] for word in kept)


@lru_cache(maxsize=65_536)
def _negated(sentence: Sentence) -> bool:
    plain = f" {' '.join(sentence.tokens)} "
    return any(
        f" {phrase} " in plain for phrase in ("no longer", "not", "ya no", "nicht mehr", "never", "nunca", "ne plus")
    )


def _says_otherwise(old: Sentence, new: Sentence, together: Callable[[], bool]) -> bool:
    """A sentence of change about the same subject, and about the same attribute or the very value that was."""
    if not same_subject(old, new):
        return False
    common = subject(old) & subject(new)
    mine, yours = attributes(old, common & words.KIN), attributes(new, common & words.KIN)
    if FOR_LIFE in mine or (mine and yours and not mine & yours):
        return False
    if any(word.startswith(words.SEVERAL) for word in old.frame[1:]) and not _negated(new):
        return False
    shared = _stems(content(old) - common) & _stems(content(new) - common)
    return bool(mine & yours) or bool(shared) or together()
