"""Patterns that are compiled when first used: most texts never need most of them, and starting up should be quick."""

from __future__ import annotations

import re
from typing import Any, cast

_METHODS = ("findall", "finditer", "fullmatch", "groupindex", "match", "search", "split", "sub")


class _Lazy:
    """Stands in for a compiled pattern."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._source, self._flags)
        self.__dict__.update({method: getattr(compiled, method) for method in _METHODS})
        return getattr(compiled, name)


def lazy(source: str, flags: int = 0) -> re.Pattern[str]:
    """The pattern, not yet compiled."""
    return cast("re.Pattern[str]", _Lazy(source, flags))
