"""Secrets: keys and passwords that have no business in a memory, by their shape and by the words before them; and a text
without them.

Promise: few false alarms: a commit, a UUID, a digest, a reference to a vault, a type and "password: ask Ana" are none; but
where words for secrets stand so close that no person can have written them, whatever follows a separator is one unread, and
where they are a thousand, all of the text is. Built-in rules read a text in linear time, and none reads over `BORDER`. `redact`
leaves no finding behind, touches no placeholder (but in a text that is struck out whole), and does the same when done twice.
Not here: the shapes of keys and the words (tables/secrets.toml), and what becomes of a text with a secret (gate).
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cache, partial
from itertools import accumulate, chain
from operator import attrgetter
from re import Pattern
from string import ascii_letters, digits
from typing import NamedTuple

from anima.gate.scan.sights import LEAST_KEY, MOST, Sighting, around, compiled, each_once, findings, pattern_of, table
from anima.model import Finding, Severity
from anima.text import one_line, visible, word_set

BORDER = "\n\n\n\n"  # between pieces that are read at once; no rule reads over it
_CROWD = 200  # so many secrets, or words for them, and then one in
_OFTEN = 50  # characters, are more than anybody writes
_GAP = 40  # what stands between two secrets of a crowd goes with them
CROWDED = "crowded"
PLACEHOLDER = re.compile(r"\[REDACTED:[A-Za-z0-9_-]{1,40}\]")
_LEAST_ROOM = 8  # that a secret needs, with what tells of it
_AROUND = 400  # characters on either side of a removed secret that are looked at again

Found = tuple[int, int, str]
Patterns = Sequence[Pattern[str]]  # the owner's own


class Shape(NamedTuple):
    """A key that says by its shape whose it is: the table has them all."""

    kind: str
    pattern: str
    head: str = ""  # what stands before, read backwards
    line: str = ""  # what stands earlier on the line
    begins: str = ""  # with this word, where it can reach over a blank


class Grade(IntEnum):
    """How strongly a word says that a secret follows."""

    WEAK = 1  # token, secret
    KEY = 2  # api key, client secret
    CODE = 3  # access code, clave: may be a password, or a word about something else
    PASSWORD = 4


_pattern = partial(pattern_of, "secrets")


@cache
def _words_for(name: str) -> frozenset[str]:
    return word_set(table("secrets")["words"][name])


@cache
def _shapes() -> tuple[Shape, ...]:
    shapes = []
    for row in table("secrets")["shapes"]:
        pattern = one_line(row["pattern"])
        # One without blanks, and without classes of what is none of something, stays in one word.
        in_word = not re.search(r"\\[sSWDn]|\[\^| ", pattern) and "." not in re.sub(r"\[[^]]*]|\\\.", "", pattern)
        begins = "" if in_word else pattern[: len(pattern) - len(pattern.lstrip(f"{ascii_letters}{digits}:/-"))]
        shapes.append(Shape(row["kind"], pattern, row.get("head", ""), row.get("line", ""), begins))
    return tuple(shapes)


@cache
def _keywords() -> tuple[tuple[str, str, str, str], ...]:
    """Words for secrets: sign, its first word, group, pattern."""
    groups, forms = table("secrets")["keywords"], table("secrets")["forms"]
    rows = ((sign, group) for group, signs in groups.items() for sign in signs)
    return tuple((sign, sign.partition(" ")[0], group, forms.get(sign, re.escape(sign))) for sign, group in rows)


# -- the text without them -------------------------------------------------------------------------------------------------


def redact(text: str, patterns: Patterns = ()) -> tuple[str, tuple[Finding, ...]]:
    """The text with each secret replaced by `[REDACTED:<kind>]`, and what was found, placed in the given text."""
    found = secrets_in(text, patterns)
    return (strike(text, found), findings(text, masked_spans(text, found))) if found else (text, ())


def strike(text: str, found: Iterable[Found]) -> str:
    """The text with a placeholder for each of these."""
    pieces, at = list[str](), 0
    for start, end, kind in found:
        pieces += (text[at:start], f"[REDACTED:{kind}]")
        at = end
    return "".join([*pieces, text[at:]])


def placeholders(text: str, words: str) -> Iterator[Sighting]:
    """Marks that stand where a secret was struck out: harmless to read, but no words to be written back."""
    for found in PLACEHOLDER.finditer(text) if "[REDACTED:" in words else ():
        message = "the mark of a secret that was struck out"
        yield Sighting(*found.span(), "placeholder", Severity.NOTE, found[0], message)


def masked_spans(text: str, found: Iterable[Found]) -> Iterator[Sighting]:
    """What was found, as the scan shows it."""
    of_kind: defaultdict[str, int] = defaultdict(int)
    for start, end, kind in found:
        of_kind[kind] += 1  # no more than MOST of a kind are shown
        # The first characters of a secret: four of a long one, fewer of a short one.
        shown = visible(text[start : start + min(4, (end - start) // 4)]) + "…" if of_kind[kind] <= MOST else ""
        yield Sighting(start, end, f"secret:{kind}", Severity.DANGER, shown, f"a secret ({kind})")


def secrets_in(text: str, patterns: Patterns, words: str | None = None) -> list[Found]:
    """Every secret, in order, none overlapping. Each piece between placeholders and secrets is looked at by itself."""
    done: list[Found] = []
    pieces, start = list[tuple[int, int]](), 0
    for mark in PLACEHOLDER.finditer(text) if "[REDACTED:" in (text if words is None else words) else ():
        pieces += [(start, mark.start())] if mark.start() > start else []
        start = mark.end()
    pieces += [(start, len(text))] if len(text) > start else []
    for _ in range(8):  # one removed secret can lay another bare
        try:
            fresh = _in_pieces(text, pieces, patterns, words)
        except _Overcrowded:
            return [(0, len(text), CROWDED)]
        if not fresh:
            break
        done += fresh
        pieces = _laid_bare(text, pieces, fresh)
    return sorted(done)


def _in_pieces(text: str, pieces: list[tuple[int, int]], patterns: Patterns, words: str | None) -> list[Found]:
    """The secrets of these pieces, which are read as one text."""
    if len(pieces) == 1:
        [(start, end)] = pieces
        piece = text[start:end]
        found = apart(piece, found_in(piece, patterns, words if len(piece) == len(text) else None))
        return [(start + first, start + last, kind) for first, last, kind in found] if start else found
    joined = BORDER.join([text[start:end] for start, end in pieces])
    starts = [0, *accumulate(end - start + len(BORDER) for start, end in pieces)]
    found, number = list[Found](), 0
    for first, last, kind in apart(joined, found_in(joined, ())):
        while starts[number + 1] <= first:
            number += 1
        shift = pieces[number][0] - starts[number]
        found.append((first + shift, last + shift, kind))
    for start, end in pieces if patterns else ():
        found += ((start + first, start + last, kind) for first, last, kind in own(text[start:end], patterns))
    return apart(text, found) if patterns else found


def _laid_bare(text: str, pieces: list[tuple[int, int]], fresh: list[Found]) -> list[tuple[int, int]]:
    """What stands around the secrets that were just found: only there can another come to light."""
    found, ends, number = list[tuple[int, int]](), iter([*fresh[1:], (len(text), 0, "")]), 0
    before = 0
    for (start, end, _), (after, *_rest) in zip(fresh, ends, strict=True):
        while pieces[number][1] < end:
            number += 1
        first, last = max(pieces[number][0], before), min(pieces[number][1], after)
        if start - first >= _LEAST_ROOM and not (found and found[-1][1] == start):
            is_far = start - first > _AROUND
            found.append((_blank(text, start - _AROUND, start) if is_far else first, start))
        if last - end >= _LEAST_ROOM:
            found.append((end, last if last - end <= 2 * _AROUND else _blank(text, end + _AROUND, last)))
        before = end
    return found


def _blank(text: str, at: int, end: int) -> int:
    """The first place from here on behind a blank, so that no word is cut in two."""
    blank = compiled(r"\s").search(text, at, min(end, at + _AROUND))
    return blank.end() if blank else at


# -- what they are ----------------------------------------------------------------------------------------------------------


class _Overcrowded(Exception):
    """A text holds so many secrets that it is not worth reading: whoever asked takes all of it for one."""


def found_in(text: str, patterns: Patterns, words: str | None = None) -> Iterator[Found]:
    words = each_once(text) if words is None else words  # what none of them holds need not be looked for in the text
    for sign, sort in (("PRIVATE", "pem"), ("PuTTY-User", "putty")):
        yield from _private_keys(text, sort) if sign in words else ()
    keys = "\n".join([word for word in words.split("\n") if len(word) >= LEAST_KEY])
    for shape in _shapes() if keys else filter(attrgetter("begins"), _shapes()):
        if shape.begins in words if shape.begins else compiled(shape.pattern).search(keys):
            yield from _of_shape(text, shape)
    lowered, words = _plain_lower(text), _plain_lower(words)
    if not (yield from _by_words(text, lowered, words)):  # values that the words before them call a secret
        yield from _headers(text, lowered, words)
        if any(sign in words for sign in _PHRASED):
            for found in around(_pattern("phrase_key"), lowered, _PHRASED, 40):
                mark = _pattern("separator").match(lowered, found.end())
                phrase = _pattern("phrase").match(lowered, mark.end()) if mark else None
                long = phrase is not None and phrase[0].count(" ") >= 11
                if phrase and (long or found[0] == "passphrase") and _is_passphrase(phrase[0].replace("-", " ")):
                    yield *phrase.span(), "seed-phrase" if long else "passphrase"
        # Sixty-four digits. Every eighth character tells where so long a run can be at all.
        for run in compiled("[0-9a-f]{7,}+").finditer(lowered[::8]) if compiled("[0-9a-f]{64}").search(words) else ():
            first, last = max(0, 8 * run.start() - 12), 8 * run.end() + 12
            for found in _pattern("long_hex").finditer(lowered, first, last):
                before = _line_before(lowered, found.start("secret"))[-60:]
                if _pattern("context").search(before) and not _pattern("digest").search(before):
                    yield *found.span("secret"), "hex-token"
    yield from own(text, patterns)


def own(text: str, patterns: Patterns) -> Iterator[Found]:
    """What the owner's own patterns find."""
    for pattern in patterns:
        yield from ((*found.span(), "custom") for found in pattern.finditer(text) if found[0])


def apart(text: str, found: Iterable[Found]) -> list[Found]:
    """The finds, overlapping ones as one of the kind that begins first; in a crowd also what stands between them."""
    kept: list[Found] = []
    ordered = sorted(found, key=lambda each: (each[0], -each[1]))
    gap = _GAP if len(ordered) > _CROWD + len(text) // _OFTEN else 0
    first, last, name = -1, -1 - gap, ""
    for start, end, kind in ordered:
        if start >= last + gap or (start > last and text.find(BORDER, last, start) >= 0):
            if name:
                kept.append((first, last, name))
            first, last, name = start, end, kind
        elif end > last:
            last = end
    return [*kept, (first, last, name)] if name else kept


# -- by their shape ----------------------------------------------------------------------------------------------------------

_NEARBY = 400  # characters around an access key in which its secret half is looked for


def _of_shape(text: str, shape: Shape) -> Iterator[Found]:
    pattern, kind = compiled(shape.pattern), shape.kind
    group = "secret" if "secret" in pattern.groupindex else 0
    owners = list[int]()
    for found in pattern.finditer(text):
        start, end = found.span(group)
        if shape.head:
            head = compiled(shape.head).match(text[max(0, start - 60) : start][::-1])
            if head is None:
                continue
            start -= head.end()
        before = text[max(0, found.start() - 200) : found.start()] if shape.line else ""
        if shape.line and not compiled(shape.line).search(before.rpartition("\n")[2]):
            continue
        # A key that is made of crosses, as in a manual, or is only a long name, is none.
        value, needs = text[start:end], kind in ("telegram-token", "discord-token")
        if not _pattern("dummy").fullmatch(value) and (not needs or _pattern("mixed").match(value)):
            yield start, end, kind
        if kind == "aws-access-key":
            owners.append(start)
    for half in _pattern("aws_secret").finditer(text) if owners else ():
        near = bisect_left(owners, half.start() - _NEARBY)
        if near < len(owners) and owners[near] <= half.end() + _NEARBY:
            yield *half.span(), "aws-secret-key"


def _private_keys(text: str, sort: str) -> Iterator[Found]:
    """Where private keys stand. A begin mark that no key follows, as in a manual, is none."""
    begins, ends, body = _pattern(f"{sort}_begin"), _pattern(f"{sort}_end"), _pattern("pem_body")
    begin, close = begins.search(text), ends.search(text)
    while begin:
        start, inner, following = begin.start(), begin.end(), begins.search(text, begin.end())
        if close and close.start() < inner:
            close = ends.search(text, inner)
        whole = close and close.end() <= start + 20_000 and text.find(BORDER, inner, close.start()) < 0
        own = following.start() if following else len(text)  # each mark is answered by what stands before the next
        found = close if whole else _pattern("pem_lines").match(text, inner, own)
        if found and body.search(text, inner, min(found.end(), own)):
            yield start, found.end(), "private-key"
            following = begins.search(text, found.end())
        begin = following


# -- by their surroundings: "password: …", "api_key = …", "the passphrase is …" ----------------------------------------------

_LETTER, _DIGIT = r"[^\W\d_]", r"\d"
_KINDS = {Grade.PASSWORD: "password", Grade.CODE: "password", Grade.KEY: "api-key", Grade.WEAK: "token"}

_CLOSING = {'"': '"', "'": "'", "`": "`", "“": "”", "”": "”", "«": "»", "„": "“", "「": "」", "*": "*"}
_AFTER = ".,:)]}'\"`*»”>。、，！？；」』"  # punctuation that ends a sentence rather than a secret


class _Value(NamedTuple):
    text: str
    start: int
    direct: bool  # nothing stands between the word and the separator
    quoted: bool
    assigned: bool  # by a colon or an equals sign
    alone: bool  # nothing follows on its line
    purpose: bool = False  # between word and separator it says what the secret is for


_PAIRED = ("credenc", "credential", "zugangsdaten", "login", "acceso", "identifiant")
_PHRASED = ("phrase", "frase", "mnemonic", "words", "seed")
_SURE = 400  # characters for each value that is weighed, beyond the first of them


def _crowd(text: str) -> Iterator[Found]:
    """Whatever can be a value, in a text that is too crowded to weigh each of them."""
    first = last = count = 0
    for found in _pattern("crowd").finditer(text):
        start, end = found.span(found.lastgroup or 0)
        if last and (start > last + _GAP or text.find(BORDER, last, start) >= 0):
            yield first, last, CROWDED
            last, count = 0, count + 1
            if count == 1_000:  # so many apart from one another, and nothing of the text is kept
                raise _Overcrowded
        first, last = (first if last else start), end
    if last:
        yield first, last, CROWDED


def _headers(text: str, lowered: str, words: str) -> Iterator[Found]:
    for kind, (sign, pattern) in table("secrets")["headers"].items():
        for found in _pattern(pattern).finditer(lowered) if sign in words else ():
            start, end = found.span("secret")
            value = text[start:end]
            is_mixed = compiled(_LETTER).search(value) and compiled(_DIGIT).search(value)
            if is_mixed and not _pattern("reference").match(found["secret"]):
                yield start, end, kind


def _by_words(text: str, lowered: str, words: str) -> Generator[Found, None, bool]:
    """Values behind words; says whether there were too many to weigh each of them."""
    for count, at in enumerate(chain(_words(lowered, words), _elsewhere(text, lowered, words)), start=-_CROWD):
        if at is None or count * _SURE > len(text):
            yield from _crowd(text)
            return True
        end, grade = at
        if grade is None:
            value, grade = _value_at(text, end, "", direct=True, assigned=True), Grade.CODE
        else:
            value = _value_after(text, lowered, end, grade) or _bare_value(text, end, grade)
        if value and _is_secret(value, grade, _line_before(lowered, value.start)):
            kind = "hex-token" if _pattern("hex_64").fullmatch(value.text) else _KINDS[grade]
            yield value.start, value.start + len(value.text), kind
    return False


def _words(lowered: str, words: str) -> Iterator[tuple[int, Grade] | None]:
    """Where a word for a secret ends that a value seems to follow, and how strong it is; None, where there are too many."""
    tails, ahead, bare = _pattern("tail"), _pattern("ahead"), _pattern("bare")
    count, many = 0, max(_CROWD, len(lowered) // _SURE)
    for group, pattern in [each[2:] for each in _keywords() if each[1] in words]:
        value = _pattern("value" if group in ("password", "code") else "key_value")
        for word in compiled(pattern).finditer(lowered):
            count += 1
            if count == many:
                told = sum(lowered.count(each[0]) for each in _keywords())
                if told > _CROWD + len(lowered) // 16:  # so dense, they leave no room for anything else
                    yield None
                    return
            tail = tails.match(lowered, word.end())
            end = tail.end() if tail else word.end()
            mark = ahead.search(lowered, end, end + 52)  # no farther behind a word
            if (mark is None or not value.match(lowered, mark.end())) and not bare.match(lowered, end):
                continue
            if grade := _grade(lowered, word, group, lowered[word.end() : end]):
                yield end, grade


def _elsewhere(text: str, lowered: str, words: str) -> Iterator[tuple[int, None]]:
    """Where a password begins that is an option of a command, the second of a pair, or the number of a card."""
    if "--" in words:
        yield from ((found.end(), None) for found in _pattern("flag").finditer(lowered))
    if any(sign in words for sign in _PAIRED):
        yield from ((found.start("secret"), None) for found in around(_pattern("pair"), lowered, _PAIRED, 160))
    if "pin" in words:
        yield from ((found.start("secret"), None) for found in _pattern("pin").finditer(text))


def _grade(lowered: str, word: re.Match[str], group: str, tail: str) -> Grade | None:
    """How strong the word is where it stands; "key", "code" and "pass" by themselves are nothing."""
    before = lowered[max(0, word.start() - 14) : word.start()]
    if _pattern("about").match(lowered, word.end()):
        return None
    if group == "password":
        return Grade.PASSWORD if word[0] != "pass" or _pattern("of_service").search(before) else None
    if group == "code":
        return Grade.CODE if word[0] != "code" or _pattern("code_of").search(before) else None
    stem = before[:-1] if before[-1:] in (" ", "_", "-") else before
    of_id = stem.endswith("id") and not (stem[-3:-2].isalnum() or stem[-3:-2] == "_")
    if of_id or stem.endswith(tuple(_words_for("qualified"))) or tail.endswith(("_key", "_token", "_secret")):
        return Grade.KEY
    return Grade.WEAK if group == "weak" or before.endswith("_") else None


def _line_before(lowered: str, at: int) -> str:
    return lowered[max(lowered.rfind("\n", max(0, at - 120), at) + 1, at - 120, 0) : at]


def _value_after(text: str, lowered: str, end: int, grade: Grade) -> _Value | None:
    mark = _pattern("separator").match(lowered, end)
    if mark is None or mark["open"] in ('""', "''", "``") or (mark["mark"].strip() == ">" and mark["mark"] != ">"):
        return None
    assigned = mark["mark"].strip() in (":", "=", ":=", "=>", "：", "＝", ">")
    direct = not mark["gap"].strip(" \"'`*_()[]")
    if not direct and (_pattern("aside").search(mark["gap"]) or mark["mark"].strip() in ("to", "auf")):
        return None
    value = _value_at(text, mark.end(), mark["open"], direct=direct, assigned=assigned)
    if value and _pattern("purpose").match(mark["gap"]):
        value = value._replace(purpose=True)
    if value and not value.quoted and grade < Grade.CODE:
        key = _pattern("key").match(value.text)
        value = value._replace(text=key[0]) if key else None
    return value


def _bare_value(text: str, end: int, grade: Grade) -> _Value | None:
    """A value right after the word, with nothing between them, that cannot be a word itself."""
    bare = _pattern("bare").match(text, end)
    if bare is None or not (compiled(_LETTER).search(bare[1]) and compiled(_DIGIT).search(bare[1])):
        return None
    sure = grade is Grade.PASSWORD or (grade is Grade.KEY and len(bare[1]) >= 20 and _entropy(bare[1]) >= 3.5)
    return _Value(bare[1], bare.start(1), True, False, False, False) if sure else None


def _value_at(text: str, start: int, opening: str, *, direct: bool, assigned: bool) -> _Value | None:
    closing = _CLOSING.get(opening[-1:], "")
    end = text.find(closing, start, start + 200) if closing else -1
    if end > start and "\n" not in text[start:end]:
        return _Value(text[start:end], start, direct, True, assigned, True)
    token = _pattern("token").match(text, start)
    if token is None:
        return None
    word = token[0].partition(";")[0].rstrip(_AFTER)
    rest = text[start + len(word) : start + len(word) + 40].partition("\n")[0].strip(f" \t\r;{_AFTER}")
    return _Value(word, start, direct, False, assigned, not rest)


def _is_secret(value: _Value, grade: Grade, before: str) -> bool:
    text, low = value.text, value.text.lower()
    is_named = low in _words_for("technical") or low in _words_for("plain")
    if len(text) < 4 or is_named or _pattern("reference").match(low):
        return False
    if " " in text or (not value.quoted and _pattern("call").search(text)):
        return value.quoted and grade is Grade.PASSWORD and _is_passphrase(text)
    if _pattern("hex").fullmatch(low) and len(low) >= 16:
        return grade > Grade.WEAK or (len(low) >= 32 and not _pattern("digest").search(before))
    if _pattern("uuid").fullmatch(low):
        return grade > Grade.WEAK and value.direct
    return _is_password(value, grade) if grade >= Grade.CODE else _is_key(value, grade)


def _is_password(value: _Value, grade: Grade) -> bool:
    text, low = value.text, value.text.lower()
    if text.isdigit():
        return not _pattern("year").fullmatch(text) and (value.direct or (value.purpose and len(text) >= 6))
    if _pattern("quantity").fullmatch(low):
        return False
    symbols = compiled(r"[\x00-\x26\x28-\x2b:-@\[-^`{-\x7f]")
    if compiled(_LETTER).search(text) and (compiled(_DIGIT).search(text) or symbols.search(text)):
        return len(text) >= (5 if value.direct else 6)
    if low.count("-") >= 3 or grade is Grade.CODE:
        return value.direct and grade is Grade.PASSWORD
    return value.direct and text.isalpha() and len(text) >= 6 and (value.quoted or (value.assigned and value.alone))


def _is_key(value: _Value, grade: Grade) -> bool:
    text = value.text
    enough = 16 if grade is Grade.WEAK or not value.direct else 8
    if len(text) < enough or _pattern("quantity").fullmatch(text.lower()) or not compiled(_LETTER).search(text):
        return False
    if not compiled(_DIGIT).search(text):
        return (
            len(text) >= 20 and text.isalpha() and not text.islower() and not text.isupper() and _entropy(text) >= 3.8
        )
    if _pattern("name").fullmatch(text) and sum(map(str.isdigit, text)) * 4 < len(text):
        return False
    return _entropy(text) >= (3.0 if enough == 16 else 2.5) and "://" not in text


def _is_passphrase(text: str) -> bool:
    words = text.lower().split()
    return len(words) >= 3 and words[0] not in _words_for("plain") and _words_for("small").isdisjoint(words)


def _entropy(text: str) -> float:
    """Bits per character, by how often each character occurs."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def _plain_lower(text: str) -> str:
    """Lower case with every character in its old place."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.replace("\u0130", "I").lower()
