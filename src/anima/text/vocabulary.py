"""Words and wordings that tell what sort of sentence a note is, in a handful of languages, from tables/words.toml.

Promise: plain data, read when a note is first taken apart. Not here: how they are weighed (notes, changes).
"""

from __future__ import annotations

import re

from anima.text.words import one_line, read_table, word_set

_WORDS = read_table("text", "words")
_TABLE = _WORDS["note"]


def _set(name: str) -> frozenset[str]:
    return word_set(_TABLE[name])


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(one_line(_WORDS["patterns"][name]))


ARTICLES, OWNERS, NAMING = _set("articles"), _set("owners"), _set("naming")
BE, STATIVE, LOOSE, LOOSEST = _set("be"), _set("stative"), _set("loose"), _set("loosest")
PLAIN = BE | LOOSE | _set("plain")
RULES, ALWAYS, DECISIONS, ATTRIBUTES = _set("rules"), _set("always"), _set("decisions"), _set("attributes")
KIN, SORTS, TIES, PLACES = _set("kin"), _set("sorts"), _set("ties"), _set("places")
MOMENTS, TOMORROWS, OF_MORNINGS = _set("moments"), _set("tomorrows"), _set("of_mornings")
THIS_TIME, SPANS = _set("this_time"), _set("spans")
CALENDAR = frozenset(word.rstrip("s") for word in _set("calendar"))
STAGES, ADVERBS_OF_STAGE = _set("stages"), _set("adverbs_of_stage")
PAST, LASTING_PAST, COMING = _set("past"), _set("lasting_past"), _set("coming")
CHANGES, NEW, ADDS, EVERY, COUNTED = _set("changes"), _set("new"), _set("adds"), _set("every"), _set("counted")
CHANGE_PHRASES, ADD_PHRASES = tuple[str, ...](_TABLE["change_phrases"]), tuple[str, ...](_TABLE["add_phrases"])
SAME_ATTRIBUTE = tuple(map(word_set, _TABLE["same_attribute"]))
LABEL, OPENING, HEARD, TOLD, REPORT = map(_pattern, ("label", "opening", "heard", "told", "report"))
NO_MORE, DENIAL, UNTIL, SOON = map(_pattern, ("no_more", "denial", "until", "soon"))
PASSING_THING = _pattern("passing_thing")
STAYING, SPEAKERS, NONE, OF = _set("staying"), _set("speakers"), _set("none"), _set("of")
SMALL, SHIFTING = _set("small") | OWNERS, _set("shifting") | NEW | ARTICLES
ENDURING, OF_PAST = ATTRIBUTES | DECISIONS | LASTING_PAST, CHANGES | LASTING_PAST | PAST
_SEVERAL, _SEVERAL_WORDS = tuple(_TABLE["several"].split()), _set("several_words")


def is_several(word: str) -> bool:
    """Whether a word is for what one may have several of."""
    return word in _SEVERAL_WORDS or word.startswith(_SEVERAL)
