"""A host: which files of it are changed, where it writes conversations down, and what the person does next.

Not here: the hosts themselves (hosts), and how files are changed (change).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anima.connect import json_text
from anima.connect.change import HostEdit, owned
from anima.connect.wiring import Wiring
from anima.errors import BadInput


def nowhere(wiring: Wiring) -> Path | None:
    """The transcripts of a host that we cannot read."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One program that people's agents run in. `then` is what is left to do once its files are changed."""

    name: str
    title: str
    edits: Callable[[Wiring], Sequence[HostEdit]]
    then: str
    transcripts: Callable[[Wiring], Path | None] = nowhere
    reports: bool = True  # whether it runs hooks


def folder_of(top: Path, files: Mapping[str, str]) -> list[HostEdit]:
    """A folder that is ours alone."""
    return [owned(top / name, text) for name, text in files.items()]


def member(path: Path, *keys: str, value: object) -> HostEdit:
    """One member of a host's JSON file. A member of that name that is not ours is refused, never replaced."""

    def put(text: str) -> str:
        there = json_text.at(text or "{}", keys)
        if there and not is_same(there, value):
            raise BadInput(f"{'.'.join(keys)} is there already, and not for this home")
        return json_text.put(text or "{}\n", keys, value)

    def take(text: str) -> str:
        return json_text.take(text, keys) if text.strip() else text

    return HostEdit(path=path, put=put, take=take)


def is_same(entry: object, wanted: object) -> bool:
    """Whether a server's entry serves the home that another one does."""
    homes = [
        each["args"][-1:] for each in (entry, wanted) if isinstance(each, dict) and isinstance(each.get("args"), list)
    ]
    return len(homes) == 2 and homes[0] == homes[1]


def items(path: Path, values: Mapping[tuple[str, ...], object], *, first: Mapping[str, object]) -> HostEdit:
    """Elements of lists in a host's JSON file. `first` is what a file that we make says besides."""

    def put(text: str) -> str:
        text = text or _begun(first)
        for keys, value in values.items():
            for old in _older(text, keys, value):
                text = json_text.take_item(text, keys, old)
            text = json_text.put_item(text, keys, value)
        return text

    def take(text: str) -> str:
        for keys, value in values.items() if text.strip() else ():
            text = json_text.take_item(text, keys, value)
            if not json_text.at(text, keys):
                text = json_text.take(text, keys)
        return text

    return HostEdit(path=path, put=put, take=take)


def _older(text: str, keys: Sequence[str], value: object) -> list[object]:
    """Elements that say the same of the same home by another program, such as one that was moved."""
    there, tail = json_text.at(text, keys), json.dumps(value).partition(" hook ")[2].partition('"')[0]
    return [each for each in there if each != value and tail in json.dumps(each)] if isinstance(there, list) else []


def _begun(first: Mapping[str, object]) -> str:
    text = "{}\n"
    for key, value in first.items():
        text = json_text.put(text, [key], value)
    return text
