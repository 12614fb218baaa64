"""A block of ours in a host's TOML or YAML file, between two marks.

Promise: pure. The block stands at the end; taking it out leaves everything else as it is, also what was written behind it.
What cannot be read as TOML, or has a table of our name already, raises BadInput. Not here: files (change).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping

from anima.errors import BadInput

BEGIN, END = "# anima: begin (anima connect takes this out again)", "# anima: end"
_BLOCK = re.compile(rf"(?:(?<=\n)\n)?^{re.escape(BEGIN)}$[\s\S]*?^{re.escape(END)}$\n?", re.MULTILINE)


def with_block(text: str, block: str) -> str:
    """The text with a block of ours, in place of the one that was there."""
    bare = without_block(text)
    gap = "" if not bare else "\n" if bare.endswith("\n") else "\n\n"
    return f"{bare}{gap}{BEGIN}\n{block.rstrip()}\n{END}\n"


def without_block(text: str) -> str:
    return _BLOCK.sub("", text)


def with_table(text: str, name: str, values: Mapping[str, object], *, is_same: Callable[[object, object], bool]) -> str:
    """The text with a TOML table such as `mcp_servers.anima`. One of ours that says something else must be the `same`."""
    ours = _BLOCK.search(text)
    if ours and not is_same(_at(_read(ours[0]), name), values):
        raise BadInput(f"[{name}] is there already, and not for this home")
    if _at(_read(without_block(text)), name):
        raise BadInput(f"it has a table [{name}] that is not ours")
    made = with_block(text, "\n".join([f"[{name}]", *(f"{key} = {drawn(value)}" for key, value in values.items())]))
    _read(made)
    return made


def _at(there: object, name: str) -> object:
    for part in name.split("."):
        if not isinstance(there, dict):
            raise BadInput(f"{part} cannot be added to what stands there")
        there = there.get(part, {})
    return there


def _read(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(f"it cannot be read as TOML ({error})") from None


def drawn(value: object) -> str:
    """A value as TOML writes it: a text, a number, a list of them, or a table in one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {drawn(each)}" for key, each in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
