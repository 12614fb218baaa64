"""What must be on disk before a conversation is cut: extraction without a model, and the rules for a silent turn.

Promise: a line the user marked to be remembered is always kept; beyond those, preferences, decisions, dates, promises,
corrections and plain facts of somebody's life, the telling ones first, up to a share of the turns. Same turns, same
lines: so a flush after a crash finds what it wrote. Pure. Not here: when to flush and writing (sessions).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from anima.text.markdown import bullet_text

Kind = Literal["remember", "preference", "decision", "promise", "correction", "fact"]
SILENCE = "NO_REPLY"
SHARE = 0.4  # of the turns, for what nobody marked
MAX_LINE = 320
MAX_MARKED = 1_500
_MOST_MARKED = 20
_LEAST = 0.0
STATED, CHANGED = 0.6, 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One turn of a conversation as the extraction takes it."""

    role: str
    text: str
    number: int
    time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A line worth writing down, the turn it came from, and why."""

    kind: Kind
    text: str
    number: int
    score: float
    role: str = "user"


def _any(patterns: str) -> re.Pattern[str]:
    """One pattern for many, which are parted by semicolons; each must stand as words of its own, where words are parted."""
    found = [" ".join(one.split()) for one in re.split(r"\s;\s", patterns)]
    apart = "|".join(one for one in found if one[0] < "\u2e80")
    joined = "".join(f"|{one}" for one in found if one[0] >= "\u2e80")
    return re.compile(rf"(?<!\w)(?:{apart})(?!\w){joined}", re.IGNORECASE)


# English first, then Spanish, German, French, Portuguese, Italian.
_REMEMBER = _any(
    r"""
    remember(?: that| this|:) ; (?:please )?remember ; don'?t forget ; do not forget ; keep in mind ; make a note ;
    note(?: this)? down ; note that ; for the record ; write (?:this|that|it) down ; save this ; recuerda ;
    acuérdate ; no (?:te )?olvides ; apunta ; anota ; ten en cuenta ; merk(?:e)? dir ; vergiss nicht ; notier(?:e)?
    ; denk daran ; souviens-toi ; rappelle-toi ; n'oublie pas ; note que ; lembra(?:-te)? ; não (?:te )?esqueças ;
    não esqueça ; anote ; ricorda(?:ti)? ; non dimenticare ; 记住 ; 别忘了 ; 覚えて ; 忘れないで
    """
)
_PREFERENCE = _any(
    r"""
    i (?:really )?(?:prefer|like|love|hate|dislike|enjoy|can'?t stand) ; my favou?rite ; i(?:'m| am) allergic ; i
    (?:always|never|usually) ; i(?:'d| would) rather ; please (?:always|never|don'?t) ; call me ; i don'?t
    (?:like|eat|drink|want) ; prefiero ; me gusta ; me encanta ; odio ; no me gusta ; mi favorit[oa] ; soy
    alérgic[oa] ; siempre ; nunca ; ich (?:mag|liebe|hasse|bevorzuge) ; am liebsten ; je (?:préfère|déteste|n'aime
    pas) ; j'aime ; j'adore ; prefiro ; eu gosto ; preferisco ; mi piace ; odeio
    """
)
_STANDING = _any(
    r"""
    from now on ; going forward ; as a rule ; whenever you ;
    (?:please )?(?:use|write|say|answer|reply|speak) (?:[\w'-]+ ){1,4}(?:not|instead of|rather than|only) ;
    keep (?:it|them|your|the)? ?(?:replies|answers|messages|responses|things|it)? ?(?:short|brief|formal|informal|simple|polite) ;
    (?:answer|reply|speak|write)(?: to)?(?: me)? in (?:english|spanish|german|french|italian|portuguese|dutch|chinese|japanese) ;
    i changed my mind ; on second thought ; a partir de ahora ; ab jetzt ; ab sofort ; désormais ; d'ora in poi ;
    a partir de agora
    """
)
_STATED = _any(
    r"""
    (?:my|our|his|her|their|[^\W\d_]+['’]s) (?:[\w'’-]+ ){1,4}(?:is|are|was|were|will be|has|have|lives?|works?) ; i(?:['’]m| am)
    (?:a|an|the|from|in|on|now|not|no longer|allergic|vegetarian|vegan|diabetic|married|single|divorced|pregnant|retired|
    \d+) ; i (?:work|live|study|teach|grew up|own|drive|speak|play|need|take|use) ; i have (?:a|an|two|three|four|\d+) ; (?:is|
    are|was) (?:called|named|spelled|spelt|due|at|on|in|with|\d) ; (?:is|are|was) (?:a|an) [\w'’-]+,? (?:not|and not) ; i(?:['’]m|
    am) \w+(?:ian|an) ; mi \w+ (?:es|se llama|vive|trabaja) ; soy ; vivo en ; trabajo ; tengo ; mein\w* \w+ (?:ist|heißt|wohnt)
    ; ich (?:bin|wohne|arbeite|heiße) ; (?:mon|ma) \w+ (?:est|s'appelle|habite) ; je suis ; j'habite ; meu \w+ é ; minha \w+ é
    ; (?:mio|mia) \w+ (?:è|si chiama) ; sono
    """
)
_CHANGED = _any(
    r"""
    no longer ; not anymore ; any more ; instead ; used to ; (?:has |have |'s |'ve )?(?:moved|switched|changed|quit|left|
    started|stopped|cancelled|postponed|rescheduled|renamed|replaced) ; new ; ya no ; en vez de ; nicht mehr ; ne \w+ plus ;
    não \w+ mais ; non \w+ più
    """
)
_DECISION = _any(
    r"""
    (?:we|i)(?:'ve| have)? (?:decided|agreed|settled on|chose|picked) ; let'?s (?:go with|use|do|take) ; the
    decision is ; we(?:'ll| will) go with ; (?:i'm|we're) going with ; final answer ; approved ; decidimos ;
    quedamos en ; vamos con ; wir haben (?:uns )?(?:entschieden|beschlossen) ; on a décidé ; nous avons décidé ;
    abbiamo deciso ; decidiram
    """
)
_PROMISE = _any(
    r"""
    i(?:'ll| will) (?:send|bring|call|do|finish|write|pay|come|be|have|get|check|book|make|let) ; i promise ;
    (?:due|deadline|by) (?:on |next |this
    )?(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|tomorrow|tonight|end of) ; remind me ; te
    (?:mando|envío|llamo) ; prometo ; ich (?:schicke|rufe|bringe|werde) ; versprochen ; je (?:vais|te promets) ; ti
    (?:mando|chiamo)
    """
)
_ORDER = re.compile(r"(?i)(?:^|[.!?]\s+)(?:please )?(?:always|never|don['’]?t ever)\s+\w+")
_CORRECTION = re.compile(
    r"(?i)(?:^|[.!?]\s+)(?:no,? (?:actually|it'?s|that'?s|i meant|not)|actually,|correction|i meant|sorry, i meant|"
    r"that'?s (?:wrong|not right|incorrect)|not \S+(?: \S+){0,3}, but |en realidad|me equivoqué|no es |nein,|eigentlich|"
    r"falsch|en fait|non,? (?:c'est|en fait)|na verdade|in realtà)"
)
_TIME = _any(
    r"""
    yesterday ; today ; tonight ; tomorrow ; last (?:\w+) ; next (?:\w+) ; \w+ ago ; since ; recently ; this
    (?:morning|week|weekend|month|year) ; (?:mon|tues|wednes|thurs|fri|satur|sun)days? ;
    (?:january|february|march|april|june|july|august|september|october|november|december) ; \d{4} ; \d{1,2}[:.]\d{2}
    ; \d{1,2}/\d{1,2}(?:/\d{2,4})? ; weekends? ; summer ; winter ; years? ; months? ; weeks? ; days? ; ayer ; hoy ;
    mañana ; la semana pasada ; el (?:lunes|martes|miércoles|jueves|viernes|sábado|domingo) ; hace \w+ ; gestern ;
    heute ; morgen ; letzte \w+ ; nächste \w+ ; vor \w+ ; hier ; aujourd'hui ; demain ; la semaine ; ontem ; hoje ;
    amanhã ; ieri ; oggi ; domani
    """
)
_NUMBER = _any(
    r"""
    \d[\d.,:]* ; one ; two ; three ; four ; five ; six ; seven ; eight ; nine ; ten ; couple ; first ; second ;
    third
    """
)
_FIRST = _any(
    r"""
    i ; i'm ; i've ; i'd ; i'll ; my ; me ; mine ; yo ; mi ; mis ; ich ; mein\w* ; je ; j'\w+ ; mon ; ma ; mes ; eu
    ; meu ; minha ; io ; mio ; mia
    """
)
_PAST = _any(
    r"""
    went ; had ; got ; did ; was ; were ; took ; made ; saw ; met ; bought ; found ; came ; gave ; won ; lost ; been
    ; became ; ran ; grew ; \w{3,}ed ; he \w+(?:ado|ido) ; \w+é ; habe \w+ ; bin \w+ ; war ; j'ai \w+ ; ho \w+
    """
)
_PEOPLE = _any(
    r"""
    mom ; mother ; dad ; father ; parents? ; kids? ; son ; daughter ; wife ; husband ; partner ; family ; friends? ;
    brothers? ; sisters? ; grand\w+ ; dogs? ; cats? ; pets? ; boss ; colleagues? ; teacher ; madre ; padre ;
    hij[oa]s? ; esposa ; marido ; herman[oa]s? ; amig[oa]s? ; mutter ; vater ; frau ; mann ; kinder ; freund\w* ;
    mère ; père ; frère ; sœur ; ami\w*
    """
)
_NAME = re.compile(r"(?<=[^\W\d_A-Z][ ,])[^\W\d_a-z][^\W\d_]+|[“\"«][^”\"»]{2,60}[”\"»]")
_GREETING = re.compile(
    r"(?i)\W*(?:hey|hi|hello|thanks|thank you|thx|wow|awesome|cool|great|nice|sure|ok(?:ay)?|yeah|yes|bye|"
    r"congrats|absolutely|definitely|sounds|"
    r"good (?:morning|night)|hola|gracias|vale|claro|hallo|danke|bonjour|merci|salut|olá|obrigad[oa]|ciao|grazie)\b"
)
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?。！？]+[\"”»)]*|\n|$)")


def extract(turns: Iterable[Said], *, share: float = SHARE) -> tuple[Kept, ...]:
    """The lines worth keeping, in the order they were said."""
    turns = [turn for turn in turns if turn.text.strip() and turn.role in ("user", "assistant")]
    judged = [found for turn in turns if (found := _judged(turn)) is not None]
    marked = [k for k in judged if k.kind != "fact"]
    plain = sorted((k for k in judged if k.kind == "fact"), key=lambda k: (-k.score, k.number))
    room = max(0, round(len(turns) * share) - len(marked))
    return tuple(sorted([*marked, *plain[:room]], key=lambda k: k.number))


def _judged(turn: Said) -> Kept | None:
    text = " ".join(turn.text.split())
    if turn.role == "assistant":
        found = _DECISION.search(text) or _PROMISE.search(text)
        if not found:
            return None
        kind: Kind = "decision" if _DECISION.search(text) else "promise"
        return Kept(kind=kind, text=_telling(text, found.start()), number=turn.number, score=1.0, role="assistant")
    kind, at = _kind(text)
    score = telling(text)
    if kind == "fact" and score < _LEAST:
        return None
    line = _marked(text) if kind == "remember" else _telling(text, at)
    return Kept(kind=kind, text=line, number=turn.number, score=score)


def _kind(text: str) -> tuple[Kind, int]:
    """Why a turn is worth keeping, and where the mark stands. A question that only mentions the word is no mark."""
    patterns: tuple[tuple[Kind, re.Pattern[str]], ...] = (
        ("remember", _REMEMBER),
        ("correction", _CORRECTION),
        ("decision", _DECISION),
        ("promise", _PROMISE),
        ("preference", _PREFERENCE),
        ("preference", _STANDING),
        ("preference", _ORDER),
    )
    for kind, pattern in patterns:
        for found in pattern.finditer(text):
            sentence = _sentence_at(text, found.start())
            if not sentence.rstrip().endswith("?"):
                return kind, found.start()
    return "fact", 0


def telling(text: str) -> float:
    """How much a turn tells about somebody's life; above zero it is worth a line."""
    words = len(text.split())
    sentences = _sentences(text)
    asked = sum(s.rstrip().endswith("?") for s in sentences) / max(len(sentences), 1)
    score = (
        -2.0
        + 2.0 * _share(_TIME, text)
        + 1.2 * _share(_NAME, text)
        + 1.0 * _share(_NUMBER, text)
        + 1.0 * min(words, 40) / 40
    )
    score += 0.8 * _share(_FIRST, text) + 0.7 * _share(_PAST, text) + 0.5 * _share(_PEOPLE, text)
    stated = bool(_STATED.search(text))
    score += STATED * stated + CHANGED * bool(_CHANGED.search(text))
    score -= 1.6 * asked + 0.6 * bool(_GREETING.match(text)) + 0.6 * (words < 6 and not stated)
    return score + 1.2


def _share(pattern: re.Pattern[str], text: str) -> float:
    count = 0
    for _ in pattern.finditer(text):
        count += 1
        if count == 3:
            break
    return count / 3


def _sentences(text: str) -> list[str]:
    return [s.strip() for s in _SENTENCE.findall(text) if s.strip()]


def _sentence_at(text: str, at: int) -> str:
    return next((m[0] for m in _SENTENCE.finditer(text) if m.start() <= at < m.end()), text)


def _telling(text: str, at: int) -> str:
    """The turn without its greetings and questions, unless nothing would be left."""
    kept = [s for s in _sentences(text) if not s.endswith("?") and not (_GREETING.match(s) and len(s.split()) < 5)]
    return _cut(" ".join(kept) or _sentence_at(text, at).strip())


def _marked(text: str) -> str:
    """What the user wants kept: the whole turn, or of a very long one each marked sentence and what follows it."""
    if len(text) <= MAX_MARKED:
        return text
    sentences = [found[0].strip() for found in _SENTENCE.finditer(text) if found[0].strip()]
    marked = {n for n, sentence in enumerate(sentences) if _REMEMBER.search(sentence)}
    wanted = sorted(n for n in marked | {n + 1 for n in marked} if n < len(sentences))
    return " … ".join(_cut(sentences[n], MAX_MARKED) for n in wanted[:_MOST_MARKED])


def _cut(text: str, most: int = MAX_LINE) -> str:
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + "…"


def silent_turn(day: str, path: str) -> str:
    """What a host's model is asked in the one silent turn before the cut."""
    return (
        f"This conversation is about to be shortened. It is {day}. Write down, as short bullets that stand for themselves, only what "
        f"should outlive it and is not written down yet: facts about people, preferences, decisions, dates, promises, open questions. "
        f"Your bullets are appended to {path}; nothing else can be written now, and nobody sees this turn. "
        f"Give no instruction to yourself and no secret. If there is nothing to write, answer {SILENCE}."
    )


def bullets_of(reply: str) -> Sequence[str]:
    """The bullets of a silent turn's answer; none when it kept silent."""
    text = reply.strip()
    if not text or text.strip("`*_ .\"'") == SILENCE or text.startswith(SILENCE) or text.endswith(SILENCE):
        return ()
    lines = [bullet_text(line, dots=True) for line in text.splitlines()]
    return [_cut(line) for line in lines if line and not line.startswith(("#", "```"))]
