"""A note as a sentence: its core words, whom it is about, and the words in it that mean change or addition.

Promise: pure, in linear time, for any language that puts blanks between words and, more coarsely, for those that do
not; the same text gives the same Sentence. What was said around the core (a label, "she told me that", a remark in
parentheses at the end) is not part of it. Not here: whether a note lasts (lasting), or replaces another (changes).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from anima.text import vocabulary
from anima.text.words import fold

LONGEST = 600  # characters of a note that are looked at
_DENSE = "\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff"
_TOKEN = re.compile(rf"[{_DENSE}]|['’]s\b|[^\W_{_DENSE}]+(?:[.:,'’/@-](?!s\b)[^\W_{_DENSE}]+)*")
_LABEL = re.compile(
    r"(?i)\A(?:(?:fyi|note to self|note|nota|notiz|hinweis|good to know|info|update|actualización|reminder|remember|recuerda|fact|"
    r"decision|entscheidung|decisión|learned|learnt|heads[- ]up|important|wichtig|importante|apparently|turns out|por cierto|übrigens)"
    r"\s*(?:[:,–—-]+|\bthat\b|\bque\b|\bdass\b)?\s+)+(?:that\s+|que\s+|dass\s+)?"
)
_OPENING = re.compile(
    r"(?i)\A(?:so|well|oh|ah|ok(?:ay)?|btw|by the way|anyway|pues|bueno|oye|por cierto|na ja|übrigens|alors|bon|au fait)"
    r"\s*,?\s+(?=\w)"
)
# How somebody says that they came to know something: none of it is what they know.
_HEARD = re.compile(
    r"(?i)\A(?:(?:i|we)\s+(?:just\s+|have\s+|recently\s+)?(?:was told|were told|been told|learned|learnt|found out|heard|discovered|gather|"
    r"keep hearing|understand|noticed|realised|realized)|(?:i|we)['’]ve\s+(?:just\s+)?(?:been told|learned|learnt|heard|found out)|"
    r"me (?:dijeron|contaron|han dicho|han contado|enteré de)|he sabido|supe|acabo de saber|ich habe (?:gehört|erfahren|gelernt)|"
    r"mir wurde (?:gesagt|erzählt)|j['’]ai (?:appris|entendu)|on m['’]a dit)"
    r"(?:\s+(?:today|yesterday|again|just now|hoy|ayer|heute|gestern))?\s*,?\s+(?:that\s+|que\s+|dass\s+)?(?=\w)"
)
_TOLD = re.compile(
    r"(?i)\A(?P<who>[\w'’.-]+(?:\s+[\w'’.-]+)?)\s+(?:just\s+)?(?:told me|told us|mentioned|said|says|me dijo|dijo|sagte|sagt)"
    r"(?:\s+(?:today|yesterday|again|hoy|ayer|heute|gestern))?\s*,?\s+(?:(?:that|que|dass)\s+)?"
    r"(?:(?P<own>his|her|their)\s+|(?:he|she|they|er|sie)(?:\s+|(?=['’]s\b)))"
)
_NO_MORE = re.compile(r"\bkein\w* (?:\S+ ){1,4}mehr\b")
_MARK = re.compile(r"\s*(?::|=|->|→|=>)\s+|\s+[-–—]\s+")
_REPORT = re.compile(
    r"(?i)\A\W*(?:[\w'’.-]+\s+){1,3}?(?:just\s+|today\s+|again\s+)?"
    r"(?:told me|told us|mentioned|confirmed|explained|let me know|said|says|comentó|mencionó|dijo|me dijo|sagte|erwähnte)"
    r"(?:\s+(?:today|yesterday|again|hoy|ayer|heute|gestern))?\s*,?\s+(?:that|que|dass)\s+"
)
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
    changes = changes or not vocabulary.NEW.isdisjoint(tokens[:4]) or bool(_NO_MORE.search(plain))
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
    core = _LABEL.sub("", _OPENING.sub("", plain, count=1), count=1) or plain
    core = _HEARD.sub("", core, count=1)
    said = _REPORT.sub("", _TOLD.sub(_of_teller, core, count=1), count=1)
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
