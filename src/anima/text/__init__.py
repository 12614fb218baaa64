"""What words say: reading Markdown, words, days and sentences. Pure: no home, no file, no clock. Here: how text of any language is
cut, folded and stemmed, for documents and for queries alike.

Promise: one function, `cut`, gives the words of a text in linear time, and every index stores just these words, so that each
engine ranks alike. A query is data: no sign in it has a meaning of its own. Scripts without blanks are cut into single
characters and pairs. Every character that can make the scan speak of hidden text is among the invisible ones (a test goes
through all of Unicode). A table is read when somebody asks for it, or with the module whose table it is: a start reads few.
Not here: postings and scores (search), and where a unit begins (search.units).
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

LONGEST = 64  # a longer word is no word; its head is kept so that a pasted key is still found by its beginning
MAX_TAGS = 8
MAX_TAG = 32
SIGN = r"(?:[-*+]|\d{1,9}[.)])"  # of a list item
BULLET = re.compile(rf"(\s*)({SIGN})(?:\s+|\Z)")
DOTTED = re.compile(rf"(\s*)({SIGN}|•)(?:\s+|\Z)")

# Han, kana, Hangul, Thai, Lao, Khmer, Myanmar: written without blanks, or with particles glued to the word.
DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u3130-\u318f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff々〆"
)
_WORD = re.compile(rf"#\d+|[{DENSE}]+|[^\W{DENSE}]+(?:['’][^\W{DENSE}]+)?")
_HAS_DENSE = re.compile(f"[{DENSE}]")
_MARKS = re.compile("[\u0300-\u036f]+")
_CAMEL = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_PARTS = re.compile(r"[^\W\d_]+|\d+")
_COMPOUND = re.compile(r"(?<![\w./-])[^\W_]++[._/-][\w./-]+")
_DATE = re.compile(r"\d{4}-\d{1,2}(?:-\d{1,2})?|\d{1,2}:\d{2}")
_RUNS = re.compile(r"\w+|\W+")
_ENDINGS = frozenset(["s", "m", "re", "ve", "ll", "d"])
_ELIDED = frozenset(["l", "d", "j", "c", "n", "m", "t", "s", "qu"])


def cut(text: str) -> list[str]:
    """Every word of a text in its order, folded and stemmed, stop words among them."""
    return [form for raw in _WORD.findall(_normal(text)) for form in _forms(raw[: LONGEST * 4])]


def ask(text: str) -> list[str]:
    """The words of a query, each once: stop words and single characters of a longer run dropped, unless all are."""
    words: dict[str, None] = {}
    for raw, forms in words_in(text):
        if len(raw) > 1 and _HAS_DENSE.match(raw):
            forms = tuple(form for form in forms if len(form) > 1)
        words.update(dict.fromkeys(forms))
    # The stop words are English, or another language's when the query is plainly in it: two of its small words and more of
    # them than English ones, for "war" alone must not vanish as German.
    found = {fold(raw) for raw in _WORD.findall(text)}
    counted = {language: len(found & small) for language, small in _words("stop").items()}
    english = counted.pop("en")
    best = max(counted, key=lambda language: counted[language])
    stops = _stemmed(best if counted[best] >= 2 and counted[best] > english else "en")
    return [word for word in words if word not in stops] or list(words)


def words_in(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each run of letters as it is written, with the words that `cut` makes of it."""
    return ((raw, _forms(raw[: LONGEST * 4])) for raw in _WORD.findall(_normal(text)))


def highlight(text: str, query: str) -> Iterator[tuple[str, bool]]:
    """A text in pieces, and whether each is one of the words that were asked for."""
    stems, plain = frozenset(ask(query)), ""
    for match in _RUNS.finditer(text):
        word = match[0]
        if word[0].isalnum() and len(word) <= 60 and not stems.isdisjoint(cut(word)):
            if plain:
                yield plain, False
            yield word, True
            plain = ""
        else:
            plain += word
    if plain:
        yield plain, False


def fold(word: str) -> str:
    """The form in which two spellings of one word are equal: case folded, without accents."""
    lowered = word.casefold()
    if lowered.isascii():
        return lowered
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", lowered)))


def first_person(text: str) -> int:
    """How many words speak of the one who speaks ("I", "my", "ich", "我")."""
    return sum(1 for raw in _WORD.findall(text) if _is_first_person(raw[:LONGEST]))


def tags(text: str) -> tuple[str, ...]:
    """At most 8 concept tags: compounds such as `a.b` and `k-v` first, then words, in their order in the text."""
    plain = _normal(text)
    compounds = [run.strip("._/-") for run in _COMPOUND.findall(plain)]
    parts = {part for run in compounds for part in _WORD.findall(run)}
    found: dict[str, None] = {}
    for raw in [*compounds, *_WORD.findall(plain)]:
        tag = _tag(raw[: MAX_TAG * 2]) if raw not in parts else None
        if tag is not None:
            found[tag] = None
        if len(found) == MAX_TAGS:
            break
    return tuple(found)


def _normal(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def without_dates(text: str) -> str:
    """The text without dates and times of day: in a heading they say when, not what."""
    return _DATE.sub(" ", text)


@lru_cache(maxsize=65536)
def _is_first_person(raw: str) -> bool:
    head, _, _ = raw.replace("’", "'").casefold().partition("'")
    return head in _words("first_person")["words"] or any(word in raw for word in _words("first_person")["dense"])


@lru_cache(maxsize=262144)
def _forms(raw: str) -> tuple[str, ...]:
    """The words one run of letters stands for: itself, and its parts when it is an identifier."""
    if _HAS_DENSE.match(raw):
        return (*raw, *(raw[n : n + 2] for n in range(len(raw) - 1)))
    if raw.startswith("#"):
        return raw[:LONGEST], raw[1:LONGEST]
    word = _without_apostrophe(raw.replace("’", "'"))
    whole = fold(word)[:LONGEST]
    # `http_2_server` and `getUserName` and `v2beta` have parts; a plain word has none.
    is_camel = word.isascii() and not word.islower() and not word.isupper() and not word.istitle()
    parts = _CAMEL.findall(word) if is_camel and "_" not in word else _PARTS.findall(word)
    if not parts or (len(parts) == 1 and "_" not in word):
        return (stem(whole),) if whole else ()
    return tuple(dict.fromkeys([whole, *(stem(fold(part)[:LONGEST]) for part in parts)]))


def _without_apostrophe(word: str) -> str:
    head, mark, tail = word.partition("'")
    if not mark:
        return word
    if head.casefold() in _ELIDED and len(tail) > 1:
        return tail
    return head if tail.casefold() in _ENDINGS else head + tail


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A light English stem of a folded word; words of other scripts and short words stay as they are."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    word = _suffix(_plural(word))
    # The last letter is evened out, so that `paint`, `painted` and `dance`, `dancing` meet.
    if len(word) > 4 and word.endswith("e"):
        return word[:-1]
    return word[:-1] + "i" if len(word) > 2 and word.endswith("y") and word[-2] not in "aeiou" else word


def _plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("ies"):
        return word[:-3] + ("y" if len(word) > 4 else "ie")
    if word.endswith(("ss", "us", "is")) or not word.endswith("s"):
        return word
    return word[:-2] if word.endswith(("xes", "zes", "ches", "shes")) else word[:-1]


def _suffix(word: str) -> str:
    for ending, least in (("ingly", 4), ("edly", 4), ("ing", 3), ("ed", 3)):
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) >= least - 1 and any(letter in "aeiouy" for letter in root):
            # What stood before -ing or -ed: `hopp` was `hop`, `mak` was `make`.
            if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "lsz":
                return root[:-1]
            is_cut = len(root) == 3 and root[-1] not in "aeiouwxy" and root[-2] in "aeiou" and root[0] not in "aeiou"
            return root + "e" if is_cut or len(root) == 2 else root
    for ending, least, to in _LONG_ENDINGS:
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) >= least:
            return root + to
    return word


# Ending, the least length of what is left, and what takes its place.
_LONG = """ational 3 at;ization 3 iz;isation 3 iz;fulness 3;iveness 3 iv;ousness 3 ous;ation 4 at;ement 4;ment 4;ness 3;ions 4;
ion 4;able 4;ible 4;fully 3;ful 3;ally 4 al;ity 4;ive 4 iv;ize 4 iz;ise 4 iz;ly 4;or 4;er 4"""
_LONG_ENDINGS = tuple((ending, int(least), "".join(to)) for ending, least, *to in map(str.split, _LONG.split(";")))


@cache
def _words(name: str) -> dict[str, frozenset[str]]:
    """The sets of a table of words: `stop` words by language, those of the `first_person`."""
    return {kind: word_set(words) for kind, words in read_table("text", "words")[name].items()}


@cache
def _stemmed(language: str) -> frozenset[str]:
    return frozenset(form for word in _words("stop")[language] for form in (word, stem(word)))


@lru_cache(maxsize=65536)
def _tag(raw: str) -> str | None:
    word = _without_apostrophe(raw.replace("’", "'")).casefold().replace("_", "-").strip("-./#")[:MAX_TAG]
    is_stop = any(fold(word) in stops for stops in _words("stop").values())
    if is_stop or not any(map(str.isalpha, word)) or _DATE.search(word):
        return None
    least = 2 if _HAS_DENSE.match(word) else 3
    return word if len(word) >= least else None


# -- characters that a reader cannot see --------------------------------------------------------------------------------

INVISIBLES = {  # the inside of a character class for each kind, in the order in which they are asked
    "tag-characters": "\U000e0000-\U000e007f",
    "variation-selectors": "\ufe00-\ufe0f\U000e0100-\U000e01ef",
    "bidi": "\u202a-\u202e\u2066-\u2069",
    "zero-width": "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2065\u206a-\u206f"
    "\u3164\ufeff\uffa0",
    "control": "\x00-\x08\x0b\x0e-\x1f\x7f-\x9f",
    "invisible": "\u2028\u2029\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0080-\U000e00ff\U000e01f0-\U000e0fff",
}
INVISIBLE = re.compile(f"[{''.join(INVISIBLES.values())}]")
_PRINTED = bytes([10, *range(32, 127)])
_PIECES = re.compile(r"(?s:.{1,32768})[^\n]*\n?")


def rare(text: str) -> frozenset[str]:
    """The characters of a text that are neither printable ASCII nor a line feed. Fast, because those are dropped first."""
    return frozenset(text.encode("utf-8", "surrogatepass").translate(None, _PRINTED).decode("utf-8", "surrogatepass"))


def pieces(text: str) -> Iterator[str]:
    """A text in pieces of whole lines, which are quicker to take apart than all at once."""
    return (found[0] for found in _PIECES.finditer(text))


def may_hide(text: str) -> bool:
    """False only when nothing in the text is hidden."""
    return any(map(INVISIBLE.match, rare(text)))


def name_of(char: str) -> str:
    """The visible form of one invisible character."""
    return f"⟨U+{ord(char):04X}⟩"


def visible(text: str, limit: int = 400) -> str:
    """Text that is safe to print and to read: line breaks and invisible characters shown, long text cut."""
    piece = text[:limit].replace("\r\n", "\n").replace("\n", "⏎").replace("\t", " ")
    shown = INVISIBLE.sub(lambda found: name_of(found[0]), piece)
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else name_of(c) if unicodedata.category(c) != "Zs" else " " for c in shown)
    return shown if len(text) <= limit else shown + "…"


@cache
def read_table(place: str, name: str) -> dict[str, Any]:
    """The table of that name, as TOML in the folder `tables` of a place such as `gate/scan`; its first lines explain it. Whoever
    changes it copies it first."""
    file = Path(__file__).parents[1] / place / "tables" / f"{name}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def read_statements(place: str, name: str) -> dict[str, str]:
    """The texts of an SQL file in a place, each by the one word in the comment above it, behind which may stand what it is."""
    file = Path(__file__).parents[1] / place / f"{name}.sql"
    _, *found = re.split(r"^-- (\w+)(?:: .*)?\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {word: said.strip() for word, said in zip(found[::2], found[1::2], strict=True)}


def one_line(pattern: str) -> str:
    """A pattern that a table has over several lines, without the breaks and the blanks after them."""
    return re.sub(r"\n\s*", "", pattern).strip()


def word_set(text: str) -> frozenset[str]:
    """The words of a list that is written as one text."""
    return frozenset(text.split())


def bullet_text(line: str, *, dots: bool = False) -> str:
    """A line without its list sign and surrounding blanks; a box stays."""
    found = (DOTTED if dots else BULLET).match(line)
    return line[found.end() if found else 0 :].strip()
