"""What the gate says: the built-in rules, each with its sentence, and the limits they speak of.

Promise: no sentence ever holds text of a document; the braces are filled with names, kinds and numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from anima.errors import printable
from anima.model import Answer, Verdict, fold

SIZE_LIMIT = 256 * 1024  # bytes an agent may write at once
RATE_LIMIT = 600  # writes of one agent session in a minute
APPROVAL_PLACES = frozenset({"terminal", "page"})  # where identity files can be approved

RULES: dict[str, str] = {
    "closed": "no verb writes this file: configuration, transcripts and machine state are not documents",
    "not-markdown": "only .md files are written",
    "no-target": "a move needs a place to go to",
    "owner": "the owner writes what they like; findings are shown, not held against them",
    "approved": "the owner approved it ({place})",
    "read-only": "this session may not write (its access is {access})",
    "layer": "this session belongs to another person and writes only under users/{layer}/",
    "dreamer": "dreaming writes memory and nothing else",
    "import": "an import is the owner's; what the scan found is recorded with it",
    "open": "this home only records; nothing is held back",
    "protected": "in this dialect no tool writes this file; the owner edits it directly",
    "size": f"one write has at most {SIZE_LIMIT:,} bytes, and this one has {{size:,}}; write less at a time",
    "rate": f"this session wrote {RATE_LIMIT} times within a minute; wait a minute and write again",
    "secret": "it holds a secret ({kinds}), and memory keeps none; leave the secret out and write the rest",
    "placeholder": "it holds the mark of a secret that was struck out ([REDACTED:…]); leave the mark out and write the rest",
    "subagent": "a sub-agent does not write memory; it reports to the agent that called it",
    "hidden-text": "it holds text that a reader does not see ({kinds})",
    "special-token": "it holds marks that a model could take for the frame of a conversation ({kinds})",
    "frame-marker": "it holds a border of the prompt's own ({kinds})",
    "forgotten": "it holds something the owner had forgotten; only the owner brings it back",
    "danger": "the scan found something dangerous in it ({kinds})",
    "identity-file": "this file says who the agent is and whom it serves; the owner approves a change to it, at a "
    "terminal or on the page",
    "ask-file": "a change to this file waits for the owner",
    "bootstrap-done": "a ritual that is done may be taken away",
    "memory-write": "every memory write waits for the owner{taint}",
    "no-write-after-web": "the session has read text from outside{taint}, so what it writes to memory is not kept unseen",
    "tainted": "untrusted text went into this{taint}, so it does not become memory unseen",
    "scope": "outside a session with the owner alone, a memory write waits for the owner",
    "clean-session": "a session with the owner alone that read nothing untrusted may write memory",
    "dream": "dreaming may write memory from trusted lines",
    "ask-outbound-after-tools": "the session has read TOOLS.md, which may name hosts and accounts; what it sends out "
    "is not sent unseen",
    "default": "no rule speaks against it",
}


def said(answer: Answer, rule: str, **filled: object) -> Verdict:
    """The verdict of a built-in rule."""
    return Verdict(answer=answer, rule=rule, reason=RULES[rule].format(**filled))


def listed(names: Sequence[str]) -> str:
    """Names for a sentence: each once, three at most, safe to print."""
    shown = list(dict.fromkeys(printable(name, 40) for name in names))
    return ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")


def no_such(what: str, name: str, known: Sequence[str]) -> str:
    """The sentence for a name that is none, with the nearest one that is."""
    near = get_close_matches(fold(name[:60]), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return f"there is no {what} {printable(name, 60)!r}; {hint}"
