"""Keys that say by their shape whose they are, and other secrets with a form of their own.

Each row is a kind, words of which the text must hold one, and a pattern; where only part of the match is secret, that
part is the group `secret`.

Promise: patterns are bounded or possessive, so each reads a text in one go.
Not here: secrets that only their surroundings give away (credentials).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from anima.gate.scan.lazy import lazy


class Shape(NamedTuple):
    kind: str
    signs: tuple[str, ...]
    pattern: re.Pattern[str]


_W = r"[A-Za-z0-9_-]"
_NOT_AFTER = r"(?<![A-Za-z0-9])"
_END = r"(?![A-Za-z0-9])"

# kind, signs, pattern
_TABLE: tuple[tuple[str, str, str], ...] = (
    ("anthropic-key", "sk-ant-", rf"sk-ant-{_W}{{16,}}+"),
    ("openai-key", "sk-proj- sk-svcacct- sk-admin-", rf"sk-(?:proj|svcacct|admin)-{_W}{{16,}}+"),
    ("openrouter-key", "sk-or-", rf"sk-or-(?:v\d-)?{_W}{{16,}}+"),
    ("openai-key", "sk-", rf"{_NOT_AFTER}sk-(?:None-)?[A-Za-z0-9]{{20,}}+"),
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{20,}+"),
    ("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}+"),
    ("gitlab-token", "gl", rf"{_NOT_AFTER}gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|oas|soat|ffct)-{_W}{{16,}}+"),
    ("aws-access-key", "AKIA ASIA ABIA ACCA", rf"{_NOT_AFTER}(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}{_END}"),
    ("google-key", "AIza", rf"{_NOT_AFTER}AIza{_W}{{30,}}+"),
    ("google-oauth", "ya29.", rf"{_NOT_AFTER}ya29\.{_W}{{20,}}+"),
    ("google-oauth", "GOCSPX-", rf"GOCSPX-{_W}{{20,}}+"),
    ("google-oauth", "1//0", rf"{_NOT_AFTER}1//0{_W}{{30,}}+"),
    ("slack-token", "xox", r"xox[abceoprs](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}+"),
    ("slack-token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{10,}+"),
    ("slack-webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{16,}+"),
    ("stripe-key", "sk_ rk_ whsec_", r"(?:[sr]k_(?:live|test|org)_[A-Za-z0-9]{10,}+|whsec_[A-Za-z0-9+/=]{16,}+)"),
    ("huggingface-token", "hf_ api_org_", r"(?<![A-Za-z0-9_])(?:hf|api_org)_[A-Za-z0-9]{24,}+"),
    ("npm-token", "npm_", r"(?<![A-Za-z0-9_])npm_[A-Za-z0-9]{30,}+"),
    ("pypi-token", "pypi-", rf"{_NOT_AFTER}pypi-{_W}{{40,}}+"),
    ("telegram-token", ":", rf"(?<![0-9A-Za-z])[0-9]{{8,12}}+:{_W}{{33,40}}+{_END}"),
    ("discord-token", ".", rf"(?<![\w.-])[A-Za-z][A-Za-z0-9_-]{{22,27}}+\.{_W}{{6}}\.{_W}{{27,45}}+(?![\w.-])"),
    ("discord-webhook", "/api/webhooks/", rf"discord(?:app)?\.com/api/webhooks/\d{{10,25}}+/{_W}{{30,}}+"),
    ("sendgrid-key", "SG.", rf"{_NOT_AFTER}SG\.{_W}{{16,}}+\.{_W}{{16,}}+"),
    ("twilio-key", "SK", rf"{_NOT_AFTER}SK[0-9a-f]{{32}}{_END}"),
    ("digitalocean-token", "_v1_", r"do[opr]_v1_[a-f0-9]{32,}+"),
    (
        "azure-key",
        "AccountKey= SharedAccessKey=",
        r"(?:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/]{20,}+={0,2})",
    ),
    ("azure-key", "sig=", r"[?&;]sig=(?P<secret>[A-Za-z0-9%+/]{30,}+=*)"),
    ("azure-key", "Q~", rf"{_NOT_AFTER}[A-Za-z0-9_~.-]{{3}}[0-9]Q~[A-Za-z0-9_~.-]{{28,}}+"),
    ("mailgun-key", "key-", rf"{_NOT_AFTER}key-[0-9a-f]{{32}}{_END}"),
    ("mailchimp-key", "-us", rf"{_NOT_AFTER}[0-9a-f]{{32}}-us[0-9]{{1,2}}{_END}"),
    ("shopify-token", "shp", r"shp(?:at|ca|pa|ss|ua)_[a-fA-F0-9]{24,}+"),
    ("square-token", "sq0", rf"sq0(?:atp|csp|idp)-{_W}{{20,}}+"),
    ("databricks-token", "dapi", rf"{_NOT_AFTER}dapi[a-f0-9]{{32}}(?:-\d)?{_END}"),
    ("linear-key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{24,}+"),
    ("notion-token", "ntn_ secret_", r"(?<![A-Za-z0-9_])(?:ntn|secret)_[A-Za-z0-9]{40,}+"),
    ("postman-key", "PMAK-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    ("grafana-token", "glsa_ glc_", r"(?:glsa|glc)_[A-Za-z0-9+/=_]{24,}+"),
    ("vault-token", "hv", rf"{_NOT_AFTER}hv[sbr]\.{_W}{{20,}}+"),
    ("doppler-token", "dp.", rf"{_NOT_AFTER}dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{{30,}}+"),
    ("fly-token", "FlyV1 fo1_", r"(?:FlyV1 fm[12]_[A-Za-z0-9+/=,_-]{40,}+|(?<![A-Za-z0-9_])fo1_[A-Za-z0-9_-]{30,}+)"),
    ("sentry-token", "sntry", r"sntry[su]_[A-Za-z0-9_=+/-]{30,}+"),
    ("newrelic-key", "NRAK- NRJS- NRII-", r"NR(?:AK|JS|II)-[A-Za-z0-9_-]{19,}+"),
    ("groq-key", "gsk_", r"(?<![A-Za-z0-9_])gsk_[A-Za-z0-9]{32,}+"),
    ("xai-key", "xai-", rf"{_NOT_AFTER}xai-[A-Za-z0-9]{{40,}}+"),
    ("replicate-token", "r8_", r"(?<![A-Za-z0-9_])r8_[A-Za-z0-9]{30,}+"),
    ("perplexity-key", "pplx-", rf"{_NOT_AFTER}pplx-[A-Za-z0-9]{{32,}}+"),
    ("docker-token", "dckr_", rf"dckr_(?:pat|oat)_{_W}{{20,}}+"),
    ("atlassian-token", "ATATT ATCTT ATBB", rf"{_NOT_AFTER}(?:ATATT3|ATCTT3|ATBB)[A-Za-z0-9_=-]{{28,}}+"),
    ("airtable-token", "pat", rf"{_NOT_AFTER}pat[A-Za-z0-9]{{14}}\.[a-f0-9]{{64}}"),
    ("supabase-token", "sbp_ sb_secret_", r"(?<![A-Za-z0-9_])(?:sbp_[a-f0-9]{32,}+|sb_secret_[A-Za-z0-9_-]{20,}+)"),
    ("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{24,}+"),
    ("age-key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[A-Z0-9]{40,}+"),
    ("tailscale-key", "tskey-", rf"tskey-[a-z]{{2,12}}-{_W}{{16,}}+"),
    ("rubygems-key", "rubygems_", r"rubygems_[a-f0-9]{40,}+"),
    ("figma-token", "figd_", rf"figd_{_W}{{30,}}+"),
    ("facebook-token", "EAA", rf"{_NOT_AFTER}EAA[A-Za-z0-9]{{60,}}+"),
    ("jwt", "eyJ", rf"(?<![A-Za-z0-9_-])eyJ{_W}{{6,}}+\.{_W}{{6,}}+\.{_W}{{6,}}+(?:\.{_W}+){{0,2}}"),
    (
        "url-password",
        "://",
        r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,20}+://[^\s/:@?#\"'<>]{0,200}+:"
        r"(?![<{$%*\[]|x{3,}@|\.\.\.|(?<=//user:)pass(?:word)?@|(?<=//username:)pass(?:word)?@)"
        r"(?P<secret>[^\s/@\"'<>]{4,200}+)@(?=[\w\[.-])",
    ),
    (
        "basic-auth",
        "curl wget",
        r"(?:curl|wget)\b[^\n]{0,200}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,64}:(?![<{$*])(?P<secret>[^\s\"']{3,128}+)",
    ),
    ("password", "sshpass", r"sshpass\s+-p\s{0,3}[\"']?(?![<{$])(?P<secret>[^\s\"']{3,128}+)"),
    ("password", "mysql", r"mysql(?:dump|admin)?\s[^\n]{0,120}?\s-p(?P<secret>[^\s\-<{$\"'][^\s\"']{3,128}+)"),
    ("password", "machine", r"machine\s+\S{1,100}+\s+login\s+\S{1,100}+\s+password\s+(?![<{$])(?P<secret>\S{3,200}+)"),
)

_PROSE = frozenset({"://", "curl", "wget", "sshpass", "mysql", "machine", "FlyV1"})

_PEM_BEGIN = lazy(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d:")
_PEM_END = lazy(r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|Private-MAC:[^\n]{0,200}")
_PEM_LINES = lazy(
    r"(?:\s{0,4}(?:[A-Za-z0-9+/=]{16,100}|[A-Za-z-]{3,24}: [^\n]{0,100})?[ \t]{0,4}(?:\r?\n|\\n|$)){1,200}+"
)
_PEM_BODY = lazy(r"[A-Za-z0-9+/=]{20}")
_PEM_REACH = 20_000
_DUMMY = lazy(r"[A-Za-z0-9_.-]{0,20}?[-_.]?[xX*]{8,}[-_.xX*]*")
_MIXED = lazy(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=[^0-9]*[0-9])")
_NEED_MIXTURE = frozenset({"telegram-token", "discord-token"})


@cache
def shapes() -> tuple[Shape, ...]:
    return tuple(Shape(kind, tuple(signs.split(" ")), lazy(pattern)) for kind, signs, pattern in _TABLE)


@cache
def signs_in_keys() -> tuple[tuple[str, Shape], ...]:
    """The signs that are part of a long word, each with its shape."""
    return tuple((sign, shape) for shape in shapes() for sign in shape.signs if sign not in _PROSE)


@cache
def signs_in_prose() -> tuple[tuple[str, Shape], ...]:
    """The signs that may be a short word of their own, each with its shape."""
    return tuple((sign, shape) for shape in shapes() for sign in shape.signs if sign in _PROSE)


def is_dummy(kind: str, value: str) -> bool:
    """Whether a key is made of crosses, as in a manual, or is only a long name."""
    return _DUMMY.fullmatch(value) is not None or (kind in _NEED_MIXTURE and not _MIXED.match(value))


def private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Where private keys stand. A begin mark that no key follows, as in a manual, is none."""
    begin, close = _PEM_BEGIN.search(text), _PEM_END.search(text)
    while begin:
        if close and close.start() < begin.end():
            close = _PEM_END.search(text, begin.end())
        near = close if close and close.end() - begin.start() <= _PEM_REACH else None
        found = near or _PEM_LINES.match(text, begin.end())
        end = found.end() if found and _PEM_BODY.search(text, begin.end(), found.end()) else begin.end()
        if end > begin.end():
            yield begin.start(), end
        begin = _PEM_BEGIN.search(text, end)
