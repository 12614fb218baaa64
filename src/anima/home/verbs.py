"""What a verb takes: an argument of another type than its annotation says, or a number below the least, is refused before
anything is done; so is what is asked of a closed home.

Promise: BadArguments is a sentence with the verb, the argument, what it takes and what was given; signatures and help stay as
they are. Annotations are read when a verb is first called. Not here: missing or unknown arguments, other wrong values.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, wraps
from inspect import iscoroutinefunction, signature, unwrap
from io import TextIOBase
from itertools import chain, repeat
from numbers import Integral, Real
from types import FunctionType, UnionType
from typing import IO, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from anima.errors import BadArguments, HomeError, printable
from anima.site import Site
from anima.store.safe_open import closed

P = ParamSpec("P")
T = TypeVar("T")
_LOOKS = "_looks_at_arguments"
_NUMBERS: dict[Any, Any] = {int: Integral, float: Real}  # of other libraries, too
_COUNTED = {"limit", "most", "per_source"}  # of which there is one at least; other whole numbers begin with 0


def look_at_arguments(kind: type, *names: str) -> None:
    """Has the public verbs of a class (and those of these names), also those it has from others, look at what they are given."""
    for owner, name, found in [(each, *item) for each in kind.__mro__ for item in vars(each).items()]:
        verb = getattr(found, "__func__", found)  # of a class or static method
        if (name in names or not name.startswith("_")) and isinstance(verb, FunctionType):
            setattr(owner, name, looking(verb, owner) if verb is found else type(found)(looking(verb)))


def looking(verb: Callable[P, T], owner: type = object) -> Callable[P, T]:
    """A function that looks at what it is given, first of all, for a verb, whether that is of its owner's kind."""
    if hasattr(verb, _LOOKS):
        return verb

    @wraps(verb)
    def looks(*given: Any, **more: Any) -> Any:
        if given and not isinstance(given[0], owner):
            raise BadArguments(
                f"{verb.__qualname__} is asked of a {owner.__name__} that is open, not of {_given(given[0])}"
            )
        takes, places, rest = _signature(verb)
        by_place = zip(chain(places, repeat(rest)) if rest else places, given, strict=False)
        for name, value in chain(by_place, more.items()):
            if not _fits(value, takes.get(name, Any)):
                said = f"{verb.__qualname__}: {name} takes {_told(takes[name])}, not {_given(value)}"
                raise BadArguments(said, hint=f"hand them over one by one: *{name}" if name == rest else None)
            if takes.get(name) in (int, int | None) and value is not None and value < (least := int(name in _COUNTED)):
                raise BadArguments(f"{verb.__qualname__}: {name} is {least} or more, not {value}")
        ends = verb.__name__ in ("close", "leave", "touched")  # what a home may be told after its end, too
        try:
            if _has_ended(given) and not ends:
                raise closed()
            return verb(*given, **more)
        except Exception as error:
            if _has_ended(given) and not (ends and isinstance(error, HomeError)):
                raise closed() from None  # meanwhile, by another thread, which took away what this one stood on
            raise

    setattr(looks, _LOOKS, True)
    return looks


def _has_ended(given: Sequence[object]) -> bool:
    """Whether the home was closed to which the owner of a verb belongs."""
    site = next((found for name in ("site", "_site") if given and (found := getattr(given[0], name, None))), None)
    return isinstance(site, Site) and site.ended.is_set()


@cache
def _signature(verb: Callable[..., Any]) -> tuple[dict[str, Any], list[str], str]:
    """What each argument takes; those that are given by place; and the one that takes all further."""
    found = list(signature(verb).parameters.values())
    names = re.findall(r"\w+", " ".join(map(str, verb.__annotations__.values())))
    # One that its module has for type checkers alone may be anything.
    takes = get_type_hints(verb, localns=dict.fromkeys(names, Any) | vars(builtins) | unwrap(verb).__globals__)
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
        return hasattr(value, "write") and not isinstance(value, TextIOBase)
    if wanted is Any or not isinstance(origin, type):
        return True
    if not getattr(origin, "_is_runtime_protocol", True):
        return all(name in dir(value) or hasattr(value, name) for name in vars(origin) if not name.startswith("_"))
    if not isinstance(value, _NUMBERS.get(origin, origin)) or (parts and isinstance(value, str)):
        return False  # a text is no list of texts
    if (callable(value) and iscoroutinefunction(value)) or (
        origin in _NUMBERS and (isinstance(value, bool) or value != value)
    ):
        return False  # nobody awaits what it gives; and what is no number is none
    if isinstance(value, Mapping) and len(parts) == 2:
        return all(_fits(key, parts[0]) and _fits(value[key], parts[1]) for key in value)
    return not parts or not isinstance(value, Collection) or all(_fits(each, parts[0]) for each in value)


def _told(wanted: Any) -> str:
    """A type as a program names it."""
    if get_origin(wanted) is Union:
        return " | ".join("None" if each is type(None) else _told(each) for each in get_args(wanted))
    return re.sub(r"\b(?:\w+\.)+", "", wanted.__name__ if isinstance(wanted, type) else str(wanted))


def _given(value: object) -> str:
    kind = "an async function (anima.aio takes it)" if iscoroutinefunction(value) else type(value).__name__
    return f"{printable(repr(value), 40)} ({kind})" if isinstance(value, str | int | float) else kind
