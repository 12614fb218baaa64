"""The text of anima.toml with one thing changed, everything else as it stands, comments too.

Promise: pure; what comes out says exactly what was meant and nothing else, or BadConfig is raised. Not here: which keys there
are and what they may hold (config).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from anima.errors import BadConfig

RULE = "gate.rule"  # the key of a list of tables: a rule is put first as TOML, or taken out by its id


def edited(text: str, key: str, value: str | float | bool | Sequence[str] | None) -> str:
    """A file's text with another value for a key; None takes the key out. The key `gate.rule` takes a rule as TOML, which
    comes before all others; `gate.rule:ID` without a value takes one out. Raises BadConfig where that cannot be done."""
    if key == RULE:
        at = re.search(r"^\[\[gate\.rule\]\]", text, re.MULTILINE)
        before, after = (text[: at.start()], text[at.start() :]) if at else (text.rstrip("\n") + "\n\n", "")
        return before + str(value).rstrip("\n") + "\n" + ("\n" if after else "") + after
    table = tomllib.loads(text)
    if key.startswith(f"{RULE}:"):
        gate = table.get("gate", {})
        gate["rule"] = [rule for rule in gate.get("rule", ()) if rule.get("id") != key.partition(":")[2]]
        pieces = re.split(r"^(?=\[)", text, flags=re.MULTILINE)
        rules = [n for n, piece in enumerate(pieces) if piece.startswith("[[gate.rule]]")]
        return _meant(("".join(pieces[:n] + pieces[n + 1 :]) for n in rules), table)
    section, _, name = key.rpartition(".")
    there = table.setdefault(section, {}) if section else table
    there.pop(name, None)
    if value is not None:
        there[name] = value if isinstance(value, str | int | float) else list(value)
    line = [] if value is None else [f"{name} = {json.dumps(there[name], ensure_ascii=False)}\n"]
    lines = (text if text.endswith("\n") or not text else text + "\n").splitlines(keepends=True)
    heads = [n for n, each in enumerate(lines) if each.lstrip().startswith("[")]
    first = next((n + 1 for n in heads if lines[n].partition("#")[0].strip() == f"[{section}]"), 0)
    if section and not first:
        lines, first = [*lines, f"\n[{section}]\n"], len(lines) + 1
    last = next((n for n in heads if n >= first), len(lines))
    olds = [n for n in range(first, last) if re.match(rf"\s*{name}\s*=", lines[n])]
    ways = [(old, end) for old in olds for end in range(old + 1, last + 1)] or [(last, last)]
    return _meant(("".join([*lines[:old], *line, *lines[end:]]) for old, end in ways), table)


def _meant(ways: Iterable[str], table: Mapping[str, Any]) -> str:
    """The first text that says what is meant."""
    for text in ways:
        with suppress(tomllib.TOMLDecodeError):
            if _without_empty(tomllib.loads(text)) == _without_empty(table):
                return text
    hint = "change it in an editor"
    raise BadConfig("this cannot be changed without touching other lines", where="anima.toml", hint=hint)


def _without_empty(table: Any) -> Any:
    found = {key: _without_empty(each) for key, each in table.items()} if isinstance(table, dict) else table
    return {key: each for key, each in found.items() if each not in ({}, [])} if isinstance(table, dict) else found
