"""One note taken apart: its core words, whom it is about, what in it means change or addition, and how lasting it is.

Promise: pure, in linear time, for any language that puts blanks between words and, more coarsely, for those that do
not; the same text gives the same Sentence. What was said around the core (a label, "she told me that", a remark in
parentheses at the end) is not part of it. How lasting it is, is a number from 0 to 1 with the reasons for it: no list of
things worth keeping, only of how people speak of what stays and of what passes.
Not here: whether a note replaces another (changes), shapes that are junk in any case and recalls (dream).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from anima.text import vocabulary
from anima.text.words import fold

LONGEST = 600  # characters of a note that are looked at
_DENSE = "\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff"
_TOKEN = re.compile(rf"[{_DENSE}]|['’]s\b|[^\W_{_DENSE}]+(?:[.:,'’/@-](?!s\b)[^\W_{_DENSE}]+)*")
_MARK = re.compile(r"\s*(?::|=|->|→|=>)\s+|\s+[-–—]\s+")
_ASIDE = re.compile(r"\s*[(（\[][^()（）\[\]]{0,80}[)）\]]\s*[.!]?\s*\Z")


@dataclass(frozen=True, slots=True, eq=False)  # kept by `sentence`, so that one text is one object
class Sentence:
    """What of a note is compared with other notes."""

    core: str
    tokens: tuple[str, ...]  # folded words of the core in their order
    frame: tuple[str, ...]  # the same without articles and without words of change and addition
    names: frozenset[str]  # words written with a capital
    heads: frozenset[str]  # under which it is filed: its first word of content, and names in it
    changes: bool
    adds: bool
    reported: bool  # somebody said it, and the core is what was said
    label: int  # how many words of the frame stand before a colon or the like; 0 without one

    @property
    def head(self) -> str:
        small = vocabulary.NAMING | vocabulary.OWNERS | vocabulary.CHANGES
        return next((word for word in self.frame if word not in small), "")


@lru_cache(maxsize=65_536)
def sentence(text: str) -> Sentence:
    core, reported = core_of(text)
    raw = _TOKEN.findall(core[:LONGEST])
    tokens = tuple(fold(token).replace("’", "'") for token in raw)
    plain = " ".join(tokens)
    changes = not vocabulary.CHANGES.isdisjoint(tokens) or any(
        _holds(plain, phrase) for phrase in vocabulary.CHANGE_PHRASES
    )
    changes = changes or not vocabulary.NEW.isdisjoint(tokens[:4]) or bool(vocabulary.NO_MORE.search(plain))
    tokens = tuple(word for n, word in enumerate(tokens) if word != "noch" or n == 0 or tokens[n - 1] != "nur")
    adds = _adds(tokens) or any(_holds(plain, phrase) for phrase in vocabulary.ADD_PHRASES)
    frame = _frame(plain, tokens)
    names = _names(raw)
    heads = frozenset([*_first(frame, names), *sorted(names)[:6]])
    return Sentence(core, tokens, frame, names, heads, changes and not adds, adds, reported, _label(core))


LONGEST_LABEL = 6  # words


def _label(core: str) -> int:
    """`school of Ana: Northgate`, `car = Zoe`, `flights -> window`: the number of words that are the name of something."""
    mark = _MARK.search(core[:LONGEST])
    before = _TOKEN.findall(core[: mark.start()]) if mark else []
    if not 0 < len(before) <= LONGEST_LABEL:
        return 0
    tokens = tuple(fold(token).replace("’", "'") for token in before)
    return len(_frame(" ".join(tokens), tokens))


def core_of(text: str) -> tuple[str, bool]:
    """The words of a note that say something, and whether somebody is named as having said them."""
    plain = unicodedata.normalize("NFC", " ".join(text[: 2 * LONGEST].split()))
    core = vocabulary.LABEL.sub("", vocabulary.OPENING.sub("", plain, count=1), count=1) or plain
    core = vocabulary.HEARD.sub("", core, count=1)
    said = vocabulary.REPORT.sub("", vocabulary.TOLD.sub(_of_teller, core, count=1), count=1)
    reported = bool(said) and said != core
    core = said if reported else core
    bare = _ASIDE.sub("", core)
    core = bare if len(bare) >= 12 else core
    return core.strip(" .;·"), reported


def _of_teller(told: re.Match[str]) -> str:
    """ "Ana told me she cannot eat soy" says that Ana cannot."""
    return f"{told['who']}'s " if told["own"] else f"{told['who']} "


def _adds(tokens: tuple[str, ...]) -> bool:
    """Whether a word of addition is among them; "every second Saturday" and "second floor" are none."""
    before, after = ("", *tokens), (*tokens[1:], "")
    return any(
        word in vocabulary.ADDS and before[n] not in vocabulary.EVERY and after[n] not in vocabulary.COUNTED
        for n, word in enumerate(tokens)
    )


def _holds(plain: str, phrase: str) -> bool:
    return f" {phrase} " in f" {plain} "


def _frame(plain: str, tokens: tuple[str, ...]) -> tuple[str, ...]:
    gone = {"longer", "anymore"} if "no longer" in plain else set()
    kept = (t for t in tokens if t not in vocabulary.ARTICLES and t not in _SHIFTING and t not in gone)
    return tuple(kept)


_SHIFTING = (
    frozenset(
        "now ahora jetzt maintenant agora currently nowadays actualmente today also too either tambien auch aussi".split()
    )
    | vocabulary.NEW
)


def _names(raw: list[str]) -> frozenset[str]:
    """Words with a capital, also inside ("iPhone"); the first word only if it is none of the small ones."""
    found = {fold(token) for token in raw if len(token) > 1 and any(char.isupper() for char in token[:2])}
    return frozenset(found - vocabulary.ARTICLES - vocabulary.OWNERS - vocabulary.RULES)


def _first(frame: tuple[str, ...], names: frozenset[str]) -> list[str]:
    """The first words of content before the verb, four at most."""
    place = next((n for n, word in enumerate(frame) if n and word not in names and is_any_verb(word)), len(frame))
    if frame[:1] and frame[0] in vocabulary.CHANGES and len(frame) > 1:  # "moved; lives at …": the subject is left out
        place = 2
    kept = [
        word for word in frame[: max(1, place)] if word not in vocabulary.NAMING and word not in _SMALL and word != "'s"
    ]
    # "Ana changed the contact to …": what was changed is what it is about, too.
    after = frame[place + 1 : place + 5] if place < len(frame) and frame[place] in vocabulary.CHANGES else ()
    kept = kept[:4] + [word for word in after if word not in _SMALL and word not in vocabulary.NAMING]
    if not kept:  # "the client has therapy on Mondays" may be told again as "therapy slot is now …"
        topic = [word for word in frame[place + 1 :] if word not in _SMALL and word not in vocabulary.TIES]
        kept = [*frame[:1], *topic[:1]]
    return kept


def is_verb(word: str, *, first: bool = False) -> bool:
    """Whether a folded word looks like the verb of a statement in the present."""
    if word in vocabulary.BE or word in vocabulary.STATIVE:
        return True
    if word in vocabulary.RULES:  # "Tuesdays"
        return False
    return (
        not first and len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "'s")) and word.isalpha()
    )


def is_stated(sentence: Sentence) -> bool:
    """Whether a verb of the present stands early, behind a subject, and no past before it."""
    tokens = sentence.tokens
    verbs = (n for n, word in enumerate(tokens) if word not in sentence.names and is_verb(word, first=n == 0))
    spoken = (n + 1 for n, word in enumerate(tokens[:6]) if word in _SPEAKERS)
    place = min(next(verbs, len(tokens)), next(spoken, len(tokens)))
    if sentence.changes and place > 4:  # "She gave up rowing and plays chess": what is so comes after what was
        return place < min(10, len(tokens))
    return 0 < place < min(7, len(tokens)) and not any(map(is_past, tokens[: place + 1]))


_SPEAKERS = frozenset("we they wir nosotros nous".split())  # what stands behind one of them is the verb


def is_past(word: str) -> bool:
    """Whether a word tells what somebody did once; not a change or decision, whose outcome stays."""
    if word in vocabulary.PAST:
        return True
    return (
        bool(_DONE.match(word))
        and word not in vocabulary.ATTRIBUTES
        and word not in vocabulary.DECISIONS
        and word not in vocabulary.LASTING_PAST
    )


_DONE = re.compile(r"[a-z]{3,}(?:ed|aron|ieron)\Z")


def is_any_verb(word: str) -> bool:
    """A verb of the present, of change, or of the past."""
    return (
        is_verb(word)
        or word in vocabulary.CHANGES
        or word in vocabulary.LASTING_PAST
        or word in vocabulary.PAST
        or bool(_ENDED.match(word))
    )


_ENDED = re.compile(r"[a-z]{3,}ed\Z")


@lru_cache(maxsize=65_536)
def content(sentence: Sentence) -> frozenset[str]:
    """The words that carry what is said: no small words, no verbs of being."""
    short = {w for w in sentence.names if len(w) == 2}  # "CI", "HR"
    return frozenset(
        w for w in sentence.frame if (len(w) > 2 or w in short) and w not in vocabulary.BE and w not in _SMALL
    )


_SMALL = (
    frozenset(
        """and or of to in on at for with by from as that this it not no but so if than into out over under about after before until per via
    de en con por para que se su al del y o mit von zu im am auf fur und oder bei aus et ou dans pour avec sur par em com por its his her
    their has have had was were will would can been being he she they we you i""".split()
    )
    | vocabulary.OWNERS
)


START = 0.4
SURE, POSSIBLE = 0.6, 0.4  # from here on a line needs little, or much, evidence; below, none is enough
_CLOCK = re.compile(r"\b\d{1,2}[:h]\d{2}\b|\b\d{1,2}\.\d{2} ?(?:uhr|h)\b|\b\d{1,2} ?(?:am|pm)\b", re.IGNORECASE)
_NUMBERED = re.compile(r"#\d+|\bv?\d+\.\d+(?:\.\d+)?\b")
_PARTICIPLE = re.compile(r"[a-z]{3,}(?:ad[oa]s?|id[oa]s?)\Z")  # as the first word of a note without a subject
_GOING = re.compile(r"[a-z]{3,}(?:ing|ando|iendo)\Z")
_STAYING = frozenset(
    "dating living studying learning training attending renting viviendo estudiando aprendiendo".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting:
    """The degree, and what spoke for and against it."""

    degree: float
    reasons: tuple[str, ...]


@lru_cache(maxsize=65_536)
def lasting(sentence: Sentence, alike: int = 0, same: int = 0) -> Lasting:
    """`alike` is on how many other days a note was written that differs in one word, `same` in numbers at most."""
    degree, reasons = START, []
    for weight, reason in [*_signs(sentence, alike), *_routine(same)]:
        degree += weight
        reasons.append(f"{reason} ({weight:+.2f})")
    return Lasting(degree=max(0.0, min(1.0, round(degree, 2))), reasons=tuple(reasons))


def _routine(same: int) -> list[tuple[float, str]]:
    """A fact is noted once, twice, three times; what comes day after day is a report or a phrase."""
    weight = min(0.6, 0.2 * (same - 2))
    return [(-weight, f"the same was noted on {same} other days")] if same > 2 else []


def _signs(sentence: Sentence, alike: int) -> list[tuple[float, str]]:
    tokens, found = sentence.tokens, []
    states = is_stated(sentence)
    ruled = not vocabulary.RULES.isdisjoint(tokens)
    if states:
        found.append((0.2, "it states what is so"))
    if not vocabulary.ATTRIBUTES.isdisjoint(tokens) or _labelled(sentence.core):
        found.append((0.25, "it names a lasting attribute"))
    if ruled:
        found.append((0.25, "it speaks of every time"))
    if not vocabulary.DECISIONS.isdisjoint(tokens):
        found.append((0.3, "it tells a decision"))
    if sentence.changes and not vocabulary.LASTING_PAST.isdisjoint(tokens) and not _did(sentence):
        found.append((0.25, "it tells a change that stays"))
    return found + _against(sentence, states=states, ruled=ruled, alike=alike)


def _labelled(core: str) -> bool:
    """`address of Eva: Oak Street 12`: a short name of something, a colon, a value."""
    label, colon, value = core.partition(": ")
    return bool(colon) and 1 < len(label.split()) <= 6 and 0 < len(value.split()) <= 8 and '"' not in value


def _against(sentence: Sentence, *, states: bool, ruled: bool, alike: int) -> list[tuple[float, str]]:
    tokens, found = sentence.tokens, []
    if _momentary(tokens) or vocabulary.UNTIL.search(sentence.core) or vocabulary.SOON.search(sentence.core):
        found.append((-0.6, "it speaks of a moment"))
    if not ruled and _passing(sentence, states=states):
        found.append((-0.3, "it tells a passing state"))
    if _did(sentence) or (sentence.label == 0 and _happened(tokens, states=states)):
        found.append((-0.35, "it tells what happened once"))
    if (tokens and _GOING.match(tokens[0]) and not states and not sentence.label) or _goes_on(tokens):
        found.append((-0.35, "it tells what is going on"))
    if not ruled and not vocabulary.COMING.isdisjoint(tokens[:6]):
        found.append((-0.35, "it tells what is to come"))
    if not states and not ruled and not sentence.label and _CLOCK.search(sentence.core):
        found.append((-0.2, "it names a time of day"))
    if vocabulary.PASSING_THING.search(sentence.core) and not ruled:
        found.append((-0.5, "it is about one of many that come and go"))
    if _NUMBERED.search(sentence.core) and not states:
        found.append((-0.15, "it names a number of something that passes"))
    if len(tokens) < 3 and not sentence.label and not any(len(token) == 1 for token in tokens):
        found.append((-0.2, "it is only a fragment"))
    if alike > 3:
        found.append((-min(0.4, 0.08 * (alike - 3)), f"its like was noted on {alike} other days"))
    return found


def _did(sentence: Sentence) -> bool:
    """ "moved the card to done": a deed without a doer and with an object; "moved; lives in Porto" is none."""
    tokens, core = sentence.tokens, sentence.core
    if (
        not tokens
        or tokens[0] not in vocabulary.PAST & vocabulary.LASTING_PAST
        or not core[len(tokens[0]) :].startswith(" ")
    ):
        return False
    return len(tokens) > 2 and tokens[1] not in vocabulary.TIES


def _momentary(tokens: tuple[str, ...]) -> bool:
    if not vocabulary.MOMENTS.isdisjoint(tokens):
        return True
    after = (*tokens[1:], "", "")
    if any(
        t in vocabulary.TOMORROWS and (n == 0 or tokens[n - 1] not in vocabulary.OF_MORNINGS)
        for n, t in enumerate(tokens)
    ):
        return True
    # "this week" is a moment; "the last Friday of the month" is every month's.
    return any(
        one in vocabulary.THIS_TIME
        and after[n] in vocabulary.SPANS
        and after[n + 1] not in ("of", "de", "del", "des", "im", "du")
        for n, one in enumerate(tokens)
    )


def _passing(sentence: Sentence, *, states: bool) -> bool:
    """A passing state said of somebody: behind a verb of being, at the end of a fragment, or by an adverb that tells it."""
    tokens, stages = sentence.tokens, vocabulary.STAGES - sentence.names
    pairs = pairwise((*tokens, ""))
    if any(one in vocabulary.ADVERBS_OF_STAGE and not (one == "noch" and two.startswith("ein")) for one, two in pairs):
        return True
    for n, word in enumerate(tokens):
        last, before = not states and n + 1 == len(tokens), tokens[max(0, n - 2) : n]
        if word in stages and before[-1:] not in _NONE and (last or not vocabulary.BE.isdisjoint(before)):
            return True
    return False


_NONE = (("no",), ("kein",), ("sin",))  # "no running" is a rule


def _happened(tokens: tuple[str, ...], *, states: bool) -> bool:
    """A past tense among the first words, unless it is one whose outcome stays."""
    if states:
        return False
    early = tokens[:4]
    if not vocabulary.LASTING_PAST.isdisjoint(early) or not vocabulary.DECISIONS.isdisjoint(early):
        return False
    if early[:1] and early[0] in ("he", "ha", "hemos", "han"):  # "he llamado a …"
        early = early[1:]
    return any(map(is_past, early)) or bool(early and _PARTICIPLE.match(early[0]))


def _goes_on(tokens: tuple[str, ...]) -> bool:
    return any(
        one in vocabulary.BE and _GOING.match(other) and other not in _STAYING for one, other in pairwise(tokens[:7])
    )
