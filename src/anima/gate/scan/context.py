"""Secrets that only their surroundings give away: "password: …", "api_key = …", "the passphrase is …".

Promise: few false alarms. A commit, a UUID, a digest, a reference to a vault, a type, a placeholder and "password: ask
Ana" are none. Words are known in English, Spanish, German, French, Portuguese, Italian and some other languages.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from anima.gate.scan.lazy import lazy
from anima.gate.scan.letters import long_words, plain_lower


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A quick look for one of these spares most texts everything else.
_SIGNS = _words(
    """
    pass pwd token secret key credential phrase frase mnemonic bearer authorization seed contrase clave kennwort
    schlüssel geheim senha segredo wachtwoord jeton clé parola chave chiave hasło şifre пароль
    密码 密碼 口令 パスワード 비밀번호 zugang acceso accès identifiant credenc login code
    """
)


class Grade(IntEnum):
    """How strongly a word says that a secret follows."""

    WEAK = 1  # token, secret
    KEY = 2  # api key, client secret
    CODE = 3  # access code, clave: may be a password, or a word about something else
    PASSWORD = 4


# Each begins with its sign: a search for plain letters is the fastest there is.
_KEYWORDS: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("pass", "password", lazy(r"pass(?:word|wd|wort|phrase|code|(?=[\s\"']{0,2}[:=]))")),
    ("contrase", "password", lazy(r"contrase[ñn]a")),
    ("has", "password", lazy(r"has[łl]o\b")),
    *(
        (word, "password", lazy(re.escape(word)))
        for word in ("pwd", "kennwort", "mot de passe", "senha", "palavra-passe", "parola d'ordine", "wachtwoord")
    ),
    *((word, "password", lazy(word)) for word in ("şifre", "пароль", "密码", "密碼", "口令", "パスワード", "비밀번호")),
    *((word, "code", lazy(word)) for word in ("clave", "code", "código de acceso", "codigo de acceso", "zugangscode")),
    *((word, "key", lazy(word)) for word in ("key", "schlüssel")),
    ("secret", "weak", lazy(r"secreto?")),
    *((word, "weak", lazy(word)) for word in ("token", "geheimnis", "credential", "jeton", "segredo")),
    *((word, "weak", lazy(word)) for word in ("clé", "chave", "chiave")),
)
_CODE_OF = lazy(r"(?:access|door|alarm|gate|entry|unlock) $")
# What makes "key" the name of a secret, and "token" or "secret" a sure one.
_QUALIFIED = lazy(
    r"(?:api|access|auth|secret|private|signing|encryption|master|session|deploy|account|license|service|webhook|client|app"
    r"|consumer|shared|bearer|refresh|bot|\bid|oauth|zugangs)[ _-]?$"
)
_OF_SERVICE = lazy(r"(?:db|root|admin|wi-?fi|user|ssh|ftp|smtp|mail|sudo|router|[a-z0-9]_)[ -]?$")
_KINDS = {Grade.PASSWORD: "password", Grade.CODE: "password", Grade.KEY: "api-key", Grade.WEAK: "token"}

# What turns the name of a secret into the name of something about it.
_ABOUT = lazy(
    r"[_-]?(?:hash|type|name|id|file|path|url|uri|count|limit|len|size|polic|field|env|manager|reset|store|min|max|ttl"
    r"|expir|budget|usage|rotat|version|less|ize|isation|ization|iz|ary|aría|arial|hint|length|required|prompt|format)"
)
_TAIL = lazy(r"[a-z0-9_-]{0,30}+")
_SEPARATOR = lazy(
    r"[\"'`*_)\]]{0,3}(?P<gap>[^\n:=<>{}$@/]{0,40}?)"
    r"(?P<mark>[ \t]{0,3}(?::=|=>|->|[:=>：＝])[ \t]{0,3}"
    r"|[ \t]{1,3}(?:is|was|to|es|era|ist|lautet|war|auf|est|é|è|jest)"
    r"(?:[ \t](?:now|ahora|jetzt|currently|still|maintenant))?:?[ \t]{1,3}|[ \t]{0,2}(?:是|为|為|は)[ \t]{0,2}:?)"
    r"(?P<open>[\"'`*“”«„「]{0,3})"
)
# Between the word and the separator: what follows is about a secret, or is somebody's name.
_PURPOSE = lazy(r"[ \t](?:for|of|to|de|del|de la|für|zum|zur|pour|du|do|da|per)\b")
_ASIDE = lazy(
    r"\b(?:by|user|username|login|account|expires?|changed|reset|length|ticket|requested|policy|manager|rotat\w*|hash|hint"
    r"|field|rules?|strength|usuario|benutzer|utilisateur)\b"
)
_PIN = lazy(r"\bPIN\b[ \t]{0,2}(?::|=|is|es|ist|est)[ \t]{0,2}(?P<secret>\d{4})(?!\w)")
_FLAG = lazy(r"(?<=--)(?:password|passwd|pass|token|secret|api-key|apikey|auth-token|access-token)[ =]{1,2}")
_CLOSING = {'"': '"', "'": "'", "`": "`", "“": "”", "”": "”", "«": "»", "„": "“", "「": "」", "*": "*"}
_BARE = lazy(r"[ \t]{1,2}([A-Za-z0-9!#$%&*+_@-]{6,128}+)(?=[\s.,;)]|$)")
_PAIR = lazy(
    r"(?:credentials?|zugangsdaten|logins?|accesos?|identifiants|credenciais|credenciales)[ \t]{0,2}:[ \t]{0,2}"
    r"[\w.@-]{2,40}+[ \t]{0,2}[/:|][ \t]{0,2}(?P<secret>[^\s/]{5,64}+)"
)
_KEY = lazy(r"[^&,|?=]+={0,2}")
_AFTER = ".,:)]}'\"`*»”>。、，！？；」』"  # punctuation that ends a sentence rather than a secret
_TOKEN = lazy(r"[^\s<]{1,256}+")

_REFERENCE = lazy(
    r"[$<{\[(%@~…]|[bfru]{1,2}[\"']|\.\.\.|\*{2,}|[x•·_-]{3,}$|your|my[-_ ]|example|change[-_ ]?me|replace|insert|todo"
    r"|tbd|env[:.(\[]|os\.|process\.|import\.|self\.|this\.|config|settings|vault|op:|pass:|keyring|keychain"
    r"|secrets?[.\[(:/_]|ssm|arn:|file:|path:|https?:|/|\./|optional|redacted|getenv|getpass|[a-z_]+\(|[a-z_.]+\["
    r"|[\w.+-]+@[\w-]+\.[a-z]"
)
_QUANTITY = lazy(
    r"(?:v|q|h|w|kw)?\d{1,4}(?:[.,:/_-]\d{1,4})*(?:[-+%]|st|nd|rd|th|[a-z]|[kmgt]i?b|ms|am|pm|px|km|kg|cm|mm|days?|weeks?|months?|chars?|bits?|min|sec"
    r"|hrs?|tokens?|[tz][\d:.+z-]*)?|#?\d+|[a-z]{2,6}-\d{1,6}|q[1-4][-/]?\d{2,4}|\d{4}-\d\d-\d\dt?[\d:.z+-]*"
    r"|\d{1,3}(?:[.,]\d{3})+"
)
_CALL = lazy(r"\w\(|\(\)|\{\}|\w\[")
_YEAR = lazy(r"(?:19|20)\d\d")
_UUID = lazy(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_HEX = lazy(r"(?:0x)?[0-9a-f]+")
_LONG_HEX = lazy(r"[0-9a-f]{64}(?![0-9a-z])")
_HEX_64 = lazy(r"(?:0x)?[0-9a-fA-F]{64}")
_DIGEST = lazy(r"sha-?\d|checksum|digest|hash|commit|integrity|fingerprint|etag|md5|revision|blake|\brev\b|merkle|txid")
_CONTEXT = lazy(r"token|secret|key|seed|private|password|bearer|wallet|credential|clave|schlüssel|passwort")
_NAME = lazy(r"[a-z]+(?:[-_.][a-z0-9]+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[a-z]+\d{0,2}")
_TECHNICAL = _words(
    """
    1password 2fa oauth oauth2 sha1 sha256 sha512 argon2 argon2id argon2i pbkdf2 md5 base64 utf8 utf-8 ipv4 ipv6 k8s
    s3 ed25519 rsa2048 rsa4096 aes128 aes256 p256 hs256 rs256 es256 bcrypt scrypt totp fido2 webauthn 2-factor u2f
    x509 base32 base58 hmac-sha256 jwt1 http2 log4j web3 auth0 id_rsa id_ed25519 .env keepass2 md5crypt sha-256
    ps256
    """
)
_PLAIN = _words(
    """
    required optional unchanged changed rotated expired unknown missing forgotten string number integer boolean
    bearer basic invalid incorrect wrong valid secret hidden private public default disabled enabled pending shared
    stored encrypted hashed password passwort username nothing something anything rotation strength generator
    manager reset policy protected needed updated removed revoked deleted confirmed verified accepted rejected
    refused failed success successful locked unlocked managed external internal manual automatic random generated
    ephemeral temporary permanent keychain bitwarden lastpass keepass keepassxc dashlane onepassword vaultwarden
    authenticator olvidada pendiente cambiada desconocida guardada ninguna obligatoria vergessen geändert unbekannt
    keines erforderlich gespeichert oubliée changée inconnue requis aucune esquecida alterada nenhuma dimenticata
    cambiata nessuna elsewhere somewhere offline separately verbally above below yesterday today tomorrow biometric
    fingerprint authentication authorization plaintext placeholder environment variable undefined mandatory
    memorized written
    """
)
_FUNCTION_WORDS = _words(
    """
    the a an in on at of to is are was were with by for and or not my his her our their your from under it its that
    which be been has have had will would should can could must too very so as if but no only we you he she they i
    this these when el la los las de del en un una y o con por para que es se al lo su der die das ein eine und oder
    mit von zu im ist nicht le les des du et ou avec pour dans est pas il e os um uma em do da dos ask see
    """
)
_PHRASE_KEY = lazy(
    r"(?:seed|recovery|secret|backup|wallet|mnemonic)[ _-]?(?:recovery )?(?:phrase|words|seed)|mnemonic|passphrase"
    r"|frase (?:semilla|de recuperaci[oó]n|secreta)|wiederherstellungsphrase|phrase (?:de récupération|secrète)"
)
_PHRASE = lazy(r"[^\W\d_]{3,12}(?:[ -][^\W\d_]{3,12}){2,23}(?=\s{0,2}(?:$|[\n.;,()\"'`”»*]))")
_BEARER = lazy(r"bearer\s{1,3}(?P<secret>[a-z0-9._~+/-]{12,}+=*)")
_BASIC = lazy(
    r"authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:basic|token|apikey|digest)\s{1,3}(?P<secret>[a-z0-9._~+/-]{8,}+=*)"
)
_QUERY = lazy(
    r"[?&](?:access_token|api_key|apikey|token|key|secret|signature|password|auth|code)="
    r"(?P<secret>[^&\s#\"'<>)\]]{12,512}+)"
)

Found = tuple[int, int, str]


class _Value(NamedTuple):
    text: str
    start: int
    direct: bool  # nothing stands between the word and the separator
    quoted: bool
    assigned: bool  # by a colon or an equals sign
    alone: bool  # nothing follows on its line
    purpose: bool = False  # between word and separator it says what the secret is for


def in_context(text: str) -> Iterator[Found]:
    """Values that the words before them call a secret."""
    lowered = plain_lower(text)
    if not any(sign in lowered for sign in _SIGNS) and "PIN" not in text:
        return
    yield from _headers(text, lowered)
    yield from _named(text, lowered)
    if any(sign in lowered for sign in ("phrase", "frase", "mnemonic", "words", "seed")):
        yield from _phrases(lowered)
    if _LONG_HEX.search(long_words(lowered, 64)):
        yield from _long_hex(lowered)


def _headers(text: str, lowered: str) -> Iterator[Found]:
    for kind, sign, pattern in (
        ("bearer-token", "bearer", _BEARER),
        ("basic-auth", "authorization", _BASIC),
        ("token", "?", _QUERY),
    ):
        for found in pattern.finditer(lowered) if sign in lowered else ():
            start, end = found.span("secret")
            value = text[start:end]
            if _has_letter(value) and _has_digit(value) and not _REFERENCE.match(found["secret"]):
                yield start, end, kind


def _named(text: str, lowered: str) -> Iterator[Found]:
    for sign, group, pattern in _KEYWORDS:
        for word in pattern.finditer(lowered) if sign in lowered else ():
            tail = _TAIL.match(lowered, word.end())
            end = tail.end() if tail else word.end()
            grade = _grade(lowered, word, group, lowered[word.end() : end])
            value = _value_after(text, lowered, end, grade) or _bare_value(text, end, grade) if grade else None
            if grade and value and _is_secret(value, grade, _line_before(lowered, value.start)):
                yield value.start, value.start + len(value.text), _kind(grade, value.text)
    for at in _elsewhere(text, lowered):
        value = _value_at(text, at, "", direct=True, assigned=True)
        if value and _is_secret(value, Grade.CODE, ""):
            yield value.start, value.start + len(value.text), "password"


def _elsewhere(text: str, lowered: str) -> Iterator[int]:
    """Where a password begins that is an option of a command, the second of a pair, or the number of a card."""
    yield from (found.end() for found in (_FLAG.finditer(lowered) if "--" in lowered else ()))
    if any(sign in lowered for sign in ("credenc", "credential", "zugangsdaten", "login", "acceso", "identifiant")):
        yield from (found.start("secret") for found in _PAIR.finditer(lowered))
    yield from (found.start("secret") for found in (_PIN.finditer(text) if "PIN" in text else ()))


def _grade(lowered: str, word: re.Match[str], group: str, tail: str) -> Grade | None:
    """How strong the word is where it stands; "key", "code" and "pass" by themselves are nothing."""
    before = lowered[max(0, word.start() - 14) : word.start()]
    if _ABOUT.match(lowered, word.end()):
        return None
    if group == "password":
        return Grade.PASSWORD if word[0] != "pass" or _OF_SERVICE.search(before) else None
    if group == "code":
        return Grade.CODE if word[0] != "code" or _CODE_OF.search(before) else None
    if _QUALIFIED.search(before) or tail.endswith(("_key", "_token", "_secret")):
        return Grade.KEY
    return Grade.WEAK if group == "weak" or before.endswith("_") else None


def _kind(grade: Grade, value: str) -> str:
    return "hex-token" if _HEX_64.fullmatch(value) else _KINDS[grade]


def _line_before(lowered: str, at: int) -> str:
    return lowered[max(lowered.rfind("\n", max(0, at - 120), at) + 1, at - 120, 0) : at]


def _value_after(text: str, lowered: str, end: int, grade: Grade) -> _Value | None:
    mark = _SEPARATOR.match(lowered, end)
    if mark is None or _is_empty(mark["open"]) or (mark["mark"].strip() == ">" and mark["mark"] != ">"):
        return None
    assigned = mark["mark"].strip() in (":", "=", ":=", "=>", "：", "＝", ">")
    direct = not mark["gap"].strip(" \"'`*_()[]")
    if not direct and (_ASIDE.search(mark["gap"]) or mark["mark"].strip() in ("to", "auf")):
        return None
    value = _value_at(text, mark.end(), mark["open"], direct=direct, assigned=assigned)
    if value and _PURPOSE.match(mark["gap"]):
        value = value._replace(purpose=True)
    if value and not value.quoted and grade < Grade.CODE:
        key = _KEY.match(value.text)
        value = value._replace(text=key[0]) if key else None
    return value


def _bare_value(text: str, end: int, grade: Grade) -> _Value | None:
    """A value right after the word, with nothing between them, that cannot be a word itself."""
    bare = _BARE.match(text, end)
    if bare is None or not (_has_letter(bare[1]) and _has_digit(bare[1])):
        return None
    sure = grade is Grade.PASSWORD or (grade is Grade.KEY and len(bare[1]) >= 20 and entropy(bare[1]) >= 3.5)
    return _Value(bare[1], bare.start(1), True, False, False, False) if sure else None


def _is_empty(opening: str) -> bool:
    return opening in ('""', "''", "``")


def _value_at(text: str, start: int, opening: str, *, direct: bool, assigned: bool) -> _Value | None:
    closing = _CLOSING.get(opening[-1:], "")
    end = text.find(closing, start, start + 200) if closing else -1
    if end > start and "\n" not in text[start:end]:
        return _Value(text[start:end], start, direct, True, assigned, True)
    token = _TOKEN.match(text, start)
    if token is None:
        return None
    word = token[0].partition(";")[0].rstrip(_AFTER)
    rest = text[start + len(word) : start + len(word) + 40].partition("\n")[0].strip(f" \t\r;{_AFTER}")
    return _Value(word, start, direct, False, assigned, not rest)


def _is_secret(value: _Value, grade: Grade, before: str) -> bool:
    text, low = value.text, value.text.lower()
    if len(text) < 4 or _REFERENCE.match(low) or low in _TECHNICAL or low in _PLAIN:
        return False
    if " " in text or (not value.quoted and _CALL.search(text)):
        return value.quoted and grade is Grade.PASSWORD and _is_passphrase(text)
    if _HEX.fullmatch(low) and len(low) >= 16:
        return grade > Grade.WEAK or (len(low) >= 32 and not _DIGEST.search(before))
    if _UUID.fullmatch(low):
        return grade > Grade.WEAK and value.direct
    return _is_password(value, grade) if grade >= Grade.CODE else _is_key(value, grade)


def _is_password(value: _Value, grade: Grade) -> bool:
    text, low = value.text, value.text.lower()
    if text.isdigit():
        return not _YEAR.fullmatch(text) and (value.direct or (value.purpose and len(text) >= 6))
    if _QUANTITY.fullmatch(low):
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
    if len(text) < enough or _QUANTITY.fullmatch(text.lower()) or not _has_letter(text):
        return False
    if not _has_digit(text):
        return len(text) >= 20 and text.isalpha() and not text.islower() and not text.isupper() and entropy(text) >= 3.8
    if _NAME.fullmatch(text) and sum(map(str.isdigit, text)) * 4 < len(text):
        return False
    return entropy(text) >= (3.0 if enough == 16 else 2.5) and "://" not in text


def _is_passphrase(text: str) -> bool:
    words = text.lower().split()
    return len(words) >= 3 and words[0] not in _PLAIN and _FUNCTION_WORDS.isdisjoint(words)


def _phrases(lowered: str) -> Iterator[Found]:
    for found in _PHRASE_KEY.finditer(lowered):
        mark = _SEPARATOR.match(lowered, found.end())
        phrase = _PHRASE.match(lowered, mark.end()) if mark else None
        long = phrase is not None and phrase[0].count(" ") >= 11
        if phrase and (long or found[0] == "passphrase") and _is_passphrase(phrase[0].replace("-", " ")):
            yield *phrase.span(), "seed-phrase" if long else "passphrase"


def _long_hex(lowered: str) -> Iterator[Found]:
    for found in _LONG_HEX.finditer(lowered):
        before = _line_before(lowered, found.start())[-60:]
        if _CONTEXT.search(before) and not _DIGEST.search(before) and not re.search(r"(?<!\b0x)\w$", before):
            yield *found.span(), "hex-token"


def entropy(text: str) -> float:
    """Bits per character, by how often each character occurs."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def _has_letter(text: str) -> bool:
    return any(c.isalpha() for c in text)


def _has_digit(text: str) -> bool:
    return any(c.isdigit() for c in text)
