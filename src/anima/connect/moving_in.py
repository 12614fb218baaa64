"""Moving in: the settings of another system become those of a home.

Promise: pure. Every value of a file of another system's lands in `anima.toml` or in the list of what has no counterpart, with
the reason; none is lost, and no key goes into a file. What the home's own file says already stays as it is, and so does every
line of it. What comes of it is a configuration that loads. Not here: the table (tables/settings.toml), files (change).
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from anima.config import FILE, load, told
from anima.connect import texts
from anima.connect.connections import Step, decoded, read
from anima.connect.texts import drawn
from anima.errors import BadInput, BadPath, NotFound
from anima.text import read_table
from anima.text.toml import edited

_NOTHING = "anima has no such setting"
_SECRET = re.compile(r"(?i)(?:key|token|secret|password)$")
_LISTS = ("prompt.additional",)  # keys to which several values may go
_TOLD = (*_LISTS, "persona.file")  # keys that say what a prompt is told
_LOGIN = re.compile(r"^([A-Za-z][\w+.-]*://)[^/?#]*@")  # of an address
# Of what an address asks with.
_ASKED = re.compile(r"(?i)(?:^|(?<=&))[^=&#]*(?:key|token|secret|password|sig)=[^&#]*&?")
_EXPORT = re.compile(r"^(?:export\s+)?([A-Z][A-Z0-9_]*)=(.*)$", re.M)


# One value of a file: its path as the table names it, the most particular first; its places in lists; itself.
Value = tuple[tuple[str, ...], tuple[int, ...], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a file of another system's comes to: keys of anima.toml, and (path, reason) of what has no counterpart."""

    title: str
    taken: Mapping[str, Any]
    left: tuple[tuple[str, str], ...]


def settings_edit(file: Path, home: str) -> tuple[Step | None, Settings, list[tuple[str, str]]]:
    """The change of a home's anima.toml by a file of another system's settings, what was found in it, and what has no
    counterpart or is there already. Raises BadInput for a file that is none, or a home that is no folder."""
    raw, path = read(file), Path(home) / FILE
    if raw is None:
        raise NotFound(f"there is no file {file}")
    if not path.parent.is_dir():
        raise BadInput("the settings of a home in a database are not in a file")
    found = settings_of(str(file.absolute()), decoded(file, raw), home=home)
    before = read(path)
    text, already = with_settings(decoded(path, before or b""), found)
    step = Step(path=path, before=before, after=text.encode())
    return (step if step.after != (before or b"") else None), found, [*found.left, *already]


def settings_of(file: str, text: str, *, home: str) -> Settings:
    """What a file says. Raises BadInput for one that is no file of a system that the table knows."""
    folder, name = os.path.split(file)
    tree, systems = _read(name, text)
    kinds: dict[str, dict[str, Any]] = read_table("connect", "settings")
    kind = next((kind for kind in systems if set(kinds[kind]["marks"]) & set(tree)), None)
    if kind is None:
        raise BadInput(f"{name}: nothing in it is a setting of {', '.join(kinds[each]['title'] for each in systems)}")
    taken, left, last = dict[str, Any](), list[tuple[str, str]](), dict[str, Any]()
    for each in _values(tree):
        where, why = _goes(each, kinds[kind])
        if where is None or _SECRET.search(each[0][0]):
            left.append((each[0][0], why or _NOTHING))
        elif isinstance(where, str):
            _take(taken, left, each, where, (folder, home))
        else:
            last |= where
    return Settings(title=kinds[kind]["title"], taken=taken | last, left=tuple(left))


def _read(name: str, text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What a file says, and the systems whose it may be."""
    if name.endswith((".yaml", ".yml")):
        try:
            tree, systems = yaml.safe_load(text), ("nexo", "carapace")
        except (yaml.YAMLError, RecursionError) as error:
            raise BadInput(f"{name} cannot be read as YAML ({str(error).splitlines()[0]})") from None
    elif text.lstrip().startswith(("{", "//", "/*")):
        tree, systems = texts.at(text, ()), ("openclaw", "agentscope")
    else:
        return {key: value.strip().strip("\"'") for key, value in _EXPORT.findall(text)}, ("ironclaw",)
    if isinstance(tree, list):
        tree = {"rules": tree}  # Carapace's file may be the bare list
    if not isinstance(tree, dict):
        raise BadInput(f"{name} holds no settings")
    return tree, systems


def _values(tree: object, names: tuple[str, ...] = ("",), places: tuple[int, ...] = ()) -> Iterator[Value]:
    """Every value of a tree. A list of plain values is one."""
    if isinstance(tree, dict) and tree:
        for key, each in tree.items():
            yield from _values(each, tuple(f"{name}.{key}".lstrip(".") for name in names), places)
    elif isinstance(tree, list) and any(isinstance(each, dict) for each in tree):
        for place, each in enumerate(tree):
            id = each.get("id", each.get("agentId")) if isinstance(each, dict) else None
            own = tuple(f"{name}[{id}]" for name in names) if isinstance(id, str) else ()
            yield from _values(each, (*own, *(f"{name}[]" for name in names)), (*places, place))
    else:
        yield names, places, tree


def _goes(each: Value, kind: Mapping[str, Any]) -> tuple[str | dict[str, Any] | None, str]:
    """Where a value goes: a key, several with their values, or None and why."""
    keys, left = kind["keys"], kind["left"]
    names, _, value = each
    found = next((keys[name] for name in names if name in keys), None)
    if isinstance(found, dict):
        found = found.get(str(value).lower() if isinstance(value, bool) else str(value))
        if found is not None:
            pairs = (pair.partition("=") for pair in filter(None, found.split("; ")))
            return {key: 0.0 if text == "0" else text for key, _, text in pairs}, ""
    if found is not None:
        return found, ""
    wider, parts = list(names), [name.split(".") for name in names]  # and of everything it stands beneath
    for depth in range(max(map(len, parts)) - 1, 0, -1):
        wider += [f"{'.'.join(part[:depth])}.*" for part in parts if depth < len(part)]
    return None, next((left[name] for name in wider if name in left), _NOTHING)


def _without_keys(value: str) -> str:
    """An address without what lets somebody in; any other text as it is."""
    head, mark, asked = _LOGIN.sub(r"\1", value).partition("?")
    kept = _ASKED.sub("", asked).rstrip("&") if "://" in head else asked
    return f"{head}{mark}{kept}" if kept or not asked else head


def _take(taken: dict[str, Any], left: list[tuple[str, str]], each: Value, where: str, at: tuple[str, str]) -> None:
    (path, *_), places, value = each
    if where == "agent[].home" and isinstance(value, str):
        value = os.path.realpath(os.path.join(at[0], os.path.expanduser(value)))
        if value == os.path.realpath(at[1]):
            left.append((path, "it is this home"))
            return
    if isinstance(value, str) and (bare := _without_keys(value)) != value:
        value = bare
        left.append((path, "its name and password, or key, stay out: keys stand in the environment, in no file"))
    if where in _TOLD:
        files = list[Any]()
        for one in value if isinstance(value, list) else [value]:
            try:
                files += [one] if told(one) else []
            except (ValueError, BadPath) as error:
                left.append((path, str(error)))
        if not files:
            return
        value = [*taken.pop(where, ()), *files] if where in _LISTS else files[0]
    if "[]" in where:
        where = where.replace("[]", f"[{places[0]}]", 1)
    if where in taken and taken[where] != value:
        left.append((path, f"{where} is {drawn(taken[where])} by a value before it; a home has one"))
    else:
        taken[where] = value


def with_settings(text: str, found: Settings) -> tuple[str, list[tuple[str, str]]]:
    """The text of anima.toml with what was found, and what it says already. Raises BadConfig where that does not load."""
    there: Any = tomllib.loads(text)
    elements, already = dict[str, dict[str, Any]](), list[tuple[str, str]]()
    for key, value in found.taken.items():
        table, _, name = key.rpartition(".")
        if "[" in table:
            elements.setdefault(table, {})[name] = value
            continue
        says = there
        for part in key.split("."):
            says = says.get(part) if isinstance(says, dict) else None
        if says is not None:
            already.append((key, f"anima.toml says {drawn(says)} already"))
        else:
            text = edited(text, key, value)
    for place, values in elements.items():
        table = place.partition("[")[0]
        if any(each == values or each.get("id", "") == values.get("id") for each in there.get(table, ())):
            already.append((place, f"anima.toml has this {table} already"))
            continue
        lines = [f"{name} = {drawn(value)}" for name, value in values.items()]
        text = "\n".join([text.rstrip("\n"), "", f"[[{table}]]", *lines, ""]).lstrip("\n")
    load(text, env={}, trusted=True)
    return text, already
