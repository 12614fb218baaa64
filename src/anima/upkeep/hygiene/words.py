"""Words and turns of phrase: what in a note carries its fact, which words say the same, and one statement in its many
grammatical forms, brought to one of them.

Promise: the tables are ordinary language and know no home. "Acme employs Ana", "Ana's employer is Acme" and "Ana has a job
at Acme" all come out as "Ana works at Acme", so that the same one acts in all of them; what has none of these forms comes
out as it is. Linear in the line: only forms whose words stand in it are tried, each once.
Not here: what a line is made of (reading).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from anima.text.words import fold, one_line, read_table, stem

_TABLE = read_table("upkeep/hygiene", "words")


def _set(name: str) -> frozenset[str]:
    return frozenset(fold(word) for word in _TABLE[name].split())


SMALL, NEGATIONS, WEEKDAYS, DEEDS = map(_set, ("small", "negations", "weekdays", "deeds"))
TO_COME, WAS, IS, BE_OR_HAVE = map(_set, ("to_come", "was", "is", "be_or_have"))
FORMER, LASTING, HAPPENED, PASSING = map(_set, ("former", "lasting", "happened", "passing"))
TITLES = frozenset(_TABLE["titles"].split())
MONTHS = {name: number for number, names in enumerate(_TABLE["months"], start=1) for name in names.split()}
NUMBERS = {word: number for number, words in _TABLE["numbers"].items() for word in words.split()}


def pattern(name: str) -> re.Pattern[str]:
    return re.compile(one_line(_TABLE["patterns"][name]), re.IGNORECASE)


@cache
def _same() -> tuple[dict[str, str], dict[str, str]]:
    """The word that stands for a word's row: by the word as it is, and by its stem where no two rows share that."""
    words: dict[str, str] = {}
    for row in _TABLE["same"].splitlines():
        first, *others = (fold(word) for word in row.split())
        for word in (first, *others):
            words.setdefault(word, words.get(first, first))
    stems: dict[str, set[str]] = {}
    for word, first in words.items():
        stems.setdefault(stem(word), set()).add(first)
    return words, {root: next(iter(found)) for root, found in stems.items() if len(found) == 1}


def is_known(word: str) -> bool:
    """Whether a word, as `fold` gives it, is one of the tables: no name."""
    words, stems = _same()
    return (
        word in SMALL
        or word in NEGATIONS
        or word in words
        or (word in WEEKDAYS and len(word) > 2)
        or stem(word) in stems
    )


@cache
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
    lower = fold(word)
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

_BE = "is are was were be been am".split()
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
SHORTENED = {"ca": "can", "wo": "will", "sha": "shall"}
_SLOTS = {
    "P": r"\+?[\d][\d ()/.\-+]{4,24}",
    "M": r"[^ @]+@[^ @]+",
    "I": r"\d{1,3}(?:\.\d{1,3}){3}(?: ?[:/]? ?\d+)?",
    "V": r"(?:(?:euro|euros|dollar|pound|eur|usd|gbp|chf|about|around|roughly|v) )?v?\d.*?",
    "K": rf"(?:[^ ]+ )?(?:{_ATTRIBUTES})(?: number| date| code| limit)?",
    "N": r"(?!(?:who|that|which)\b)[^\W\d_][^ ]*(?: (?!(?:of|for|in|at|to|on|is|are|was|with|by|from|'s|who|that|which)\b)[^ ]+){0,2}?",
}
_LONGEST = 40  # words; what is longer is no plain statement


class Turned(NamedTuple):
    """A line in the form that stands for its kind: the words, which kind it is, of what it speaks and what it says of it."""

    words: str
    kind: str
    single: bool  # whether there is only one at a time
    of: str
    noun: str  # what of it
    value: str


class _Form(NamedTuple):
    pattern: re.Pattern[str]
    needs: tuple[frozenset[str], ...]  # of each, one word has to stand in the line
    shown: tuple[str, ...]
    single: bool


def turned(text: str) -> Turned | None:
    """A statement as the form that stands for its kind, None when it has none of the forms."""
    tokens = _tokens(text)
    denials = [token for token in tokens if token.lower() in _DENIALS]
    if not denials:
        return _matched(tokens)
    if found := _matched(tokens, denying=True):
        return found
    found = _matched([token for token in tokens if token.lower() not in _DENIALS])
    return found and found._replace(words=" ".join((*denials, found.words)))


def _matched(tokens: Sequence[str], *, denying: bool = False) -> Turned | None:
    whole = " ".join(tokens)
    small = whole.lower()
    if not 3 <= len(tokens) <= _LONGEST or not len(small) == len(whole) <= 8 * _LONGEST:
        return None
    for form in _near(_forms()[1].intersection(small.split())):
        if denying and not any(need <= _DENIALS for need in form.needs):
            continue
        if found := form.pattern.match(small + " "):
            slots = {name: whole[slice(*found.span(name))] for name in found.groupdict() if found[name]}
            words = [slots.get(word, "") if word.isupper() and len(word) == 1 else word for word in form.shown]
            words += [slots[name] for name in slots if name not in form.shown]
            of, noun = f"{slots.get('A', '')} {slots.get('C', '')}", slots.get("N") or slots.get("K") or ""
            value = next((slots[name] for name in "PMIVB" if name in slots), "")
            return Turned(" ".join(words), " ".join(form.shown), form.single, of, noun, value)
    return None


@lru_cache(maxsize=32_768)  # lines have few of the words that forms are made of, and often the same
def _near(words: frozenset[str]) -> tuple[_Form, ...]:
    """The forms all of whose words are among these, what says more of its form first."""
    by_word, _ = _forms()
    near = {number: form for word in words & by_word.keys() for number, form in by_word[word]}
    return tuple(form for _, form in sorted(near.items()) if all(not need.isdisjoint(words) for need in form.needs))


def _tokens(text: str) -> list[str]:
    found, loose = list[str](), ""
    for token in _TOKENS.findall(text[:2000]):
        if token in ":=":
            found += ["is"] if found and len(found) <= 6 and "is" not in found else []
        elif token.lower() in _LOOSE:
            loose = token
            continue
        elif token.endswith("n't"):
            found += [SHORTENED.get(token[:-3].lower(), token[:-3]), "not"]
        elif token.endswith("'s") and len(token) > 2:
            found += [token[:-2], "'s"]
        else:
            # "a day" and "in the past" are said together.
            found += [loose.lower()] if loose and token.lower() in _TIMES else []
            found.append("'s" if token == "'" else token)
        loose = ""
    return found


@cache
def _forms() -> tuple[dict[str, list[tuple[int, _Form]]], frozenset[str]]:
    """The forms, by a word that has to stand in a line for each, and all words that forms ask for."""
    rows: list[tuple[str, str, bool]] = []
    table = read_table("upkeep/hygiene", "forms")["forms"]
    for row in re.sub(r"\n +<", " <", table).strip().splitlines():
        shown, *others = (form.strip() for form in row.split(" < "))
        single, shown = shown.startswith("!"), shown.removeprefix("!").strip()
        # "Ana sister is Eva" is said by nobody, but much else looks like it.
        said = others if " is B" in shown and single else [*others, shown]
        rows += [(form, shown, single) for form in said]
    by_word, asked = dict[str, list[tuple[int, _Form]]](), set[str]()
    # What says more of its form is tried first.
    for number, (said_so, shown, single) in enumerate(sorted(rows, key=lambda row: _length(row[0]))):
        form = _Form(*_compiled(said_so.split()), tuple(shown.split()), single)
        for word in min(form.needs, key=lambda need: ("'s" in need, "is" in need, len(need))):
            by_word.setdefault(word, []).append((number, form))
        asked.update(*form.needs)
    return by_word, frozenset(asked)


def _length(form: str) -> int:
    """How much a form says of itself, less than nothing: words that have to be there, and slots of one kind."""
    return -sum(2 if word[0] in "PMIK" else 1 for word in form.split() if word[0].islower() or word[0] in "'PMIVK")


def _compiled(words: Sequence[str]) -> tuple[re.Pattern[str], tuple[frozenset[str], ...]]:
    parts, needs, seen = list[str](), list[frozenset[str]](), set[str]()
    for word in words:
        bare = word.removeprefix("?")
        if len(bare) == 1 and bare.isupper():
            slot = _SLOTS.get(bare, ".+?")
            part = f"(?:{slot})" if bare in seen else f"(?P<{bare}>{slot})"
            seen.add(bare)
        else:
            options = _BE if bare == "be" else list(_inflected(bare.split("|")))
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
