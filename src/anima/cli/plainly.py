"""Arguments read plainly: typer's own validators take longer to import than a whole command takes to run.

Promise: texts, numbers with their range, flags and lists of texts mean what they mean to typer, but for one thing: a
text that begins with a dash and a blank, as a line of a list does, is a text and no option. Whatever is more (a choice,
a file) is left to typer, and so is everything in versions of it that read their arguments in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import typer

_SHIELD = "\0"  # no argument can hold it


@dataclass(frozen=True, slots=True)
class Plain:
    """Reads the values of one parameter."""

    kind: type
    low: float | None
    high: float | None

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if param.multiple or param.nargs == -1:
            return [item.removeprefix(_SHIELD) for item in value] if value is not None else ()
        if value is None or self.kind in (str, bool):
            return value.removeprefix(_SHIELD) if isinstance(value, str) else value
        try:
            number = self.kind(value)
        except ValueError:
            number = None
        if number is None or not self._holds(number):
            raise typer.BadParameter(f"{value!r} is not {self._wanted}", ctx=ctx, param=param)
        return number

    def _holds(self, number: float) -> bool:
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)

    @property
    def _wanted(self) -> str:
        range_ = f" from {self.low:g} to {self.high:g}" if self.low is not None and self.high is not None else ""
        return ("a whole number" if self.kind is int else "a number") + range_


def read_plainly(parameters: Sequence[Any], arguments: Iterable[str]) -> list[str]:
    """Gives a reader of ours to every parameter that needs no more; the arguments, with dashed texts kept from typer."""
    for param in parameters:
        about = getattr(param, "type_descriptor", None)
        if about is None or not hasattr(param, "_runtime_param") or about.is_choice or about.is_file or about.is_path:
            continue
        info = about.parameter_info
        kind = str if about.annotation == list[str] else about.annotation
        if kind in (str, int, float, bool):
            param._runtime_param = Plain(kind, info.min, info.max)
    ours = all(isinstance(getattr(param, "_runtime_param", None), Plain) for param in parameters)
    return [_SHIELD + text if ours and text.startswith("- ") else text for text in arguments]
