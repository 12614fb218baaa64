"""The documents of a new home: short, honest, and without anything that is mistaken for a fact."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.errors import BadArguments
from anima.layout import BOOTSTRAP, starter_texts
from anima.model import DocPath
from anima.prompt import identity as fields
from anima.site import stated_zone

ARIA = starter_texts("Aria", "🌿")
IDENTITY_PLACEHOLDER = re.compile(r"_\((.+)\)_")


def test_a_new_home_has_the_six_core_files_memory_and_the_first_conversation_in_this_order():
    assert list(ARIA) == [
        "IDENTITY.md",
        "SOUL.md",
        "USER.md",
        "AGENTS.md",
        "TOOLS.md",
        "HEARTBEAT.md",
        "MEMORY.md",
        "README.md",  # only where the dialect has a runbook
        "BOOTSTRAP.md",
    ]
    assert list(ARIA)[-1] == BOOTSTRAP


def test_a_fresh_identity_says_the_name_and_emoji_and_nothing_else():
    assert fields.parse(ARIA["IDENTITY.md"]) == {"name": "Aria", "emoji": "🌿"}


def test_without_an_emoji_a_fresh_identity_says_only_the_name():
    assert fields.parse(starter_texts("Aria", None)["IDENTITY.md"]) == {"name": "Aria"}


def test_without_a_name_a_fresh_identity_says_nothing():
    assert fields.parse(starter_texts("", None)["IDENTITY.md"]) == {}


def test_every_placeholder_of_the_identity_template_is_known_even_without_its_parentheses():
    placeholders = IDENTITY_PLACEHOLDER.findall(starter_texts("", None)["IDENTITY.md"])

    assert len(placeholders) == len(fields.FIELDS)
    for words in placeholders:
        assert fields.parse(f"- **Vibe:** {words}") == {}


def test_no_template_but_the_identity_has_the_shape_of_a_filled_identity():
    for path, text in ARIA.items():
        if path != "IDENTITY.md":
            assert fields.parse(text) == {}, path


def test_a_fresh_user_page_has_a_timezone_to_fill_in_and_no_value_yet():
    text = ARIA["USER.md"]

    assert "- **Timezone:**" in text
    assert stated_zone(text) is None


def test_the_operating_guide_is_not_taken_for_a_list_of_peers():
    assert fields.peers(ARIA["AGENTS.md"]) == ()


def test_a_fresh_heartbeat_holds_only_a_comment():
    assert re.sub(r"<!--.*?-->", "", ARIA["HEARTBEAT.md"], flags=re.DOTALL).strip() == ""


def test_a_fresh_memory_holds_headings_and_no_facts():
    shown = re.sub(r"<!--.*?-->", "", ARIA["MEMORY.md"], flags=re.DOTALL)

    assert all(line.startswith("#") for line in shown.splitlines() if line.strip())


def test_the_first_conversation_says_how_it_ends():
    assert re.search(r"`memory_write` with target `bootstrap` and empty\s+content", ARIA["BOOTSTRAP.md"])


@pytest.mark.parametrize(
    "words", ["`daily_log`", "MEMORY.md", "`pending`", "Groups", "Heartbeats", "`HEARTBEAT_OK`", "Safety"]
)
def test_the_operating_guide_speaks_of_what_an_agent_must_know(words):
    assert words in ARIA["AGENTS.md"]


@pytest.mark.parametrize("path", ARIA)
def test_each_template_is_short_plain_and_can_be_written(path):
    text = ARIA[path]

    assert len(text) < (4000 if path == "AGENTS.md" else 1800)
    assert text.endswith("\n") and "\r" not in text and not text.startswith("\ufeff")
    assert max(map(len, text.splitlines())) <= 120
    assert "!" not in text.replace("<!--", "")
    assert "{" not in text
    assert DocPath.parse(path).is_markdown


@given(name=st.text(), emoji=st.none() | st.text())
def test_a_name_is_filled_in_as_it_is_or_refused_and_never_changes_another_line(name, emoji):
    try:
        filled = starter_texts(name, emoji)["IDENTITY.md"]
    except BadArguments:
        assert len(f"{name}x".splitlines()) > 1 or len(f"{emoji}x".splitlines()) > 1
        return
    plain = starter_texts("x", "y")["IDENTITY.md"]
    assert filled.count("\n") == plain.count("\n")
    assert [line for line in filled.split("\n") if not line.startswith(("- **Name", "- **Emoji"))] == [
        line for line in plain.split("\n") if not line.startswith(("- **Name", "- **Emoji"))
    ]


@given(name=st.text(min_size=1, max_size=60))
def test_a_name_that_passes_the_check_is_read_back(name):
    try:
        fields.check("name", name)
    except BadArguments:
        return
    assert fields.parse(starter_texts(name, None)["IDENTITY.md"]) == {"name": name}


def test_a_name_with_braces_is_just_a_name():
    assert "- **Name:** {emoji} {0}\n" in starter_texts("{emoji} {0}", None)["IDENTITY.md"]
