"""Markup: comments that are not drawn, tokens and turns that belong to a model's wire format, and our own frames.

Promise: tokens, turns and frames are looked for in the folded text, so look-alikes and zero-width characters do not
help; a word such as "user:" in a bullet is no turn. Time grows with the text.
Not here: keeping content inside its frame, which is the prompt's work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from anima.gate.scan.sights import Origins, Sighting, compiled, fold
from anima.model import Severity
from anima.text.invisible import visible
from anima.text.markdown import heading_of

# The tags in which a prompt frames what it loads. Content that opens or closes one could step out of its frame.
FRAME_NAMES: tuple[str, ...] = (
    "memory",
    "memory_context",
    "agents_context",
    "loaded_context",
    "domain_knowledge_context",
)

_NAMES = "|".join(sorted((name.replace("_", "[-_ ]?") for name in FRAME_NAMES), key=len, reverse=True))
_FRAME = (
    rf"<\s{{0,20}}+(?:/\s{{0,20}}+(?:{_NAMES})(?![\w.-])(?:[^<>]{{0,400}}+>)?"
    rf"|(?:{_NAMES})(?:\s[^<>]{{0,400}}+|\s{{0,20}}+/?)>)"
)
_IN_CODE = r"(?:#\s{0,4}include\s{0,4}|\w)$"

_TOKEN = (
    r"<\|[\w▁/.-]{2,40}+\|>|<\s?\|\s?(?:im_start|im_end|endoftext|system|user|assistant|eot_id)\s?\|\s?>"
    r"|\[/?inst\]|<</?sys>>|\[/?system_prompt\]|\[/?(?:available_tools|tool_calls|tool_results)\]"
    r"|</?(?:start_of_turn|end_of_turn|bos|eos|system|system-reminder|system_prompt|function_calls|function_results"
    r"|tool_response|tool_results?|antml:[a-z_]{1,30})(?:\s[^<>]{0,200}+)?>"
)

_SPEAKERS = {
    "human": "human|user|instruction|usuario|utilisateur|benutzer|nutzer|utente|пользователь|用户|ユーザー|ユーザ",
    "model": "assistant|ai|chatbot|response|asistente|assistente|assistent|ассистент|助手|アシスタント",
    "system": "system|developer|sistema|systeme|система|系统|システム",
}
_ORDERS = (
    r"[^\n]{0,80}?\b(?:you are|you must|you will|you may|you now|ignore|disregard|override|the user has|the owner has"
    r"|new instruction|maintenance mode|safety)"
)
_TURNS_APART = 4000  # characters within which two turns are one staged conversation

_HIDDEN_STYLE = (
    r"<[a-z][a-z0-9]{0,15}\s[^<>]{0,200}?(?:display\s?:\s?none|visibility\s?:\s?hidden|font-size\s?:\s?0"
    r"|opacity\s?:\s?0(?![.\d])|\shidden(?=[\s>/=]))[^<>]{0,200}+>"
)
_IMAGE_WITH_SLOT = r"!\[[^\]\n]{0,200}+\]\([^)\s]{4,300}?[{<$][a-z_]{3,40}[}>]?"
_MARKDOWN_COMMENT = r"(?m)^[ ]{0,3}\[(?://|comment|#|_)\]:[ ]?(?:#|<>)[ ]?[\"'(](?P<text>[^\n]{0,2000})"
_SECTION_MARK = r"<!--\s*(?:private|share\s*:\s*[a-z]+(?:\s*,\s*[a-z]+)*)\s*-->"


def comments(text: str, safe: str) -> Iterator[Sighting]:
    """HTML and Markdown comments, except the section marks on headings, shown as they stand in the safe text."""
    start = text.find("<!--")
    while start >= 0:
        close = text.find("-->", start + 4)
        end = close + 3 if close >= 0 else len(text)
        if not _is_section_mark(text, start, end):
            inner = safe[start + 4 : close if close >= 0 else end].strip()
            yield Sighting(start, end, "html-comment", Severity.NOTE, visible(inner), "a comment that is not displayed")
        start = text.find("<!--", end) if close >= 0 else -1
    if "]:" in text:
        for found in compiled(_MARKDOWN_COMMENT).finditer(text):
            shown = visible(safe[found.start("text") : found.end("text")].rstrip("\"')"))
            yield Sighting(*found.span(), "markdown-comment", Severity.NOTE, shown, "a comment that is not displayed")


def _is_section_mark(text: str, start: int, end: int) -> bool:
    line = text.rfind("\n", max(0, start - 400), start) + 1
    return bool(compiled(_SECTION_MARK).fullmatch(text, start, end) and heading_of(text[line : start + 1]))


_MARKS: tuple[tuple[str, str, Severity, str], ...] = (
    (_FRAME, "frame-marker", Severity.DANGER, "a tag that frames memory in a prompt"),
    (_TOKEN, "special-token", Severity.DANGER, "a token of a model's own format"),
    (_HIDDEN_STYLE, "hidden-html", Severity.WARN, "an element that is styled away"),
    (_IMAGE_WITH_SLOT, "instruction", Severity.WARN, "an image whose address carries data away"),
)


def marks(text: str, folded: str, origins: Origins) -> Iterator[Sighting]:
    """Frame markers, special tokens, staged turns, elements styled away. `text` is only shown; `folded` is searched."""
    for pattern, kind, severity, message in _MARKS if "<" in folded or "[" in folded else ():
        for found in compiled(pattern).finditer(folded):
            start, end = origins.span(*found.span())
            shown_to = end + 200 if pattern is _HIDDEN_STYLE else end  # what is styled away stands behind the tag
            if not _is_code(folded, found):
                yield Sighting(start, end, kind, severity, visible(text[start:shown_to], 200), message)
    yield from _turns(text, folded, origins)


def _is_code(folded: str, found: re.Match[str]) -> bool:
    """C++ has a header of that name, and a type parameter can have it: `#include <memory>`, `Promise<Memory>`."""
    return (
        found[0] == "<memory>"
        and compiled(_IN_CODE).search(folded[max(0, found.start() - 16) : found.start()]) is not None
    )


@cache
def _labels() -> re.Pattern[str]:
    roles = "|".join(f"(?P<{role}>{fold(names)})" for role, names in _SPEAKERS.items())
    return re.compile(rf"(?<![^\n])[ \t]{{0,3}}(?:#{{1,6}} ?|\*\*)?(?:{roles})(?:\*\*)?[ ]?:(?:\*\*)?")


_A_NAME = r"[ \t]{0,4}(?:[A-ZÀ-Þ][\w'-]{0,24}+[ \t]?){1,3}(?:\n|$)"  # "Human: Luis" says who the human is


def _turns(text: str, folded: str, origins: Origins) -> Iterator[Sighting]:
    """Lines that stage a conversation: a person's and the model's turn set off by blank lines, or a system's orders."""
    previous: re.Match[str] | None = None
    for label in _labels().finditer(folded) if ":" in folded else ():
        if not _set_off(folded, label.start()):
            continue
        start, end = origins.span(*label.span())
        if _answers(label, previous) or _commands(folded, label) or _is_human(text, label, end):
            line = text[start : end + 120].strip().partition("\n")[0]
            yield Sighting(start, end, "special-token", Severity.DANGER, visible(line, 120), "a line that fakes a turn")
        previous = label


def _set_off(folded: str, start: int) -> bool:
    """Whether a blank line, or nothing, stands before the line that begins here."""
    before = folded[max(0, start - 80) : start].replace("\r", "").replace("\t", "").replace(" ", "")
    return not before or before.endswith("\n\n")


def _answers(label: re.Match[str], previous: re.Match[str] | None) -> bool:
    if previous is None or label.start() - previous.end() > _TURNS_APART:
        return False
    return previous.lastgroup != label.lastgroup and "model" in (previous.lastgroup, label.lastgroup)


def _commands(folded: str, label: re.Match[str]) -> bool:
    return label.lastgroup == "system" and compiled(_ORDERS).match(folded, label.end()) is not None


def _is_human(text: str, label: re.Match[str], end: int) -> bool:
    return label["human"] == "human" and label.start() > 0 and not compiled(_A_NAME).match(text, end)
