"""The page of every public name is made from docstrings and annotations, is up to date, and leaves no name out."""

from __future__ import annotations

import builtins
import collections.abc
import re
import typing
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from anima import Home
from anima.home import part

DOCS = Path(__file__).parent.parent / "docs"
# Of others: Python's own, and numpy's.
OTHERS = {"AbstractContextManager", "Path", "NDArray"} | {
    name for module in (builtins, typing, collections.abc) for name in vars(module)
}
OF_LIBRARIES = set(  # of adapters
    """AgentRunResult AgentStreamEvent BaseMessage ClaudeAgentOptions HookMatcher ModelMessage ModelRequestContext Msg
    RunContext WrapRunHandler""".split()
)


@cache
def made() -> Any:
    spec = spec_from_file_location("reference", DOCS / "reference.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page() -> str:
    return (DOCS / "reference.md").read_text(encoding="utf-8")


def headings() -> list[str]:
    return re.findall(r"^### `(.+)`$", page(), re.MULTILINE)


def test_every_public_name_says_what_it_is_and_the_reference_says_the_same() -> None:
    text, missing = made().page()

    assert missing == [], "these say nothing of themselves"
    assert page() == text, "make reference"


def test_every_type_that_a_signature_mentions_has_an_entry() -> None:
    signatures = re.findall(r"^(?:- )?`([^`]+)`", page(), re.MULTILINE)
    plain = (re.sub(r"'(?:[^'\\]|\\.)*'|\b\w+\.[A-Z_]+\b", "", text) for text in signatures)
    named = {name for text in plain for name in re.findall(r"(?<![\w.])[A-Z]\w*", text) if not name.isupper()}
    told = {heading.rpartition(".")[2] for heading in headings()}
    kinds = {kind.__name__ for _, kind in made()._parts()}  # told of as `home.past`

    assert {"SearchAnswer", "Kind", "Role", "Verdict"} <= named
    assert named - told - kinds - OTHERS - OF_LIBRARIES == set()


@pytest.mark.parametrize("heading", [each for each in headings() if each.startswith("anima.")])
def test_a_name_stands_in_the_module_that_its_heading_names(heading: str) -> None:
    module, _, name = heading.rpartition(".")
    if module.startswith("anima.connect.adapters."):
        assert name in (DOCS.parent / "src" / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    else:
        assert hasattr(import_module(module), name)


def test_every_public_attribute_of_a_home_a_session_and_a_part_has_its_line(tmp_path: Path) -> None:
    with Home.create(tmp_path / "aria", name="Aria") as home, home.session(scope="main") as session:
        parts = [name for name, value in vars(Home).items() if isinstance(value, part) and not name.startswith("_")]
        held = {f"home.{name}": getattr(home, name) for name in (*parts, "identity", "prompts")}
        found = {
            f"{owner}.{name}"
            for owner, it in {"Home": home, "Session": session, **held}.items()
            for name in getattr(it, "__dict__", {})
            if not name.startswith("_") and name not in made().INSIDE.get(owner, ())
        }
    told = set(re.findall(r"^- `([\w.]+): ", page(), re.MULTILINE))

    assert {"Session.prompt", "Home.identity", "home.sessions.kept"} <= found
    assert found - told == set()
