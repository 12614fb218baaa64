"""One note taken apart: its core words, whom it is about, what in it means change or addition, and how lasting it is.

Promise: pure, in linear time, for any language that puts blanks between words and, more coarsely, for those that do
not; the same text gives the same Sentence. What was said around the core (a label, "she told me that", a remark in
parentheses at the end) is not part of it. How lasting it is, is a number from 0 to 1 with the reasons for it: no list of
things worth keeping, only of how people speak of what stays and of what passes.
Not here: whether a note replaces another (compare), shapes that are junk in any case and recalls (dream).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from anima.text import DENSE, fold, one_line, read_table, stem, word_set

# Words and wordings that tell what sort of sentence a note is, in a handful of languages.
_WORDS = read_table("text", "words")
_TABLE = _WORDS["note"]


def _set(name: str) -> frozenset[str]:
    return word_set(_TABLE[name])


def _wording(name: str) -> re.Pattern[str]:
    return re.compile(one_line(_WORDS["patterns"][name]))


ARTICLES, OWNERS, NAMING = _set("articles"), _set("owners"), _set("naming")
BE, STATIVE, LOOSE, LOOSEST = _set("be"), _set("stative"), _set("loose"), _set("loosest")
PLAIN = BE | LOOSE | _set("plain")
RULES, ALWAYS, DECISIONS, ATTRIBUTES = _set("rules"), _set("always"), _set("decisions"), _set("attributes")
KIN, SORTS, TIES, PLACES = _set("kin"), _set("sorts"), _set("ties"), _set("places")
MOMENTS, TOMORROWS, OF_MORNINGS = _set("moments"), _set("tomorrows"), _set("of_mornings")
THIS_TIME, SPANS = _set("this_time"), _set("spans")
CALENDAR = frozenset(map(stem, _set("calendar")))
STAGES, ADVERBS_OF_STAGE = _set("stages"), _set("adverbs_of_stage")
PAST, LASTING_PAST, COMING = _set("past"), _set("lasting_past"), _set("coming")
CHANGES, NEW, ADDS, EVERY, COUNTED = _set("changes"), _set("new"), _set("adds"), _set("every"), _set("counted")
CHANGE_PHRASES, ADD_PHRASES = tuple[str, ...](_TABLE["change_phrases"]), tuple[str, ...](_TABLE["add_phrases"])
DENIED = tuple[str, ...](_TABLE["denied"])
SAME_ATTRIBUTE = tuple(map(word_set, _TABLE["same_attribute"]))
LABEL, OPENING, HEARD, TOLD, REPORT = map(_wording, ("label", "opening", "heard", "told", "report"))
NO_MORE, DENIAL, UNTIL, SOON = map(_wording, ("no_more", "denial", "until", "soon"))
PASSING_THING = _wording("passing_thing")
SPEAKERS, NONE, OF, DOING, DENIALS = map(_set, ("speakers", "none", "of", "doing", "denials"))
NEUTRAL = _set("neutral") | DOING
SMALL, SHIFTING = _set("small") | OWNERS, _set("shifting") | NEW | ARTICLES
ENDURING, OF_PAST = ATTRIBUTES | DECISIONS | LASTING_PAST, CHANGES | LASTING_PAST | PAST
_NOTHING = SMALL | NAMING | BE
_SEVERAL, _SEVERAL_WORDS = tuple(_TABLE["several"].split()), _set("several_words")


def is_several(word: str) -> bool:
    """Whether a word is for what one may have several of."""
    return word in _SEVERAL_WORDS or word.startswith(_SEVERAL)


# -- a note taken apart ---------------------------------------------------------------------------------------------------

LONGEST = 600  # characters of a note that are looked at
LONGEST_LABEL = 6  # words
_TOKEN = re.compile(rf"[{DENSE}]|['’]s\b|[^\W_{DENSE}]+(?:[.:,'’/@-](?!s\b)[^\W_{DENSE}]+)*")
_MARK = re.compile(r"\s*(?::|=|->|→|=>)\s+|\s+[-–—]\s+")
_WORD = re.compile(r"[^\W_]+(?:[.:'’/@-][^\W_]+)*")
_ASIDE = re.compile(r"\s*[(（\[][^()（）\[\]]{0,80}[)）\]]\s*[.!]?\s*\Z")


@dataclass(frozen=True, eq=False)  # kept by `sentence`, so that one text is one object
class Sentence:
    """What of a note is compared with other notes."""

    core: str
    tokens: tuple[str, ...]  # folded words of the core in their order
    frame: tuple[str, ...]  # the same without articles and without words of change and addition
    names: frozenset[str]  # words written with a capital
    changes: bool
    adds: bool
    label: int  # how many words of the frame stand before a colon or the like; 0 without one

    @cached_property
    def head(self) -> str:
        return next((word for word in self.frame if word not in NAMING | OWNERS | CHANGES), "")

    @cached_property
    def heads(self) -> frozenset[str]:
        """Under which it is filed: the first words of content, as what a note is about stands early in it, and names."""
        early = [word for word in self.frame[:6] if word not in _NOTHING and word != "'s"]
        return frozenset([*(early[:4] or self.frame[:1]), *sorted(self.names)[:6]])

    @cached_property
    def content(self) -> frozenset[str]:
        """The words that carry what is said, and every number: no small words, no verbs of being."""
        short = {w for w in self.names if len(w) == 2}  # "CI", "HR"
        told = (w for w in self.frame if len(w) > 2 or w in short or has_digit(w))
        return frozenset(told) - BE - SMALL

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of all but the words that two notes of one fact may choose between; "before" is not "after"."""
        return stemmed(frozenset(self.frame) - NEUTRAL - BE)

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of those, without verbs of what stays so and of what changes."""
        return stemmed(self.content - ((STATIVE | CHANGES) - self.names))

    @cached_property
    def subject(self) -> frozenset[str]:
        """The words of content before the verb."""
        words = [*enumerate(self.frame)][1:]
        place = next((n for n, word in words if word not in self.names and is_any_verb(word)), 0)
        if self.label:
            place = min(place or self.label, self.label)
        elif not place:  # "standup at nine": no verb, but a word that ends the subject
            place = next((n for n, word in words if word in TIES), 0)
        return self.content & frozenset(self.frame[:place] if place else self.frame)

    @cached_property
    def denied(self) -> frozenset[str]:
        """The stems of the words that it says are no longer so: what stands behind "no longer" in its clause."""
        clauses = DENIAL.findall(self.core[:LONGEST])
        words = {fold(word) for clause in clauses for word in _WORD.findall(clause)}
        return stemmed(frozenset(word for word in words if len(word) > 2)) - ARTICLES - {"mehr"}

    @cached_property
    def negated(self) -> bool:
        return _holds(" ".join(self.tokens), DENIED)


@lru_cache(maxsize=65_536)
def sentence(text: str) -> Sentence:
    core = core_of(text)
    raw = _TOKEN.findall(core[:LONGEST])
    tokens = _folded(raw)
    plain = " ".join(tokens)
    changes = not CHANGES.isdisjoint(tokens) or _holds(plain, CHANGE_PHRASES)
    changes = changes or not NEW.isdisjoint(tokens[:4]) or bool(NO_MORE.search(plain))
    tokens = tuple(word for n, word in enumerate(tokens) if word != "noch" or n == 0 or tokens[n - 1] != "nur")
    # A word of addition is among them; "every second Saturday" and "second floor" are none.
    around = zip(("", *tokens), tokens, (*tokens[1:], ""), strict=False)
    adds = any(word in ADDS and before not in EVERY and after not in COUNTED for before, word, after in around)
    adds = adds or _holds(plain, ADD_PHRASES)
    # Words with a capital, also inside ("iPhone"); the first word only if it is none of the small ones.
    names = {fold(token) for token in raw if len(token) > 1 and any(char.isupper() for char in token[:2])}
    names -= ARTICLES | OWNERS | RULES
    # `school of Ana: Northgate`, `car = Zoe`, `flights -> window`: the number of words that are the name of something.
    mark = _MARK.search(core[:LONGEST])
    before = _TOKEN.findall(core[: mark.start()]) if mark else []
    label = len(_frame(_folded(before))) if len(before) <= LONGEST_LABEL else 0
    return Sentence(core, tokens, _frame(tokens), frozenset(names), changes and not adds, adds, label)


def has_digit(word: str) -> bool:
    return any(char.isdigit() for char in word)


def _folded(raw: Iterable[str]) -> tuple[str, ...]:
    return tuple(fold(token).replace("’", "'") for token in raw)


def _frame(tokens: tuple[str, ...]) -> tuple[str, ...]:
    gone = {"longer", "anymore"} if ("no", "longer") in pairwise(tokens) else set()
    return tuple(token for token in tokens if token not in SHIFTING and token not in gone)


def core_of(text: str) -> str:
    """The words of a note that say something, without who said them to whom."""
    plain = unicodedata.normalize("NFC", " ".join(text[: 2 * LONGEST].split()))
    core = LABEL.sub("", OPENING.sub("", plain, count=1), count=1) or plain
    core = HEARD.sub("", core, count=1)
    # "Ana told me she cannot eat soy" says that Ana cannot.
    own = TOLD.sub(lambda told: f"{told['who']}'s " if told["own"] else f"{told['who']} ", core, count=1)
    core = REPORT.sub("", own, count=1) or core
    bare = _ASIDE.sub("", core)
    return (bare if len(bare) >= 12 else core).strip(" .;·")


def _holds(plain: str, phrases: Iterable[str]) -> bool:
    return any(f" {phrase} " in f" {plain} " for phrase in phrases)


def is_verb(word: str, *, first: bool = False) -> bool:
    """Whether a folded word looks like the verb of a statement in the present."""
    if word in BE or word in STATIVE:
        return True
    third_person = word.endswith("s") and not word.endswith(("ss", "us", "'s")) and len(word) > 3 and word.isalpha()
    return third_person and not first and word not in RULES  # "Tuesdays"


def is_stated(sentence: Sentence) -> bool:
    """Whether a verb of the present stands early, behind a subject, and no past before it."""
    tokens = sentence.tokens
    verbs = (n for n, word in enumerate(tokens) if word not in sentence.names and is_verb(word, first=n == 0))
    spoken = (n + 1 for n, word in enumerate(tokens[:6]) if word in SPEAKERS)
    place = min(next(verbs, len(tokens)), next(spoken, len(tokens)))
    if sentence.changes and place > 4:  # "She gave up rowing and plays chess": what is so comes after what was
        return place < min(10, len(tokens))
    return 0 < place < min(7, len(tokens)) and not any(map(is_past, tokens[: place + 1]))


def is_past(word: str) -> bool:
    """Whether a word tells what somebody did once; not a change or decision, whose outcome stays."""
    return word in PAST or (bool(_DONE.match(word)) and word not in ENDURING)


def is_any_verb(word: str) -> bool:
    """A verb of the present, of change, or of the past."""
    return is_verb(word) or word in OF_PAST or (bool(_DONE.match(word)) and word.endswith("ed"))


@lru_cache(maxsize=65_536)
def stemmed(found: frozenset[str]) -> frozenset[str]:
    return frozenset(map(stem, found))


START = 0.4
_DONE = re.compile(r"[a-z]{3,}(?:ed|aron|ieron)\Z")
SURE, POSSIBLE = 0.6, 0.4  # from here on a line needs little, or much, evidence; below, none is enough
_CLOCK = re.compile(r"\b\d{1,2}[:h]\d{2}\b|\b\d{1,2}\.\d{2} ?(?:uhr|h)\b|\b\d{1,2} ?(?:am|pm)\b", re.IGNORECASE)
_NUMBERED = re.compile(r"#\d+|\bv?\d+\.\d+(?:\.\d+)?\b")
_PARTICIPLE = re.compile(r"[a-z]{3,}(?:ad[oa]s?|id[oa]s?)\Z")  # as the first word of a note without a subject
_GOING = re.compile(r"[a-z]{3,}(?:ing|ando|iendo)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting:
    """The degree, and what spoke for and against it."""

    degree: float
    reasons: tuple[str, ...]


@lru_cache(maxsize=65_536)
def lasting(sentence: Sentence, alike: int = 0, same: int = 0) -> Lasting:
    """`alike` is on how many other days a note was written that differs in one word, `same` in numbers at most."""
    core, tokens, label = sentence.core, sentence.tokens, sentence.label
    states, did, ruled = is_stated(sentence), _did(sentence), not RULES.isdisjoint(tokens)
    # `address of Eva: Oak Street 12`: a short name of something, a colon, a value.
    name, colon, value = core.partition(": ")
    labelled = bool(colon) and 1 < len(name.split()) <= 6 and 0 < len(value.split()) <= 8 and '"' not in value
    changed = sentence.changes and not LASTING_PAST.isdisjoint(tokens) and not did
    momentary = _momentary(tokens) or UNTIL.search(core) or SOON.search(core)
    going = bool(tokens) and _GOING.match(tokens[0]) and not states and not label
    timed = not states and not ruled and not label and _CLOCK.search(core)
    fragment = len(tokens) < 3 and not label and not any(len(token) == 1 for token in tokens)
    signs = (
        (0.2, "it states what is so", states),
        (0.25, "it names a lasting attribute", labelled or not ATTRIBUTES.isdisjoint(tokens)),
        (0.25, "it speaks of every time", ruled),
        (0.3, "it tells a decision", not DECISIONS.isdisjoint(tokens)),
        (0.25, "it tells a change that stays", changed),
        (-0.6, "it speaks of a moment", momentary),
        (-0.3, "it tells a passing state", not ruled and _passing(sentence, states=states)),
        (-0.35, "it tells what happened once", did or (label == 0 and _happened(tokens, states=states))),
        (-0.35, "it tells what is going on", going),
        (-0.35, "it tells what is to come", not ruled and not COMING.isdisjoint(tokens[:6])),
        (-0.2, "it names a time of day", timed),
        (-0.5, "it is about one of many that come and go", not ruled and PASSING_THING.search(core)),
        (-0.15, "it names a number of something that passes", not states and _NUMBERED.search(core)),
        (-0.2, "it is only a fragment", fragment),
        (-min(0.4, 0.08 * (alike - 3)), f"its like was noted on {alike} other days", alike > 3),
        # A fact is noted once, twice, three times; what comes day after day is a report or a phrase.
        (-min(0.6, 0.2 * (same - 2)), f"the same was noted on {same} other days", same > 2),
    )
    degree = START + sum(weight for weight, _, holds in signs if holds)
    reasons = tuple(f"{reason} ({weight:+.2f})" for weight, reason, holds in signs if holds)
    return Lasting(degree=max(0.0, min(1.0, round(degree, 2))), reasons=reasons)


def _did(sentence: Sentence) -> bool:
    """ "moved the card to done": a deed without a doer and with an object; "moved; lives in Porto" is none."""
    first, second, *rest = (*sentence.tokens, "", "")
    deed = first in PAST & LASTING_PAST and sentence.core[len(first) :].startswith(" ")
    return deed and len(rest) > 2 and second not in TIES


def _momentary(tokens: tuple[str, ...]) -> bool:
    if not MOMENTS.isdisjoint(tokens):
        return True
    for before, word, one, two in zip(("", *tokens), tokens, (*tokens[1:], ""), (*tokens[2:], "", ""), strict=False):
        if word in TOMORROWS and before not in OF_MORNINGS:
            return True
        # "this week" is a moment; "the last Friday of the month" is every month's.
        if word in THIS_TIME and one in SPANS and two not in OF:
            return True
    return False


def _passing(sentence: Sentence, *, states: bool) -> bool:
    """A passing state said of somebody: behind a verb of being, at the end of a fragment, or by an adverb that tells it."""
    tokens, stages = sentence.tokens, STAGES - sentence.names
    pairs = pairwise((*tokens, ""))
    if any(one in ADVERBS_OF_STAGE and not (one == "noch" and two.startswith("ein")) for one, two in pairs):
        return True
    for n, word in enumerate(tokens):
        last, before = not states and n + 1 == len(tokens), tokens[max(0, n - 2) : n]
        if word in stages and not (before and before[-1] in NONE) and (last or not BE.isdisjoint(before)):
            return True
    return False


def _happened(tokens: tuple[str, ...], *, states: bool) -> bool:
    """A past tense among the first words, unless it is one whose outcome stays."""
    if states:
        return False
    early = tokens[:4]
    if not LASTING_PAST.isdisjoint(early) or not DECISIONS.isdisjoint(early):
        return False
    if early[:1] and early[0] in ("he", "ha", "hemos", "han"):  # "he llamado a …"
        early = early[1:]
    return any(map(is_past, early)) or bool(early and _PARTICIPLE.match(early[0]))
