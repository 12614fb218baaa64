"""Secrets: keys and passwords that have no business in a memory, and the text without them.

Promise: `redact` leaves no finding behind, never touches a placeholder, and does the same when done twice. A finding
shows a few first characters and no more. Few false alarms: a commit, a UUID, a digest, a reference to a vault, a type, a
placeholder and "password: ask Ana" are none. Built-in rules read a text in linear time; the owner's own patterns are as
fast as the owner wrote them. Not here: the shapes of keys and the words (tables/secrets.toml), and what becomes of a text
with a secret, which is the gate's to say.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cache
from re import Pattern
from typing import Any, NamedTuple

from anima.errors import BadConfig
from anima.gate.scan.sights import Sighting, compiled, findings, long_words, plain_lower
from anima.model import Finding, Severity
from anima.text.words import one_line, read_table, visible, word_set

PLACEHOLDER = re.compile(r"\[REDACTED:[A-Za-z0-9_-]{1,40}\]")
_LEAST_SECRET = 4
_ROUNDS = 8  # one removed secret can lay another bare
_SHORTEST_KEY = 15

Found = tuple[int, int, str]


class Shape(NamedTuple):
    """A key that says by its shape whose it is: the table has them all."""

    kind: str
    pattern: str


class Grade(IntEnum):
    """How strongly a word says that a secret follows."""

    WEAK = 1  # token, secret
    KEY = 2  # api key, client secret
    CODE = 3  # access code, clave: may be a password, or a word about something else
    PASSWORD = 4


class _Table(NamedTuple):
    """The table, made ready: signs with the shapes or keywords behind them, and words."""

    in_keys: tuple[tuple[str, Shape], ...]  # signs that are part of a long word
    in_prose: tuple[tuple[str, Shape], ...]  # signs that may be a short word of their own
    keywords: tuple[tuple[str, str, str], ...]  # sign, group, pattern
    signs: frozenset[str]
    technical: frozenset[str]
    plain: frozenset[str]
    small: frozenset[str]
    patterns: dict[str, str]


@cache
def _table() -> _Table:
    raw = read_table("gate/scan", "secrets")
    prose, forms = raw["prose"].split(), raw["forms"]
    shapes = [
        (sign, Shape(row["kind"], one_line(row["pattern"])))
        for row in raw["shapes"]
        for sign in row["signs"].split(" ")
    ]
    return _Table(
        tuple(pair for pair in shapes if pair[0] not in prose),
        tuple(pair for pair in shapes if pair[0] in prose),
        tuple(
            (sign, group, forms.get(sign, re.escape(sign)))
            for group, signs in raw["keywords"].items()
            for sign in signs
        ),
        **{name: word_set(words) for name, words in raw["words"].items()},
        patterns=raw["patterns"],
    )


@cache
def _pattern(name: str) -> Pattern[str]:
    """A pattern of the table, compiled when first used: most texts never need most of them."""
    return re.compile(one_line(_table().patterns[name]))


def find_secrets(text: str) -> tuple[Finding, ...]:
    """The secrets of a text, masked."""
    return findings(text, spans(text))


def redact(text: str, patterns: Sequence[Pattern[str]] = ()) -> tuple[str, tuple[Finding, ...]]:
    """The text with each secret replaced by `[REDACTED:<kind>]`, and what was found, placed in the given text."""
    found = _all(text, patterns)
    if not found:
        return text, ()
    pieces, at = [], 0
    for start, end, kind in found:
        pieces += [text[at:start], f"[REDACTED:{kind}]"]
        at = end
    return "".join([*pieces, text[at:]]), findings(text, _spans(text, found))


def redact_said(text: str, patterns: Sequence[Pattern[str]] = ()) -> tuple[str, tuple[Finding, ...]]:
    """As `redact`, and where the text is JSON, as tools answer, each of its strings is looked at by itself as well.

    Quotes, brackets and escapes (`contrase\\u00f1a`) can hide what stands around a secret and gives it away.
    """
    shown, found = redact(text, patterns)
    for leaf in _leaves(text):
        for finding in redact(leaf, patterns)[1]:
            secret, kind = leaf[finding.start : finding.end], finding.kind.partition(":")[2]
            for spelt in {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}:
                if len(spelt) >= _LEAST_SECRET and spelt in shown:
                    shown, found = shown.replace(spelt, f"[REDACTED:{kind}]"), (*found, finding)
    return shown, found


def _leaves(text: str) -> Iterator[str]:
    """The strings of a text that is JSON."""
    if text.lstrip()[:1] not in ("{", "["):
        return
    try:
        waiting: list[Any] = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += [*value.values(), *(f"{key}: {item}" for key, item in value.items() if isinstance(item, str))]
        elif isinstance(value, list):
            waiting += value


def compile_patterns(raw: Sequence[str]) -> tuple[Pattern[str], ...]:
    """The owner's own patterns. Raises BadConfig with the pattern that is wrong and why."""
    return tuple(_compile(pattern, f"sessions.patterns[{number}]") for number, pattern in enumerate(raw))


def _compile(pattern: str, where: str) -> Pattern[str]:
    if not isinstance(pattern, str):
        raise BadConfig(f"{pattern!r} is not text", where=where)
    try:
        own = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadConfig(f"the pattern {pattern!r} is wrong: {error}", where=where) from error
    if any(not found[0] for found in own.finditer("a b\n1-x")):
        raise BadConfig(f"the pattern {pattern!r} matches where there is nothing", where=where)
    return own


def spans(text: str) -> Iterable[Sighting]:
    """The secrets of a text as the scan shows them."""
    return _spans(text, _all(text, ()))


def placeholders(text: str) -> Iterator[Sighting]:
    """Marks that stand where a secret was struck out: harmless to read, but no words to be written back."""
    if "[REDACTED:" in text:
        for found in PLACEHOLDER.finditer(text):
            message = "the mark of a secret that was struck out"
            yield Sighting(*found.span(), "placeholder", Severity.NOTE, found[0], message)


def _spans(text: str, found: Iterable[Found]) -> Iterator[Sighting]:
    for start, end, kind in found:
        yield Sighting(start, end, f"secret:{kind}", Severity.DANGER, masked(text[start:end]), f"a secret ({kind})")


def masked(secret: str) -> str:
    """The first characters of a secret: four of a long one, fewer of a short one."""
    return visible(secret[: min(4, len(secret) // 4)]) + "…"


def _all(text: str, patterns: Sequence[Pattern[str]]) -> list[Found]:
    """Every secret, in order, none overlapping. Each piece between placeholders and secrets is looked at by itself."""
    done: list[Found] = []
    pieces = list(_between(text, 0, len(text), (found.span() for found in PLACEHOLDER.finditer(text))))
    for _ in range(_ROUNDS):
        fresh = [(piece, _apart(_in_piece(text, *piece, patterns))) for piece in pieces]
        pieces = [
            part for piece, found in fresh if found for part in _between(text, *piece, ((a, b) for a, b, _ in found))
        ]
        done += (each for _, found in fresh for each in found)
        if not pieces:
            break
    return sorted(done)


def _between(text: str, start: int, end: int, cuts: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for first, last in cuts:
        if first > start:
            yield start, first
        start = last
    if end > start:
        yield start, end


def _in_piece(text: str, start: int, end: int, patterns: Sequence[Pattern[str]]) -> Iterator[Found]:
    piece = text if start == 0 and end == len(text) else text[start:end]
    for first, last, kind in (*_shaped(piece), *_named_secrets(piece)):
        yield start + first, start + last, kind
    for pattern in patterns:
        yield from (
            (start + found.start(), start + found.end(), "custom") for found in pattern.finditer(piece) if found[0]
        )


def _apart(found: Iterable[Found]) -> list[Found]:
    """The finds, overlapping ones as one of the kind that begins first."""
    kept: list[Found] = []
    for start, end, kind in sorted(found, key=lambda each: (each[0], -each[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end, kind))
        elif end > kept[-1][1]:
            kept[-1] = (kept[-1][0], end, kept[-1][2])
    return kept


# -- by their shape ----------------------------------------------------------------------------------------------------------

_PEM_REACH = 20_000
_NEED_MIXTURE = frozenset({"telegram-token", "discord-token"})
_NEARBY = 400  # characters around an access key in which its secret half is looked for


def _shaped(text: str) -> Iterator[Found]:
    if "PRIVATE KEY" in text or "PuTTY" in text:
        yield from ((start, end, "private-key") for start, end in _private_keys(text))
    for kind, pattern in _possible_shapes(text):
        shape = compiled(pattern)
        group = "secret" if "secret" in shape.groupindex else 0
        for found in shape.finditer(text):
            if not _is_dummy(kind, found[group]):
                yield *found.span(group), kind
            if kind == "aws-access-key":
                nearby = _pattern("aws_secret").finditer(text, max(0, found.start() - _NEARBY), found.end() + _NEARBY)
                yield from ((*half.span(), "aws-secret-key") for half in nearby)


def _possible_shapes(text: str) -> Iterable[Shape]:
    """The shapes whose signs are there."""
    words = long_words(text, _SHORTEST_KEY)
    found = [shape for sign, shape in _table().in_keys if sign in words] if words else []
    return dict.fromkeys(found + [shape for sign, shape in _table().in_prose if sign in text])


def _is_dummy(kind: str, value: str) -> bool:
    """Whether a key is made of crosses, as in a manual, or is only a long name."""
    return _pattern("dummy").fullmatch(value) is not None or (
        kind in _NEED_MIXTURE and not _pattern("mixed").match(value)
    )


def _private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Where private keys stand. A begin mark that no key follows, as in a manual, is none."""
    begin, close = _pattern("pem_begin").search(text), _pattern("pem_end").search(text)
    while begin:
        if close and close.start() < begin.end():
            close = _pattern("pem_end").search(text, begin.end())
        near = close if close and close.end() - begin.start() <= _PEM_REACH else None
        found = near or _pattern("pem_lines").match(text, begin.end())
        end = found.end() if found and _pattern("pem_body").search(text, begin.end(), found.end()) else begin.end()
        if end > begin.end():
            yield begin.start(), end
        begin = _pattern("pem_begin").search(text, end)


# -- by their surroundings: "password: …", "api_key = …", "the passphrase is …" ----------------------------------------------

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


def _named_secrets(text: str) -> Iterator[Found]:
    """Values that the words before them call a secret."""
    lowered = plain_lower(text)
    if not any(sign in lowered for sign in _table().signs) and "PIN" not in text:
        return
    yield from _headers(text, lowered)
    yield from _by_words(text, lowered)
    if any(sign in lowered for sign in ("phrase", "frase", "mnemonic", "words", "seed")):
        yield from _phrases(lowered)
    if _pattern("long_hex").search(long_words(lowered, 64)):
        yield from _long_hex(lowered)


def _headers(text: str, lowered: str) -> Iterator[Found]:
    for kind, sign, pattern in (
        ("bearer-token", "bearer", "bearer"),
        ("basic-auth", "authorization", "basic"),
        ("token", "?", "query"),
    ):
        for found in _pattern(pattern).finditer(lowered) if sign in lowered else ():
            start, end = found.span("secret")
            value = text[start:end]
            if _has_letter(value) and _has_digit(value) and not _pattern("reference").match(found["secret"]):
                yield start, end, kind


def _by_words(text: str, lowered: str) -> Iterator[Found]:
    for sign, group, pattern in _table().keywords:
        for word in compiled(pattern).finditer(lowered) if sign in lowered else ():
            tail = _pattern("tail").match(lowered, word.end())
            end = tail.end() if tail else word.end()
            grade = _grade(lowered, word, group, lowered[word.end() : end])
            value = _value_after(text, lowered, end, grade) or _bare_value(text, end, grade) if grade else None
            if grade and value and _is_secret(value, grade, _line_before(lowered, value.start)):
                kind = "hex-token" if _pattern("hex_64").fullmatch(value.text) else _KINDS[grade]
                yield value.start, value.start + len(value.text), kind
    for at in _elsewhere(text, lowered):
        value = _value_at(text, at, "", direct=True, assigned=True)
        if value and _is_secret(value, Grade.CODE, ""):
            yield value.start, value.start + len(value.text), "password"


def _elsewhere(text: str, lowered: str) -> Iterator[int]:
    """Where a password begins that is an option of a command, the second of a pair, or the number of a card."""
    yield from (found.end() for found in (_pattern("flag").finditer(lowered) if "--" in lowered else ()))
    if any(sign in lowered for sign in ("credenc", "credential", "zugangsdaten", "login", "acceso", "identifiant")):
        yield from (found.start("secret") for found in _pattern("pair").finditer(lowered))
    yield from (found.start("secret") for found in (_pattern("pin").finditer(text) if "PIN" in text else ()))


def _grade(lowered: str, word: re.Match[str], group: str, tail: str) -> Grade | None:
    """How strong the word is where it stands; "key", "code" and "pass" by themselves are nothing."""
    before = lowered[max(0, word.start() - 14) : word.start()]
    if _pattern("about").match(lowered, word.end()):
        return None
    if group == "password":
        return Grade.PASSWORD if word[0] != "pass" or _pattern("of_service").search(before) else None
    if group == "code":
        return Grade.CODE if word[0] != "code" or _pattern("code_of").search(before) else None
    if _pattern("qualified").search(before) or tail.endswith(("_key", "_token", "_secret")):
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
    if bare is None or not (_has_letter(bare[1]) and _has_digit(bare[1])):
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
    if len(text) < 4 or _pattern("reference").match(low) or low in _table().technical or low in _table().plain:
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
    symbols = any(c.isascii() and not c.isalnum() and c not in "-_.'/," for c in text)
    if _has_letter(text) and (_has_digit(text) or symbols):
        return len(text) >= (5 if value.direct else 6)
    if low.count("-") >= 3 or grade is Grade.CODE:
        return value.direct and grade is Grade.PASSWORD
    return value.direct and text.isalpha() and len(text) >= 6 and (value.quoted or (value.assigned and value.alone))


def _is_key(value: _Value, grade: Grade) -> bool:
    text = value.text
    enough = 16 if grade is Grade.WEAK or not value.direct else 8
    if len(text) < enough or _pattern("quantity").fullmatch(text.lower()) or not _has_letter(text):
        return False
    if not _has_digit(text):
        return (
            len(text) >= 20 and text.isalpha() and not text.islower() and not text.isupper() and _entropy(text) >= 3.8
        )
    if _pattern("name").fullmatch(text) and sum(map(str.isdigit, text)) * 4 < len(text):
        return False
    return _entropy(text) >= (3.0 if enough == 16 else 2.5) and "://" not in text


def _is_passphrase(text: str) -> bool:
    words = text.lower().split()
    return len(words) >= 3 and words[0] not in _table().plain and _table().small.isdisjoint(words)


def _phrases(lowered: str) -> Iterator[Found]:
    for found in _pattern("phrase_key").finditer(lowered):
        mark = _pattern("separator").match(lowered, found.end())
        phrase = _pattern("phrase").match(lowered, mark.end()) if mark else None
        long = phrase is not None and phrase[0].count(" ") >= 11
        if phrase and (long or found[0] == "passphrase") and _is_passphrase(phrase[0].replace("-", " ")):
            yield *phrase.span(), "seed-phrase" if long else "passphrase"


def _long_hex(lowered: str) -> Iterator[Found]:
    for found in _pattern("long_hex").finditer(lowered):
        before = _line_before(lowered, found.start())[-60:]
        if (
            _pattern("context").search(before)
            and not _pattern("digest").search(before)
            and not re.search(r"(?<!\b0x)\w$", before)
        ):
            yield *found.span(), "hex-token"


def _entropy(text: str) -> float:
    """Bits per character, by how often each character occurs."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def _has_letter(text: str) -> bool:
    return any(c.isalpha() for c in text)


def _has_digit(text: str) -> bool:
    return any(c.isdigit() for c in text)
