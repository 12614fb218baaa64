"""Makes docs/reference.md: every public name, with its signature and what it says of itself.

    make reference           or: python docs/reference.py

What is needed every day stands first, then a home with its parts, then functions, values and errors. A name without a
docstring is an error, also a verb of `Home` and `Session`, and so is a page that is not up to date:
tests/test_reference.py asks for both. Members of other classes that say nothing of themselves are left out.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src")]

import anima  # noqa: E402
from anima import aio, compat, home, testing  # noqa: E402

PAGE = HERE / "reference.md"
HEAD = """# Reference

Every public name of `anima`, made from its docstrings by `make reference`. What belongs together stands in the other pages:
[sessions](sessions.md), [the gate](gate.md), [the configuration](configuration.md).

A verb that is handed something of another type than its signature says raises `BadArguments` before anything is done. Names in
`anima` are imported as `from anima import Home`.
"""
EVERYDAY = """
    Home.create Home.open Home.remember Home.note Home.search Home.prompt Home.session Session.log Session.tools Session.run
    Session.call Session.flush home.inbox.noted home.inbox.keep home.inbox.drop Home.read Home.write Home.undo Home.forget
""".split()


class _Bare(str):
    """An annotation as it is written."""

    __repr__ = str.__str__


def page() -> tuple[str, list[str]]:
    """The page, and the names that say nothing of themselves."""
    missing: list[str] = []
    names = {name: getattr(anima, name) for name in anima.__all__ if name[0] != "_"}
    parts_of_a_home = {f"home.{name}": kind for name, kind in _parts()}
    groups: dict[str, dict[str, Any]] = {
        "A home and a session": {name: names.pop(name) for name in ("Home", "Session")},
        "Parts of a home": parts_of_a_home,
        "Functions": {name: value for name, value in names.items() if isinstance(value, FunctionType)},
        "Values": {name: value for name, value in names.items() if isinstance(value, type) and not _is_error(value)},
        "Errors": {name: value for name, value in names.items() if _is_error(value)},
    }
    groups |= {module.__name__: dict(_own(module)) for module in (aio, compat, testing)}
    told = [name for group in groups.values() for name in group]
    missing += [name for name in names if name not in told]
    parts = [HEAD, *_everyday(groups["A home and a session"] | parts_of_a_home), "\n## What is here\n"]
    parts += [f"- [{title}](#{title.casefold().replace(' ', '-').replace('.', '')})" for title in groups]
    for title, group in groups.items():
        parts += _section(title, group, missing)
    return "\n".join(parts), missing


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, anima.HomeError)


def _everyday(owners: dict[str, Any]) -> Iterator[str]:
    """What one needs first: each verb with its first sentence."""
    yield "\n## Every day\n\n| verb | |\n|---|---|"
    for verb in EVERYDAY:
        owner, _, name = verb.rpartition(".")
        said = " ".join((inspect.getdoc(getattr(owners[owner], name)) or "").split())
        yield f"| `{verb}` | {re.split(r'(?<=[a-z0-9`)])[.;:] ', said)[0].rstrip('.')} |"


def _section(title: str, names: dict[str, Any], missing: list[str]) -> Iterator[str]:
    yield f"\n## {title}\n"
    for name, value in sorted(names.items(), key=lambda item: item[0].casefold()):
        yield f"### `{name}{_call(value, alone=True)}`\n\n{_said(name, value, missing)}\n"
        for member, found in _members(value) if inspect.isclass(value) else ():
            is_told = found.__doc__ or title not in ("Functions", "Values", "Errors", "Parts of a home")
            if is_told:
                yield f"- `{name}.{member}{_call(found)}`: {_said(f'{name}.{member}', found, missing)}"
        yield ""


def _own(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """What a module has of its own, or says that it has."""
    for name, value in vars(module).items():
        listed = name in vars(module).get("__all__", ())
        mine = getattr(value, "__module__", "") == module.__name__ and not name.startswith("_")
        if (listed or mine) and not isinstance(value, ModuleType) and callable(value):
            yield name, value


def _parts() -> Iterator[tuple[str, type]]:
    """The parts of a home, by the types that its module names for them."""
    source = Path(home.__file__).read_text(encoding="utf-8")
    imports = re.findall(r"from (anima\S+) import (.+)", source)
    where = {name: module for module, names in imports for name in names.split(", ")}
    for name, value in vars(home.Home).items():
        if isinstance(value, home.part) and not name.startswith("_"):
            kind = value._make.__annotations__["return"]
            yield name, getattr(import_module(where[kind]), kind)


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Verbs and properties of a class and of what of ours it is made from, in the order in which they are written."""
    seen: set[str] = set()
    for each in kind.__mro__:
        for name, value in vars(each).items() if each.__module__.startswith("anima") else ():
            found = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            if not name.startswith("_") and name not in seen and isinstance(found, (FunctionType, property)):
                seen.add(name)
                yield name, found


def _call(value: Any, *, alone: bool = False) -> str:
    """The arguments of what can be called; of data, its fields. A verb that stands `alone` is given its home."""
    if is_dataclass(value) and "__dataclass_fields__" in vars(value):  # and not what it is made from
        return f"({', '.join(field.name for field in fields(value))})"
    if not isinstance(value, FunctionType):
        return ""
    signature = inspect.signature(value)
    given = [_bare(each) for each in signature.parameters.values() if each.name not in ("self", "cls")]
    if alone and "self" in signature.parameters:
        given = [signature.parameters["self"].replace(name="home"), *given]
    returns = _Bare(signature.return_annotation)
    return re.sub(
        r"<function .*? at 0x[0-9a-f]+>", "…", str(signature.replace(parameters=given, return_annotation=returns))
    )


def _bare(parameter: inspect.Parameter) -> inspect.Parameter:
    if parameter.annotation is inspect.Parameter.empty:
        return parameter
    return parameter.replace(annotation=_Bare(parameter.annotation))


def _said(name: str, value: Any, missing: list[str]) -> str:
    found = inspect.getdoc(value) if not is_dataclass(value) or value.__doc__ else None
    if not found or (is_dataclass(value) and found.startswith(f"{value.__name__}(")):
        missing.append(name)
    return " ".join((found or "").replace("\n\n", " ").split())


if __name__ == "__main__":
    text, silent = page()
    if silent:
        raise SystemExit(f"these say nothing of themselves: {', '.join(silent)}")
    PAGE.write_text(text, encoding="utf-8")
