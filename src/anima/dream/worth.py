"""Junk: notes that say something about a moment, a machine or the agent itself, and nothing worth keeping.

Promise: `why_junk` names the sort, or gives None; by shape first (commands, logs, traces, code, data, links, questions,
tasks, greetings, its own output), whatever the language; in linear time.
Not here: how lasting a plain sentence is (text.lasting).
"""

# ruff: noqa: E501 - a pattern reads better in one piece
from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from anima.text.sentences import core_of, is_stated, sentence

SHORTEST, LONGEST = 8, 400  # characters of a line worth keeping
FEWEST_WORDS = 2

_LETTERS = re.compile(r"[^\W\d_]")
_WORDS = re.compile(r"[^\W\d_]{2,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]")
_PROGRAMS = (
    "git|cd|ls|cat|cp|mv|rm|mkdir|chmod|chown|sudo|ssh|scp|rsync|curl|wget|docker|docker-compose|podman|kubectl|helm|npm|npx|yarn|pnpm|pip|"
    "pip3|uv|poetry|python|python3|node|cargo|rustc|go|make|cmake|gcc|java|mvn|gradle|pytest|ruff|mypy|tox|terraform|ansible|aws|gcloud|az|"
    "psql|mysql|sqlite3|redis-cli|systemctl|journalctl|apt|apt-get|brew|yum|dnf|tar|unzip|grep|sed|awk|find|xargs|echo|export|source|tail|"
    "head|touch|ps|kill|df|du|top|vim|nano|code|open|anima"
)
_COMMAND = re.compile(
    rf"\A(?:[$%>❯#]\s+\S|(?:ran|run|running|executed|exec|ejecuté|cmd)?:?\s*`[^`]+`|(?:{_PROGRAMS})\s+(?:[-./~]|[a-z0-9_-]+[\s./:@=-]).*[-./=:@&|].*|"
    rf"(?:sudo|cd|export|chmod|docker|kubectl|npm|pip|pytest|git|systemctl|curl|wget|ssh)\s+\S+|\S+@\S+:\S*[$#]\s)"
)
_SHELL = re.compile(r"&&|\|\||\s\|\s\w+|\s--?[a-z][\w-]*(?:[= ]|\Z)|2>&1|>\s*/dev/null|\$\{?\w+")
_LOG = re.compile(
    r"(?i)\A\W*(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d|\[?\d{1,3}:\d{1,3}\]|\[?(?:debug|info|notice|warn(?:ing)?|error|fatal|critical|trace|"
    r"panic|severe)\]?\s*[:\]|]|(?-i:ERROR|FATAL|PANIC|WARN|WARNING|INFO|DEBUG)\s+\S+[\s:]|level=|ts=|time=)"
)
_STAMP = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?|\b(?:pid|uid|tid|rc|errno|status|exit(?: code)?|code)\s*[=:]?\s*\d+"
)
_TRACE = re.compile(
    r"Traceback \(most recent|\bFile \"[^\"]+\", line \d+|\A\s*at [\w$.<>]+ ?\(|\b\w*(?:Error|Exception|Panic)\b\s*[:(]|\bpanicked at|"
    r"\bsegmentation fault|\bcore dumped|\bstack trace|\bindex out of range|\bnull pointer|\bgoroutine \d+",
)
_CODE = re.compile(
    r"\A\s*(?:import|from|require|include|using) [\w./-]+\s*\Z|\A\s*(?:def|class|import|from|const|let|var|function|func|fn|public|private|static|return|if|for|while|#include|package|use|struct|async|await)\b.*[;:{}()=<>]|"
    r"[{};]\s*\Z|=>|\(\)|::|!=|==|\+=|\A\s*[+-]\s*(?:import|const|let|var|def|return|from|\})\b|\A@@ |\Adiff --git|\A(?:\+\+\+|---) [ab]/|"
    r"(?i:\A\s*(?:select|insert|update|delete|create|alter|drop)\s+.+\b(?:from|into|set|table|where)\b.*[*=;(])"
)
_DATA = re.compile(
    r"\A\s*[\[{].*[\]}]\s*\Z|\A\s*<[a-zA-Z!/][^>]*>|\"\w+\"\s*:\s*|\A\s*\|.*\|\s*\Z|(?:[^,;\t]+[,;\t]){5,}"
)
_LISTED = re.compile(r"(?:\A|\s)\d{1,2}[.)]\s.*\s\d{1,2}[.)]\s|\A\s*[-*•]\s.*\s[-*•]\s")
_THINGS = re.compile(r"\A[^,:]{1,30}(?:, [^,]{1,20}){2,}\Z")
_FIRST_OF_LIST = re.compile(r"\A\S+(?:\s+\S+)?,")  # things of a list are one or two words long; a sentence is longer
_PAIRS = re.compile(r"(?<![\w/])[\w.-]+=[^\s=]+")
_HEXES = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{14,}")
_LINK = re.compile(r"(?:https?|ftp|file|ssh|git)://\S+|\bwww\.\S+")
_QUESTION = re.compile(r"[?？]\s*[\"'”’)\]]*\s*\Z|\A\s*¿")
_TASK = re.compile(
    r"(?i)\A\W*(?:\[[ x✓✔-]\]|☐|☑|✅|todo\b|to-do\b|to do:|fixme\b|done\b|pendiente\b|hecho\b|erledigt\b|offen:|à faire|fait:|"
    r"(?:i |we )?(?:need|have|ought|want) to\b|(?:we |i )?(?:must|should)\b(?!.*\b(?:never|always|every|each|not)\b)|remember to\b|don'?t forget\b|remind\b|follow[- ]?up\b|next step|next:|action item|"
    r"hay que\b|tengo que\b|tenemos que\b|recordar\b|acordarse\b|muss noch\b|nicht vergessen\b|il faut\b|ne pas oublier\b|waiting (?:for|on)\b)"
)
_GREETING = re.compile(
    r"(?i)\A\W*(?:hi|hey|hello|hallo|hola|bonjour|salut|ciao|olá|good (?:morning|afternoon|evening|night|day)|morning|buenos días|buenas (?:tardes|noches)|"
    r"guten (?:morgen|tag|abend)|gute nacht|thanks?|thank you|thx|gracias|danke|merci|obrigad[oa]|ok(?:ay)?|sure|great|cool|nice|perfect|yes|no|yep|nope|"
    r"haha\w*|lol|bye|goodbye|see you|adiós|tschüss|welcome|you'?re welcome|no worries|no problem|sorry|vale|brb|congrat\w*|happy (?:birthday|new year)|"
    r"have a (?:nice|good|great)|cheers|got it|understood|noted|will do)\b"
)
_SAYS_HI = re.compile(r"(?i)\b(?:says (?:hi|hello)|sends (?:greetings|regards)|manda saludos|grüßt|lässt grüßen)\b")
# What opens something, with its value: the scan knows keys by their shape, and a PIN has none.
_SECRET = re.compile(
    r"(?i)\b(?:pin|puk|tan|cvv|cvc|pincode|passcode|access code|door code|alarm code|unlock code|código|clave|geheimzahl|zugangscode|türcode)\b"
    r"[^.;]{0,40}?\b\d{3,8}\b|\b\d{4,8}\b[^.;]{0,12}\b(?:pin|puk|cvv)\b|"
    r"\b(?:password|passwort|kennwort|contraseña|passphrase|mot de passe|senha)\b[^.;]{0,40}?(?:\bis\b|\bist\b|\bes\b|\best\b|[:=])\s*"
    r"(?!(?:kept|stored|saved|in|on|at|with|the|a|an|not|never|only|required|managed|changed|rotated|held|set|shared|im|in|bei|nicht|en|no|guardad\w+)\b)\S+"
)
_OWN = re.compile(
    r"(?i)_\((?:score|since|until)\b|\bscore=\d|\bhits=\d|\b(?:light|rem|deep) sleep\b|\bdream(?:ed|ing)?\b.*\b(?:sweep|candidates?|promoted|promotion)\b|\bpromoted\b.*\b(?:lines?|memory|entries)\b|"
    r"\bMEMORY\.md\b|\bDREAMS\.md\b|\bmemory (?:flush|sweep|search|saved|updated)\b|\bHEARTBEAT_OK\b|\bNO_REPLY\b|\bheartbeat\b|\bcompaction\b|\bsession (?:started|ended|closed|resumed)\b|"
    r"\bsesión iniciada\b|\bsystem prompt\b|\bcontext window\b|\bflush complete\b"
)
_CHATTER = re.compile(
    r"(?i)\A\W*(?:as an ai\b|i(?:'ll| will| have| could| can| am|'m|'ve| did| found| searched| checked| updated| told| sent| looked| think| thought| tried| need| was| "
    r"asked| wrote| added| noted| saved| created| made)\b|let me\b|let's\b|here (?:is|are)\b|here's\b|below (?:is|are)\b|sure[,!]|of course\b|certainly\b|voy a\b|déjame\b|"
    r"aquí (?:está|tienes)\b|ich (?:habe|werde|konnte)\b|hier ist\b|je vais\b|voici\b|j'ai\b)"
)
_EMPTY = re.compile(
    r"(?i)\A\W*(?:no(?:thing)? (?:new|to report|special|changes?|updates?|messages?)|nothing\b|none\b|n/a\b|sin (?:mensajes|novedades|cambios)|nada\b|nichts\b|rien\b|"
    r"this is an automat\w+|please (?:do not reply|consider the environment)|do not reply|unsubscribe|all rights reserved|terms of (?:service|use)|"
    r"(?:this (?:e-?mail|message)|der inhalt dieser|este (?:correo|mensaje))\b.*\b(?:confidential|vertraulich|confidencial|automátic\w+)|"
    r"(?:end of day|daily|weekly|today'?s?)\b.*\b(?:summary|notes?|log|report|recap)|summary\b|resumen\b|zusammenfassung\b|notes?\Z|log\Z|misc\b|see (?:above|below)\b)"
)
_JOB = re.compile(
    r"(?i)\b(?:cron|cronjob|nightly (?:job|run|build)|backup|rsync|job \S+|batch|pipeline|workflow|build|tarea nocturna|copia de)\b.*\b(?:ok|done|finished|completed?|success\w*|failed|started|"
    r"skipped|\d+ (?:files?|s|sec|seconds|mb|gb|ficheros)|terminad[oa]|correct[oa])\b|\b\d+ (?:passed|failed|skipped|errors?|warnings?)\b|\bexit(?:ed)?(?: with)? (?:code|status)\b"
)
_TOOL = re.compile(
    r"(?i)\b[a-z]+_[a-z_]+\s?[(=:]|\b\d+ (?:hits?|matches)\b|\b(?:hits|matches)[:=] ?\d|\A\W*(?:search results?|(?:web|memory) search\b|no (?:results|memories|matches)|search returned|found \d+|returned \d+|wrote \d+|read \d+|fetched|downloaded|uploaded|http/?\s?\d|get /|post /|put /|\d+ results?|output:|result:|response:|"
    r"stdout|stderr|tool (?:call|result|output)|api\b.*\d{3}|status:?\s*\d{3}|processed \d+|scanned \d+|indexed \d+|synced \d+|imported \d+)"
)
_MEASURE = re.compile(r"(?i)\b\d+(?:[.,]\d+)?\s?(?:ms|µs|ns|kb|mb|kib|mib|bytes|rps|qps|fps|hz|bpm)(?!\w)")
_WEATHER = re.compile(
    r"(?i)\b(?:sunny|cloudy|overcast|rainy|drizzle|foggy|snowy|windy|thunderstorm|storm warning|forecast|\d+ (?:degrees|grados|grad)|soleado|nublado|lluvia|sonnig|bewölkt|"
    r"regnerisch|ensoleillé|nuageux|pluie)\b|°[CF]\b|\A\W*(?:rain|snow|fog|frost|sun|sol|wind|hail|storm)\b"
)


def _shell(text: str) -> bool:
    return bool(_COMMAND.match(text)) or len(_SHELL.findall(text)) >= 2


def _signs(text: str) -> bool:
    """More signs and digits than a sentence has."""
    letters = len(_LETTERS.findall(text))
    return letters < 0.55 * len(text.replace(" ", ""))


def _log(text: str) -> bool:
    return bool(_LOG.match(text)) or len(_PAIRS.findall(text)) >= 2 or bool(_STAMP.search(text))


def _listed(text: str) -> bool:
    return bool(_LISTED.search(text)) or (bool(_THINGS.match(text)) and bool(_FIRST_OF_LIST.match(text)))


def _measures(text: str) -> bool:
    """A figure that something reported; a limit that is stated is none."""
    return bool(_MEASURE.search(text)) and not is_stated(sentence(text))


def _greets(text: str) -> bool:
    """A greeting with a few words behind it; a longer sentence may begin with one and say something."""
    found = _GREETING.match(text)
    return found is not None and len(text[found.end() :].split()) <= 6


def _mostly_link(text: str) -> bool:
    rest = _LINK.sub("", text)
    return rest != text and len(_WORDS.findall(rest)) < 4


KINDS: tuple[tuple[str, Callable[[str], object]], ...] = (
    ("too short", lambda text: (len(text) < SHORTEST and not _dense(text)) or len(_WORDS.findall(text)) < FEWEST_WORDS),
    ("too long", lambda text: len(text) > LONGEST),
    ("its own output", _OWN.search),
    ("a secret", _SECRET.search),
    ("a stack trace", _TRACE.search),
    ("a command", _shell),
    ("a log line", _log),
    ("code", _CODE.search),
    ("data", _DATA.search),
    ("a list", _listed),
    ("a link", _mostly_link),
    ("an identifier", _HEXES.search),
    ("a question", _QUESTION.search),
    ("a task", _TASK.match),
    ("a greeting", lambda text: _greets(text) or _SAYS_HI.search(text)),
    ("boilerplate", _EMPTY.match),
    ("a job's report", _JOB.search),
    ("a tool's output", _TOOL.search),
    ("a measurement", _measures),
    ("the agent talking", lambda text: _CHATTER.match(core_of(text)[0])),
    ("the weather", _WEATHER.search),
    ("mostly signs", _signs),
)


def _dense(text: str) -> bool:
    return any("\u3040" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7ff" for char in text)


@lru_cache(maxsize=65_536)
def why_junk(text: str) -> str | None:
    """What sort of junk a note is; None when its shape says nothing against it."""
    return next((kind for kind, looks_so in KINDS if looks_so(text)), None)
