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

from anima.dream import words
from anima.index.words import fold

LONGEST = 600  # characters of a note that are looked at
_DENSE = "\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff"
_TOKEN = re.compile(rf"[{_DENSE}]|['’]s\b|[^\W_{_DENSE}]+(?:[.:,'’/@-](?!s\b)[^\W_{_DENSE}]+)*")
_LABEL = re.compile(
    r"(?i)\A(?:(?:fyi|note to self|note|nota|notiz|hinweis|good to know|info|update|actualización|reminder|remember|recuerda|fact|"
    r"decision|entscheidung|decisión|learned|learnt|heads[- ]up|important|wichtig|importante|apparently|turns out|por cierto|übrigens)"
    r"\s*(?:[:,–—-]+|\bthat\b|\bque\b|\bdass\b)?\s+)+(?:that\s+|que\s+|dass\s+)?"
)
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

    @property
    def head(self) -> str:
        return next((word for word in self.frame if word not in words.NAMING and word not in words.OWNERS), "")


@lru_cache(maxsize=65_536)
def sentence(text: str) -> Sentence:
    core, reported = core_of(text)
    raw = _TOKEN.findall(core[:LONGEST])
    tokens = tuple(fold(token).replace("’", "'") for token in raw)
    plain = " ".join(tokens)
    changes = not words.CHANGES.isdisjoint(tokens) or any(_holds(plain, phrase) for phrase in words.CHANGE_PHRASES)
    changes = changes or not words.NEW.isdisjoint(tokens[:4])
    adds = not words.ADDS.isdisjoint(tokens) or any(_holds(plain, phrase) for phrase in words.ADD_PHRASES)
    frame = _frame(plain, tokens)
    names = _names(raw)
    heads = frozenset([*_first(frame, names), *sorted(names)[:6]])
    return Sentence(core, tokens, frame, names, heads, changes and not adds, adds, reported)


def core_of(text: str) -> tuple[str, bool]:
    """The words of a note that say something, and whether somebody is named as having said them."""
    plain = unicodedata.normalize("NFC", " ".join(text[: 2 * LONGEST].split()))
    core = _LABEL.sub("", plain, count=1) or plain
    said = _REPORT.sub("", core, count=1)
    reported = bool(said) and said != core
    core = said if reported else core
    bare = _ASIDE.sub("", core)
    core = bare if len(bare) >= 12 else core
    return core.strip(" .;·"), reported


def _holds(plain: str, phrase: str) -> bool:
    return f" {phrase} " in f" {plain} "


def _frame(plain: str, tokens: tuple[str, ...]) -> tuple[str, ...]:
    gone = {"longer", "anymore"} if "no longer" in plain else set()
    kept = (t for t in tokens if t not in words.ARTICLES and t not in _SHIFTING and t not in gone)
    return tuple(kept)


_SHIFTING = (
    frozenset("now ahora jetzt maintenant agora currently nowadays actualmente today also too either tambien auch aussi".split())
    | words.NEW
)  # fmt: skip


def _names(raw: list[str]) -> frozenset[str]:
    """Words with a capital; the first word only if it is none of the small ones."""
    found = {fold(token) for n, token in enumerate(raw) if token[:1].isupper() and len(token) > 1}
    return frozenset(found - words.ARTICLES - words.OWNERS - words.RULES)


def _first(frame: tuple[str, ...], names: frozenset[str]) -> list[str]:
    """The first words of content before the verb, four at most."""
    place = next((n for n, word in enumerate(frame) if n and word not in names and is_any_verb(word)), len(frame))
    kept = [word for word in frame[: max(1, place)] if word not in words.NAMING and word not in _SMALL and word != "'s"]
    return kept[:4] or list(frame[:1])


def is_verb(word: str, *, first: bool = False) -> bool:
    """Whether a folded word looks like the verb of a statement in the present."""
    if word in words.BE or word in words.STATIVE:
        return True
    return (
        not first and len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "'s")) and word.isalpha()
    )


def is_any_verb(word: str) -> bool:
    """A verb of the present, of change, or of the past."""
    return (
        is_verb(word)
        or word in words.CHANGES
        or word in words.LASTING_PAST
        or word in words.PAST
        or bool(_ENDED.match(word))
    )


_ENDED = re.compile(r"[a-z]{3,}ed\Z")


@lru_cache(maxsize=65_536)
def content(sentence: Sentence) -> frozenset[str]:
    """The words that carry what is said: no small words, no verbs of being."""
    return frozenset(w for w in sentence.frame if len(w) > 2 and w not in words.BE and w not in _SMALL)


_SMALL = frozenset(
    """and or of to in on at for with by from as that this it not no but so if than into out over under about after before until per via
    de en con por para que se su al del y o mit von zu im am auf fur und oder bei aus et ou dans pour avec sur par em com por its his her
    their has have had was were will would can been being he she they we you i""".split()
) | words.OWNERS  # fmt: skip
