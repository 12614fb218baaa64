"""Words and turns of phrase: what in a note carries its fact, which words say the same, and one statement in its many
grammatical forms, brought to one of them.

Promise: the tables are ordinary language and know no home. "Acme employs Ana", "Ana's employer is Acme" and "Ana has a job
at Acme" all come out as "Ana works at Acme", so that the same one acts in all of them; what has none of these forms comes
out as it is. Linear in the line: only forms whose words stand in it are tried, each once.
Not here: what a line is made of (reading).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from anima.text.words import read_table, stem


def plain(word: str) -> str:
    """A word without case and accents, as the tables are read."""
    if word.isascii():
        return word.lower()
    bare = unicodedata.normalize("NFD", word.casefold())
    return "".join(char for char in bare if not unicodedata.combining(char))


_TABLE = read_table("upkeep/hygiene", "words")


def _set(name: str) -> frozenset[str]:
    return frozenset(plain(word) for word in _TABLE[name].split())


SMALL, NEGATIONS, WEEKDAYS, DEEDS = map(_set, ("small", "negations", "weekdays", "deeds"))
TO_COME, WAS, IS, BE_OR_HAVE = map(_set, ("to_come", "was", "is", "be_or_have"))
FORMER, LASTING, HAPPENED, PASSING = map(_set, ("former", "lasting", "happened", "passing"))
NUMBERS = {word: number for number, words in _TABLE["numbers"].items() for word in words.split()}


@lru_cache(maxsize=1)
def _same() -> tuple[dict[str, str], dict[str, str]]:
    """The word that stands for a word's row: by the word as it is, and by its stem where no two rows share that."""
    words: dict[str, str] = {}
    for row in _TABLE["same"].splitlines():
        first, *others = (plain(word) for word in row.split())
        for word in (first, *others):
            words.setdefault(word, words.get(first, first))
    stems: dict[str, set[str]] = {}
    for word, first in words.items():
        stems.setdefault(stem(word), set()).add(first)
    return words, {root: next(iter(found)) for root, found in stems.items() if len(found) == 1}


def is_known(word: str) -> bool:
    """Whether a word, as `plain` gives it, is one of the tables: no name."""
    words, stems = _same()
    return (
        word in SMALL
        or word in NEGATIONS
        or word in words
        or (word in WEEKDAYS and len(word) > 2)
        or stem(word) in stems
    )


@lru_cache(maxsize=1)
def phrases() -> dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]:
    """First word → phrases that begin with it, longest first, and what each is read as; a denial is "not"."""
    found: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
    for row in " ".join(_TABLE["phrases"].split()).split(";"):
        said, equals, meant = row.strip().partition("=")
        if equals:
            words = tuple(said.split())
            read = () if meant == "-" else ("not",) if meant == "~" else tuple(meant.split())
            found.setdefault(words[0], []).append((words, read))
    for rows in found.values():
        rows.sort(key=lambda row: -len(row[0]))
    return found


@lru_cache(maxsize=65_536)
def canonical(word: str) -> str:
    """What stands for a word and all that say the same."""
    words, stems = _same()
    lower = plain(word)
    root = stem(lower)
    return words.get(lower) or stems.get(root) or root


def _canonical(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(canonical, words))


LIMITS, LIGHT, SYMMETRIC, SINGLE = (
    _canonical(_TABLE[name].split()) for name in ("limits", "light", "symmetric", "single")
)
_OPPOSED = [_canonical(pair.split()) for pair in _TABLE["opposed"].split(";")]
OPPOSITES: dict[str, list[frozenset[str]]] = {
    word: [pair for pair in _OPPOSED if word in pair] for pair in _OPPOSED for word in pair if len(pair) == 2
}


# -- turns of phrase ------------------------------------------------------------------------------------------------------

_BE = "is|are|was|were|be|been|am"
_DENIALS = frozenset(["not", "never", "no"])
# What may stand anywhere without telling another form.
_LOOSE = frozenset(
    """the a an currently now still also his her their its my our your just presently nowadays today's actually both
    usually normally always already these days , - that's it's apparently officially really""".split()
)
_TOKENS = re.compile(
    r"[^\W\d_]+(?:-?\d{1,3})+(?!\d)[^\W\d_]{0,3}"
    r"|[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)*|\+?\d+(?:[.,:/\-]\d+)*|[^\W\d_]+(?:-[^\W\d_]+)*(?:'[^\W\d_]+)?|[^\W_]+|\0|'(?= )|[:=]"
)
# What there is one of.
_ATTRIBUTES = "|".join(
    """badge budget capacity client colour color combination dentist doctor domain dosage dose editor extension gp hairdresser
    hotel insurer landlord landlady limit locker nationality nickname number password passphrase pin plate quota rate rent
    room size surname target therapist timezone title username vet""".split()
)
_TIMES = frozenset("day week month year night hour past morning evening afternoon mornings evenings".split())
_SHORTENED = {"ca": "can", "wo": "will", "sha": "shall"}
_SLOTS = {
    "P": r"\+?[\d][\d ()/.\-+]{4,24}",
    "M": r"[^ @]+@[^ @]+",
    "I": r"\d{1,3}(?:\.\d{1,3}){3}(?: ?[:/]? ?\d+)?",
    "V": r"(?:(?:euro|euros|dollar|pound|eur|usd|gbp|chf|about|around|roughly|v) )?v?\d.*?",
    "K": rf"(?:[^ ]+ )?(?:{_ATTRIBUTES})(?: number| date| code| limit)?",
    "N": r"(?!(?:who|that|which)\b)[^\W\d_][^ ]*(?: (?!(?:of|for|in|at|to|on|is|are|was|with|by|from|'s|who|that|which)\b)[^ ]+){0,2}?",
}
_LONGEST = 40  # words; what is longer is no plain statement


@dataclass(frozen=True, slots=True)
class Turned:
    """A line in the form that stands for its kind: the words, which kind it is, of what it speaks and what it says of it."""

    words: str
    kind: str = ""
    single: bool = False  # whether there is only one at a time
    of: str = ""
    noun: str = ""  # what of it
    value: str = ""


@dataclass(frozen=True, slots=True)
class _Form:
    pattern: re.Pattern[str]
    needs: tuple[frozenset[str], ...]  # of each, one word has to stand in the line
    shown: tuple[str, ...]
    kind: str
    single: bool


@dataclass(frozen=True, slots=True)
class _Forms:
    """The forms, by a word that has to stand in a line for each, and all words that forms ask for."""

    by_word: Mapping[str, Sequence[tuple[int, _Form]]]
    asked: frozenset[str]


@lru_cache(maxsize=32_768)  # lines have few of the words that forms are made of, and often the same
def _near(words: frozenset[str]) -> tuple[_Form, ...]:
    """The forms all of whose words are among these, what says more of its form first."""
    by_word = _forms().by_word
    found = {
        number: form
        for word in words & by_word.keys()
        for number, form in by_word[word]
        if all(not need.isdisjoint(words) for need in form.needs)
    }
    return tuple(found[number] for number in sorted(found))


def turned(text: str) -> Turned | None:
    """A statement as the form that stands for its kind, None when it has none of the forms."""
    tokens = _tokens(text)
    bare = [token for token in tokens if token.lower() not in _DENIALS]
    if len(bare) == len(tokens):
        return _matched(tokens)
    if found := _matched(tokens, denying=True):
        return found
    if not (found := _matched(bare)):
        return None
    denials = [token for token in tokens if token.lower() in _DENIALS]
    return replace(found, words=" ".join((*denials, found.words)))


def _matched(tokens: Sequence[str], *, denying: bool = False) -> Turned | None:
    whole = " ".join(tokens)
    small = whole.lower()
    if not 3 <= len(tokens) <= _LONGEST or not len(small) == len(whole) <= 8 * _LONGEST:
        return None
    for form in _near(_forms().asked.intersection(small.split())):
        if denying and not any(need <= _DENIALS for need in form.needs):
            continue
        if found := form.pattern.match(small + " "):
            return _shown(form, found, whole)
    return None


def _shown(form: _Form, found: re.Match[str], whole: str) -> Turned:
    slots = {name: whole[slice(*found.span(name))] for name in found.groupdict() if found[name]}
    words = [slots.get(word, "") if word.isupper() and len(word) == 1 else word for word in form.shown]
    value = next((slots[name] for name in "PMIVB" if name in slots), "")
    words += [slots[name] for name in slots if name not in form.shown]
    noun = slots.get("N") or slots.get("K") or ""
    return Turned(" ".join(words), form.kind, form.single, f"{slots.get('A', '')} {slots.get('C', '')}", noun, value)


def _tokens(text: str) -> list[str]:
    found, loose = list[str](), ""
    for token in _TOKENS.findall(text[:2000]):
        if token in ":=":
            found += ["is"] if found and len(found) <= 6 and "is" not in found else []
        elif token.lower() in _LOOSE:
            loose = token
            continue
        elif token.endswith("n't"):
            found += [_SHORTENED.get(token[:-3].lower(), token[:-3]), "not"]
        elif token.endswith("'s") and len(token) > 2:
            found += [token[:-2], "'s"]
        else:
            # "a day" and "in the past" are said together.
            found += [loose.lower()] if loose and token.lower() in _TIMES else []
            found.append("'s" if token == "'" else token)
        loose = ""
    return found


@lru_cache(maxsize=1)
def _forms() -> _Forms:
    by_word: dict[str, list[tuple[int, _Form]]] = {}
    asked: set[str] = set()
    rows = [
        (said, tuple(row[0].removeprefix("!").split()), row[0].startswith("!"))
        for row in _rows()
        # "Ana sister is Eva" is said by nobody, but much else looks like it.
        for said in (*row[1:], *([] if " is B" in row[0] and row[0][0] == "!" else [row[0].removeprefix("!").strip()]))
    ]
    # What says more of its form is tried first.
    for number, (said, shown, single) in enumerate(sorted(rows, key=lambda row: _length(row[0]))):
        form = _Form(*_compiled(said.split()), shown, " ".join(shown), single)
        rarest = min(form.needs, key=lambda need: ("'s" in need, "is" in need, len(need)))
        for word in rarest:
            by_word.setdefault(word, []).append((number, form))
        asked.update(*form.needs)
    return _Forms(by_word, frozenset(asked))


def _length(form: str) -> int:
    """How much a form says of itself, less than nothing: words that have to be there, and slots of one kind."""
    return -sum(2 if word[0] in "PMIK" else 1 for word in form.split() if word[0].islower() or word[0] in "'PMIVK")


def _rows() -> Iterator[list[str]]:
    rows: list[str] = []
    for line in read_table("upkeep/hygiene", "forms")["forms"].strip("\n").splitlines():
        if line.startswith("  <"):
            rows[-1] += " " + line.strip()
        else:
            rows.append(line.strip())
    yield from ([form.strip() for form in row.split(" < ")] for row in rows)


def _compiled(words: Sequence[str]) -> tuple[re.Pattern[str], tuple[frozenset[str], ...]]:
    parts, needs, seen = list[str](), list[frozenset[str]](), set[str]()
    for word in words:
        bare = word.removeprefix("?")
        if len(bare) == 1 and bare.isupper():
            slot = _SLOTS.get(bare, ".+?")
            part = f"(?:{slot})" if bare in seen else f"(?P<{bare}>{slot})"
            seen.add(bare)
        else:
            options = _BE.split("|") if bare == "be" else list(_inflected(bare.split("|")))
            part = f"(?:{'|'.join(map(re.escape, options))})"
            if bare == word:
                needs.append(frozenset(options))
        parts.append(rf"(?:{part} )?" if word != bare else part + " ")
    return re.compile("".join(parts) + r"\Z"), tuple(needs)


def _inflected(words: Sequence[str]) -> Iterator[str]:
    """Verbs in the third person also without it, and in the past where that is regular."""
    for word in words:
        yield word
        if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "'s", "us")):
            yield from (word[:-1], f"{word[:-1]}d" if word.endswith("es") else f"{word[:-1]}ed")
