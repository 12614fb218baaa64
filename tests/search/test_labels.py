"""Search finds what the view shows and nothing else: the index holds for each listener the text of the one mask."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anima.layout import Layout, Listener, keeper_of
from anima.layout.dialects import DIALECTS, layout_for
from anima.model import DocPath, Scope
from anima.search.current import SHARED, Search, faces

LINES = (
    *("text", "- item", "", "# One", "## Two", "### Three", " ## Indented", "    ## Code", "> # Quoted", "- # Item"),
    *("## Secret <!-- private -->", "# Secret <!--- private --->", "said <!-- PRIVATE -->", "- x <!--private", "---"),
    *("## Team <!-- share: group, subagent -->", "# All <!-- share: main, cron, heartbeat -->", "===", "a\rb", "```"),
    *("> ## Secret <!-- private -->", "Team <!-- share: group -->", "<!--", "-->", "<div>", "  ```", "\r"),
)
PLACES = (
    "MEMORY.md",
    "USER.md",
    "TOOLS.md",
    "memory/2026-05-08.md",
    "notes/boat.md",
    "users/ana/MEMORY.md",
    "bank/w.md",
)
LISTENERS = [Listener(scope=scope, layer=layer) for scope in Scope for layer in ("", "ana", "bob")]


def found_by(listener: Listener, layout: Layout, path: DocPath, text: str) -> list[str]:
    """The texts of a document that the filter of this listener passes."""
    wanted, keeper = Search.filter_for(listener), keeper_of(layout, path)
    is_mine = (SHARED if keeper is None else keeper) in wanted.layers
    return [face for face, scopes in faces(layout, path, text).items() if is_mine and scopes & wanted.scope and face]


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=150)
@given(
    lines=st.lists(st.sampled_from(LINES), max_size=12),
    place=st.sampled_from(PLACES),
    ending=st.sampled_from(["\n", "\r\n"]),
)
def test_what_search_holds_for_a_listener_is_their_view(
    dialect: str, lines: list[str], place: str, ending: str
) -> None:
    text, path = ending.join(lines), DocPath.parse(place)
    for listener in LISTENERS:
        shown = listener.view(layout_for(dialect), path, text).text
        found = found_by(listener, layout_for(dialect), path, text)
        if listener.is_owner and place.startswith(
            "users/"
        ):  # the owner may read what is another's, and need not find it
            assert not found
        else:
            assert found == ([shown] if shown else []), listener
