"""One note taken apart, and two compared: whether they say the same, whether one replaces the other or adds to it, or neither.

Promise: pure, in linear time, in any language, more coarsely where no blanks part words; the same text gives the same
Sentence. What was said around the core (a label, "she told me that", a remark in parentheses at the end) is not part of it.
How lasting it is, is a number from 0 to 1 with the reasons for it: how people speak of what stays and of what passes. A newer
note replaces an older one only when it is about the same subject and the same thing, and only the value differs.
Not here: what follows from it (dream, text.pages), shapes that are junk in any case, lines of which one may go (upkeep).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import pairwise

from anima.text import DENSE, fold, one_line, read_table, stem, word_set
from anima.text.reading import signs

# Words and wordings that tell what sort of sentence a note is, in a handful of languages.
_WORDS = read_table("text", "words")
_TABLE, NAMES = _WORDS["note"], _WORDS["names"]


def _sets(names: str) -> Iterable[frozenset[str]]:
    return (word_set(_TABLE[name]) for name in names.split())


def _wording(name: str) -> re.Pattern[str]:
    return re.compile(one_line(_WORDS["patterns"][name]))


ARTICLES, OWNERS, NAMING, BE, STATIVE, LOOSE, LOOSEST = _sets("articles owners naming be stative loose loosest")
RULES, ALWAYS, DECISIONS, ATTRIBUTES, KIN, SORTS = _sets("rules always decisions attributes kin sorts")
TIES, PLACES, MOMENTS, TOMORROWS, OF_MORNINGS = _sets("ties places moments tomorrows of_mornings")
THIS_TIME, SPANS, STAGES, ADVERBS_OF_STAGE, PAST = _sets("this_time spans stages adverbs_of_stage past")
LASTING_PAST, COMING, CHANGES, NEW, ADDS, EVERY = _sets("lasting_past coming changes new adds every")
COUNTED, SPEAKERS, NONE, OF, WHOSE, DOING, DENIALS = _sets("counted speakers none of whose doing denials")
_PLAIN, _NEUTRAL, _SMALL, _SHIFTING, _CALENDAR = _sets("plain neutral small shifting calendar")
CHANGE_PHRASES, ADD_PHRASES, DENIED = _TABLE["change_phrases"], _TABLE["add_phrases"], _TABLE["denied"]
SAME_ATTRIBUTE = tuple(map(word_set, _TABLE["same_attribute"]))
LABEL, OPENING, HEARD, TOLD, REPORT = map(_wording, ("label", "opening", "heard", "told", "report"))
NO_MORE, DENIAL, UNTIL, SOON, PASSING_THING = map(_wording, ("no_more", "denial", "until", "soon", "passing_thing"))
PLAIN, NEUTRAL, SMALL, SHIFTING = BE | LOOSE | _PLAIN, _NEUTRAL | DOING, _SMALL | OWNERS, _SHIFTING | NEW | ARTICLES
ENDURING, OF_PAST = ATTRIBUTES | DECISIONS | LASTING_PAST, CHANGES | LASTING_PAST | PAST
CALENDAR, _NOTHING = frozenset(map(stem, _CALENDAR)), SMALL | NAMING | BE
_SEVERAL, _SEVERAL_WORDS = tuple(_TABLE["several"].split()), word_set(_TABLE["several_words"])


def is_several(word: str) -> bool:
    """Whether a word is for what one may have several of."""
    return word in _SEVERAL_WORDS or word.startswith(_SEVERAL)


# -- a note taken apart ---------------------------------------------------------------------------------------------------

LONGEST = 600  # characters of a note that are looked at
LONGEST_LABEL = 6  # words
_MARK, _WORD, _ASIDE = map(_wording, ("mark", "word", "aside"))
_TOKEN = re.compile(rf"[{DENSE}]|['’]s\b|[^\W_{DENSE}]+(?:[.:,'’/@-](?!s\b)[^\W_{DENSE}]+)*")


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
    signs: tuple[str, ...]  # what of the core is no plain word
    key: tuple[str, ...]  # the frame and the signs: what notes that say the same have in common

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
    def words(self) -> tuple[str, ...]:
        """The stems, in their order, of all but the words that two notes of one fact may choose between: not "before"."""
        return tuple([stem(word) for word in self.frame if word not in NEUTRAL and word not in BE])

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
    frame, marked, changes = _frame(tokens), signs(core), changes and not adds
    return Sentence(core, tokens, frame, frozenset(names), changes, adds, label, marked, (*frame, *marked))


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


_DONE, _CLOCK, _NUMBERED, _PARTICIPLE, _GOING = map(_wording, ("done", "clock", "numbered", "participle", "going"))
START = 0.4
SURE, POSSIBLE = 0.6, 0.4  # from here on a line needs little, or much, evidence; below, none is enough


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
    for n in (n for n, word in enumerate(tokens) if word in stages):
        last, before = not states and n + 1 == len(tokens), tokens[max(0, n - 2) : n]
        if not (before and before[-1] in NONE) and (last or not BE.isdisjoint(before)):
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


# -- two notes compared ----------------------------------------------------------------------------------------------------

LONGEST_VALUE = 7  # words
ENOUGH = 2  # signs that a note without a verb has another value of the same thing
FOR_LIFE = next(n for n, row in enumerate(SAME_ATTRIBUTE) if "born" in row)  # nobody is born a second time
HOME = next(n for n, row in enumerate(SAME_ATTRIBUTE) if "lives" in row)  # nobody has two by mistake
_VERBS, _TIMES = BE | STATIVE, CALENDAR | frozenset(map(stem, SPANS))
_NO_TOPIC = NAMING | OWNERS | RULES | DECISIONS | BE | SORTS | TIES | {"'s"}


class Relation(StrEnum):
    SAME = "same"
    REPLACES = "replaces"
    ADDS = "adds"


def same_words(one: Sentence, other: Sentence) -> bool:
    """Whether two say the same in the same words but for small ones and plurals, with no sign, denial or tense apart."""
    apart = {*one.tokens} ^ {*other.tokens}
    if not one.words or (one.words, one.negated, one.signs) != (other.words, other.negated, other.signs):
        return False
    ends = [word for word in apart - NEUTRAL if word.endswith(("n't", "ed", "er", "est"))]
    if ends or not apart.isdisjoint(DENIALS | DOING):
        return False
    return _may_be_one(one, other)  # to live somewhere is not to work there


@lru_cache(maxsize=262_144)
def says_too(one: Sentence, other: Sentence) -> bool:
    """Whether two sentences claim the same of the same in other words, so that recalls of one speak for both: without
    whom they are about, and without the nouns that any wording may choose."""
    mine, yours = (each.stems - stemmed(frozenset({each.head}) | ATTRIBUTES | NAMING) for each in (one, other))
    nested = bool(mine and yours) and (mine <= yours or yours <= mine)
    return nested and one.negated == other.negated and _same_subject(one, other) and _may_be_one(one, other)


def value_of(old: Sentence, new: Sentence) -> frozenset[str]:
    """The words in which the older one differs: what it claimed and is no longer so."""
    return old.stems - (new.stems - new.denied) - {stem(old.head)}


def is_paraphrase(one: Sentence, other: Sentence, value: frozenset[str], rare: Callable[[str], bool]) -> bool:
    """Whether a sentence claims in other words what another claimed: by the value that both name, and what else they
    share. `rare` says of a word that few notes have it, so that it alone points to one fact."""
    here, subject = other.stems, other.subject & (other.names | KIN)
    named = value & here
    if not named or 2 * len(named) < len(value) or (subject and not stemmed(subject) & one.stems):
        return False  # or it is about somebody or something that the first does not name
    theirs = (frozenset(other.tokens) - set(one.tokens)) | (one.subject - set(other.tokens))
    front, back = _shared_ends(one.frame, other.frame)
    if theirs & KIN or (front and not _VERBS.isdisjoint(one.frame[len(one.frame) - back :])):
        return False  # one sentence but for what stands before the verb: the same said of something else
    if not _may_be_one(one, other):
        return False
    mine, yours = _attributes(one, other)
    topic = (one.stems & here) - value
    if topic - {stem(one.head)} or (topic and (len(named) > 1 or mine & yours)):
        return True
    if _same_subject(one, other) and value <= here and value - CALENDAR:
        return True
    # A name that few notes have points to one fact; a number does when the subject is the same.
    alone = named - CALENDAR
    if not topic and not mine & yours:
        alone -= stemmed(other.subject)  # it says something of the value, not that it is one
    return any(rare(word) and (not word[0].isdigit() or (topic and len(word) > 2)) for word in alone)


def _same_subject(one: Sentence, other: Sentence) -> bool:
    """Whether two sentences are about the same: what stands before the verb of one stands there in the other, too."""
    mine, yours = one.subject, other.subject
    if (mine ^ yours) & KIN:
        return False  # Ana's sister is not Ana
    return bool(mine) and bool(yours) and (mine <= yours or yours <= mine)


@lru_cache(maxsize=262_144)
def _attributes(one: Sentence, other: Sentence) -> tuple[frozenset[int], frozenset[int]]:
    """Which of the known attributes each speaks of, apart from words for the same one that both are about."""
    common = one.subject & other.subject & KIN
    told = (frozenset(each.tokens) - common for each in (one, other))
    mine, yours = (frozenset(n for n, row in enumerate(SAME_ATTRIBUTE) if row & words) for words in told)
    return mine, yours


def _may_be_one(one: Sentence, other: Sentence) -> bool:
    """Whether two may be about one attribute: unless each speaks of known ones, and none is the same."""
    mine, yours = _attributes(one, other)
    return not mine or not yours or bool(mine & yours)


def _shared_ends(a: Sequence[str], b: Sequence[str]) -> tuple[int, int]:
    """How many of the first words, and how many of the last of the others, are the same."""

    def shared(a: Sequence[str], b: Sequence[str]) -> int:
        return next((n for n, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))

    front = shared(a, b)
    return front, shared(a[front:][::-1], b[front:][::-1])


@lru_cache(maxsize=262_144)
def relation(old: Sentence, new: Sentence, *, together: bool = False, crowded: bool = True) -> Relation | None:
    """What `new` is to `old`. `together` says whether searches that found one also found the other; `crowded`, whether
    other things are said of what they are about, as of a person; of a standup or a dentist there is one thing to say."""
    if old.frame == new.frame:
        return Relation.SAME if old.negated == new.negated and old.signs == new.signs else None
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
        b = b[1:] if len(b) > 2 and b[0] in CHANGES else b  # without a bare "moved;" or "changed:"
        front, back = _shared_ends(a, b)
        self.old, self.new, self.start, self.end = old, new, a[:front], a[len(a) - back :]
        self.gone, self.come = a[front : len(a) - back], b[front : len(b) - back]
        self.verbs = [word for n, word in enumerate(self.start) if n and word not in old.names and is_verb(word)]

    def relation(self, together: bool, crowded: bool) -> Relation | None:
        """The same sentence but for one run of words behind what it is about."""
        old, new, start, gone, come = self.old, self.new, self.start, self.gone, self.come
        if not gone or not come or max(len(gone), len(come)) > LONGEST_VALUE or "'s" in (gone[0], come[0]):
            return None
        if (frozenset(gone) ^ frozenset(come)) & ((KIN - old.names - new.names) | NAMING):
            return None  # of somebody else
        before_thing = bool(start) and start[-1] not in BE | TIES  # else there is a value
        if not 0 < old.label <= len(start) and before_thing and _tied(gone) and _tied(come):
            return None  # "moved | the demo to May" and "moved | the party to June": of something else
        mine, yours = _attributes(old, new)
        told = together + bool(mine & yours)
        # A script without blanks, where a word is a character: three shared ones are a subject and a verb.
        dense = len(start) >= 3 and all(len(word) == 1 for word in start)
        if not self.verbs and not dense:
            return self._by_topic(told, crowded)
        if old.adds or new.adds or self._several() or (start[:1] and start[0] in ALWAYS and not new.changes):
            return Relation.ADDS if not new.changes else Relation.REPLACES
        at_verb = bool(self.verbs) and start[-1] == self.verbs[-1] and not self.end
        bare = at_verb and self.verbs[-1] in LOOSEST
        if not new.changes and at_verb and not self._same_slot():
            return None
        one_thing = not bare or (not crowded and self.verbs[-1] in BE)
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
        if old.adds or new.adds or any(map(is_several, (*start, *self.end))):
            return Relation.ADDS if not new.changes else Relation.REPLACES
        one_thing = len(topic) > 1 or not crowded
        labelled = 0 < old.label <= len(start) and (old.label == new.label or (new.changes and not new.label))
        lone_name = len(topic) == 1 and topic[0] in old.names  # may be a person, of whom a label says no attribute
        closing = start[-2 if start[-1] in OWNERS and len(start) > 1 else -1]
        signs = (
            len(topic) > 1,
            labelled or closing in TIES,
            labelled and not lone_name,
            any(map(_is_topic, self.end)),
            self._alike(),
            new.changes,
        )
        return Relation.REPLACES if one_thing and sum(signs) + told >= ENOUGH else None

    def _is_part(self, one: Sentence, value: tuple[str, ...], label: int) -> bool:
        """Whether the differing words are part of what one is about, or of what is claimed: a verb or the label's end is there."""
        if one.label and (one.label == label or one.label > len(self.start)):
            return one.label > len(self.start)
        return (is_any_verb(value[0]) and value[0] not in one.names) or not _VERBS.isdisjoint({*value} - one.names)

    def _same_slot(self) -> bool:
        """Whether two values hang on a verb in the same way: "works at …" and "works from …" are two things to say."""
        one, other = (word if word in TIES else "" for word in (self.gone[0], self.come[0]))
        if one == other or {one, other} <= PLACES or self.verbs[-1] in BE:
            return True
        # "lives with her parents in Lima" and "lives in Cusco" are two homes, and nobody has two by mistake.
        return HOME in _attributes(self.old, self.new)[0] and not any(map(PLACES.isdisjoint, (self.gone, self.come)))

    def _several(self) -> bool:
        """Whether they tell of something one may have several of; not only of such a one: "my sister is reachable on …"."""
        start, verbs = self.start, self.verbs
        named = not verbs or start[-1] in (verbs[-1], "called", "named", "heisst", "llama")
        told = start[1:] if named else start[max(1, start.index(verbs[-1])) :]
        return any(map(is_several, (*told, *self.end)))

    def _is_tight(self) -> bool:
        """Whether the frame says more than "somebody uses …": an attribute by name, or words behind the value."""
        start, verb = self.start, self.verbs[-1]
        if any(len(word) > 2 for word in self.end if word not in BE) or verb not in LOOSE or start[-1] != verb:
            return True  # it goes on behind the verb, too: "is at", "is called", "uses … for"
        if sum(len(word) > 2 and word not in NAMING for word in start) >= 4:
            return True  # a beginning that says this much is about one thing
        before = start[: start.index(verb)]
        return verb in BE and before[-1] not in KIN and not WHOSE.isdisjoint(before)

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
    if first[0].isdigit() or first in TIES or stem(first) in _TIMES:
        return 0
    return next((n for n, word in enumerate(words[:-1]) if n and word in TIES), 0)


def _changed(sentence: Sentence) -> frozenset[str]:
    """What a sentence says was changed, in "Ana moved the dentist to Monday" the dentist: the thing it speaks of."""
    frame = sentence.frame
    place = next((n + 1 for n, word in enumerate(frame) if n and word in CHANGES), len(frame))
    return sentence.content & frozenset(frame[place : place + _tied(frame[place:])])


def _says_otherwise(old: Sentence, new: Sentence, together: bool, crowded: bool) -> bool:
    """A sentence of change about the same subject, and about the same attribute or the very value that was."""
    if not _same_subject(old, new):
        return False
    common, (mine, yours), changed = old.subject & new.subject, _attributes(old, new), stemmed(_changed(new))
    if FOR_LIFE in mine or not _may_be_one(old, new):
        return False
    thing = stemmed((old.subject - common) | _changed(old))
    if changed and thing and not (changed <= thing or thing <= changed):
        return False  # what was changed is something else than the older one speaks of
    if any(map(is_several, old.frame[1:])) and not new.negated:
        return False
    gone = new.denied - stemmed(STATIVE)
    if gone and not gone & old.stems and HOME not in mine & yours:
        return False  # it says what is no longer so, and that is something else
    if mine & yours or (old.stems & new.stems) - stemmed(common | NAMING):
        return True
    if changed and not changed & old.stems:
        return False
    # Or they are about just the same, and neither has a verb of its own that claims something else.
    claimed = STATIVE.intersection(new.frame) - new.names
    was = next((word for n, word in enumerate(old.frame) if n and word not in old.names and is_verb(word)), "is")
    is_one = old.subject == new.subject and claimed <= {*old.frame} and (was in PLAIN or was in new.frame)
    return together or (not crowded and is_one)


def _denies(old: Sentence, new: Sentence) -> bool:
    """Whether the newer one says in so many words that what the older one says is no longer so."""
    gone, here = new.denied - stemmed((STATIVE | TIES) - old.names), old.stems
    if not gone & here or not (gone <= here or gone & here & stemmed(old.names)):
        return False
    return bool((stemmed(new.heads) & here) - gone)
