"""Arguments read plainly: typer's own validators take longer to import than a whole command takes to run.

Promise: texts, numbers with their range, flags and lists of texts mean what they mean to typer. Whatever is more (a
choice, a file) is left to it, and so is everything in versions of typer that read their arguments in another way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import typer


@dataclass(frozen=True, slots=True)
class Plain:
    """Reads the values of one parameter."""

    kind: type
    low: float | None
    high: float | None

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if param.multiple or param.nargs == -1:
            return list(value) if value is not None else ()
        if value is None or self.kind in (str, bool):
            return value
        try:
            number = self.kind(value)
        except ValueError:
            number = None
        if number is None or not (self.low or number) <= number <= (self.high or number):
            raise typer.BadParameter(f"{value!r} is not {self._wanted}", ctx=ctx, param=param)
        return number

    @property
    def _wanted(self) -> str:
        range_ = f" from {self.low:g} to {self.high:g}" if self.low is not None and self.high is not None else ""
        return ("a whole number" if self.kind is int else "a number") + range_


def read_plainly(parameters: Iterable[Any]) -> None:
    """Gives a reader of ours to every parameter that needs no more than that."""
    for param in parameters:
        about = getattr(param, "type_descriptor", None)
        if about is None or not hasattr(param, "_runtime_param") or about.is_choice or about.is_file or about.is_path:
            continue
        info = about.parameter_info
        kind = str if about.annotation == list[str] else about.annotation
        if kind in (str, int, float, bool):
            param._runtime_param = Plain(kind, info.min, info.max)
