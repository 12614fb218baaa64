"""Words that tell what sort of sentence a note is, in a handful of languages: the table `note` of tables/words.toml.

Promise: plain data, read when a note is first taken apart. Not here: how the words are weighed (lasting, junk, changes).
"""

from __future__ import annotations

from anima.text.tables import read_table, word_set

_TABLE = read_table("text", "words")["note"]


def _set(name: str) -> frozenset[str]:
    return word_set(_TABLE[name])


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
_SEVERAL, _SEVERAL_WORDS = tuple(_TABLE["several"].split()), _set("several_words")


def is_several(word: str) -> bool:
    """Whether a word is for what one may have several of."""
    return word in _SEVERAL_WORDS or word.startswith(_SEVERAL)
