"""What a verb takes: an argument of another type than its annotation says is refused before anything is done.

Promise: BadArguments is a sentence with the verb, the argument, what it takes and what was given; signatures and help stay as
they are, and annotations are read when a verb is first called. Not here: arguments that are missing or that nobody knows, of
which Python speaks itself, and values that a verb refuses.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Collection, Mapping
from functools import cache, wraps
from inspect import signature, unwrap
from itertools import chain, repeat
from numbers import Integral, Real
from types import FunctionType, UnionType
from typing import IO, Any, Literal, Union, get_args, get_origin, get_type_hints

from anima.errors import BadArguments, printable

_LOOKS = "_looks_at_arguments"
_NUMBERS: dict[Any, Any] = {int: Integral, float: Real}  # of other libraries, too


def look_at_arguments(kind: type, *names: str) -> None:
    """Has the public verbs of a class (or those of these names), also those it has from others, look at what they are given."""
    for owner, name, found in [(each, *item) for each in kind.__mro__ for item in vars(each).items()]:
        verb = getattr(found, "__func__", found)  # of a class or static method
        is_asked = name in names if names else not name.startswith("_")
        if is_asked and isinstance(verb, FunctionType) and not hasattr(verb, _LOOKS):
            setattr(owner, name, _looking(verb) if verb is found else type(found)(_looking(verb)))


def _looking(verb: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    def looks(*given: Any, **more: Any) -> Any:
        takes, places, rest = _signature(verb)
        by_place = zip(chain(places, repeat(rest)) if rest else places, given, strict=False)
        for name, value in chain(by_place, more.items()):
            if not _fits(value, takes.get(name, Any)):
                said = f"{verb.__qualname__}: {name} takes {_told(takes[name])}, not {_given(value)}"
                raise BadArguments(said, hint=f"hand them over one by one: *{name}" if name == rest else None)
        return verb(*given, **more)

    setattr(looks, _LOOKS, True)
    return looks


@cache
def _signature(verb: Callable[..., Any]) -> tuple[dict[str, Any], list[str], str]:
    """What each argument takes; those that are given by place; and the one that takes all further."""
    found = list(signature(verb).parameters.values())
    names = re.findall(r"\w+", " ".join(map(str, verb.__annotations__.values())))
    # One that its module has for type checkers alone may be anything.
    known = dict.fromkeys(names, Any) | vars(builtins) | unwrap(verb).__globals__
    takes = get_type_hints(verb, localns=known)
    rest = next((each.name for each in found if each.kind is each.VAR_POSITIONAL), "")
    return takes, [each.name for each in found if each.kind < each.VAR_POSITIONAL], rest


def _fits(value: object, wanted: Any) -> bool:
    """Whether a value is what an annotation says. What could be told only by asking more of it fits."""
    origin, parts = get_origin(wanted) or wanted, get_args(wanted)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return isinstance(value, tuple(map(type, parts)))  # which of them, the verb says
    if origin is IO:
        return hasattr(value, "write")
    if wanted is Any or not isinstance(origin, type) or not getattr(origin, "_is_runtime_protocol", True):
        return True
    if not isinstance(value, _NUMBERS.get(origin, origin)) or (parts and isinstance(value, str)):
        return False  # a text is no list of texts
    if isinstance(value, Mapping) and len(parts) == 2:
        return all(_fits(key, parts[0]) and _fits(value[key], parts[1]) for key in value)
    return not parts or not isinstance(value, Collection) or all(_fits(each, parts[0]) for each in value)


def _told(wanted: Any) -> str:
    """A type as a program names it."""
    return re.sub(r"\b(?:\w+\.)+", "", wanted.__name__ if isinstance(wanted, type) else str(wanted))


def _given(value: object) -> str:
    kind = type(value).__name__
    return f"{printable(repr(value), 40)} ({kind})" if isinstance(value, str | int | float) else kind
