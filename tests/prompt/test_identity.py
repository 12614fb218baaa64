"""IDENTITY.md read, rendered, written and resolved; avatars; and peers in AGENTS.md."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anima.errors import BadArguments
from anima.layout.dialects import layout_for
from anima.prompt.identity import (
    FIELDS,
    MAX_AVATAR_BYTES,
    Avatar,
    Peer,
    SourcedValue,
    avatar,
    check,
    first_avatar,
    one_line,
    parse,
    peers,
    render,
    resolve,
)

SEED = ("name", "emoji", "vibe")  # what the prompts of the seed show
KATE = """\
# Identity

- **Name:** Kate
- **Creature:** octopus
- **Vibe:** warm but sharp
- **Emoji:** 🐙
- **Avatar:** https://example.org/kate.png
"""

# Lines that mean something to a reader of Markdown, to be put together in any order.
FRAGMENTS = [
    "- **Name:** Kate",
    "* __Vibe__: calm",
    "+ Emoji： 🐙",
    "  - *Creature:* _octopus_",
    "Theme: dusk",
    "**Avatar: a.png**",
    "- _Name: snake_",
    "- **Name:** _(pick something)_",
    "- **Vibe:** <!-- why --> dry <!-- so -->",
    "- **Name:** Zoe <!-- begins",
    "- Emoji:",
    "# Heading",
    "## Heading <!-- private -->",
    "```",
    "~~~~ text",
    "- ```",
    "<!--",
    "-->",
    "<!-->",
    "<!-- note --> - Name: Ghost",
    "---",
    "...",
    "",
    "   ",
    "Some prose: with a colon.",
]
DOCUMENTS = st.builds(
    lambda bom, lines, eols, last: bom + "".join(a + b for a, b in zip(lines, eols, strict=False)) + last,
    st.sampled_from(["", "\ufeff"]),
    st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=12), max_size=12),
    st.lists(st.sampled_from(["\n", "\r\n", "\n", "\n\n"]), min_size=12, max_size=12),
    st.sampled_from(["", *FRAGMENTS]),
)


def acceptable(value: str) -> bool:
    try:
        check("name", value)
    except BadArguments:
        return False
    return True


TRICKY = [
    "_pics/me.png",
    "snake_",
    "a*b",
    "x --> y",
    "Name: Kate",
    "# Kate",
    "---",
    "`code`",
    "Kate (the second)",
    "a: b",
]
VALUES = (st.text(min_size=1, max_size=20) | st.sampled_from(TRICKY)).filter(acceptable)


# -- reading ----------------------------------------------------------------------------------------------------------


def test_the_example_of_the_seed_is_read():
    assert parse(KATE) == {
        "name": "Kate",
        "creature": "octopus",
        "vibe": "warm but sharp",
        "emoji": "🐙",
        "avatar": "https://example.org/kate.png",
    }


@pytest.mark.parametrize(
    "line",
    [
        "- **Name:** Kate",
        "- **Name**: Kate",
        "- Name: Kate",
        "* Name: Kate",
        "+ NAME: Kate",
        "Name: Kate",
        "**name:** Kate",
        "-Name:Kate",
        "  - *Name:* Kate",
        "\t- __Name__: Kate",
        "- _Name_: _Kate_",
        "- ***Name:*** **Kate**",
        "- **_Name:_** Kate",
        "- **Name: Kate**",
        "- __Name: Kate__",
        "- **Name**： Kate",
        "- 名前\n- **Name：**Kate",
        "- **Name:** Kate   ",
        "- **Name:** Kate <!-- a fine name -->",
        "- **Name:** <!-- a fine name --> Kate",
        "• Name: Kate",
        "\ufeff- **Name:** Kate",
        "\ufeff# Identity\r\n\r\n- **Name:** Kate\r\n",
        "---\ntitle: who\n---\n- **Name:** Kate",
        "\ufeff---\r\nname: Nobody\r\n---\r\n- **Name:** Kate\r\n",
        "- Name: Ana\r\n- Name: Kate\r\n",
    ],
)
def test_a_name_is_read_in_any_of_its_forms(line):
    assert parse(line) == {"name": "Kate"}


@pytest.mark.parametrize(
    "text",
    [
        "- **Name:** _(pick something)_",
        "- **Name:** (pick something)",
        "- **Name:** *(anything at all)*",
        "- **Name:** _( … )_",
        "- **Name:** （名前）",
        "- **Name:** pick something",
        "- **Name:** **Pick   Something…**",
        "- **Name:** pick-something",
        "- **Name:** your name here.",
        "- **Name:** {name}",
        "- **Name:** TBD",
        "- **Name:** —",
        "- **Name:** ...",
        "- **Name:** ___",
        "- **Name:**",
        "- **Name:** ****",
        "- **Name:** <!-- nothing -->",
    ],
)
def test_a_placeholder_is_no_name(text):
    assert parse(text) == {}


@pytest.mark.parametrize(
    "text",
    [
        "```\n- **Name:** Kate\n```",
        "~~~ markdown\n- **Name:** Kate\n```\n- **Name:** Kate\n",
        "- ```\n  Name: Kate\n  ```\n",
        "<!-- - **Name:** Kate -->",
        "<!--\n- **Name:** Kate\n-->",
        "<!-- x --> - **Name:** Kate",
        "text <!-- begins\n- **Name:** Kate\n--> - **Name:** Kate",
        "<!-- never ends\n- **Name:** Kate",
        "---\nname: Kate\n---\n",
        "- **Names:** Kate",
        "- **First name:** Kate",
        "# Name: Kate",
        "> Name: Kate",
        "| Name: Kate |",
        "Her name: Kate",
        "- **Name** Kate",
    ],
)
def test_what_a_reader_does_not_see_as_the_name_does_not_count(text):
    assert parse(text) == {}


def test_text_after_a_fence_or_comment_counts_again():
    assert parse("```\nx\n```\n- **Name:** Kate") == {"name": "Kate"}
    assert parse("<!-- x\n-->\n- **Name:** Kate") == {"name": "Kate"}
    assert parse("<!-->\n- **Name:** Kate") == {"name": "Kate"}
    assert parse("- x\n  ```\n  y\n\n# Me\n- **Name:** Kate") == {"name": "Kate"}  # code ends with its item


def test_the_last_real_value_wins():
    assert parse("- Name: Ana\n- **Name:** Kate\n- Name: _(pick something)_\n- Name:\n")["name"] == "Kate"


def test_a_value_is_one_clean_line():
    assert parse("- Name: Ka\x00te\x1b\u2028Smith")["name"] == "Kate Smith"


def test_marks_that_are_no_emphasis_stay():
    assert parse("- Avatar: _pics/me.png")["avatar"] == "_pics/me.png"
    assert parse("- Vibe: warm (but *sharp*) today")["vibe"] == "warm (but *sharp*) today"


@given(DOCUMENTS | st.text())
def test_any_text_is_read_and_every_value_could_be_written(text):
    assert all(key in FIELDS and acceptable(value) for key, value in parse(text).items())


# -- rendering --------------------------------------------------------------------------------------------------------


def test_the_render_is_that_of_the_seed():
    assert render(KATE, SEED) == "name=Kate, emoji=🐙, vibe=warm but sharp"


def test_absent_fields_are_left_out_of_the_render():
    assert render("- Name: Kate\n- Vibe: dry\n", SEED) == "name=Kate, vibe=dry"
    assert render("- Creature: octopus\n- Avatar: a.png\n- Theme: dusk\n", SEED) == ""


def test_every_field_that_is_filled_in_is_in_the_prompt_of_our_own_dialect():
    keys = layout_for("anima").row("identity").fields
    said = "".join(f"- **{key.title()}:** my {key}\n" for key in FIELDS)

    assert set(keys) == {*FIELDS, "*"}
    assert render(f"# Identity\n\n{said}- **Pronouns:** it\n- **Pet:** _(if any)_\n- plain: no\n", keys) == (
        ", ".join(f"{key}=my {key}" for key in keys[:-1]) + ", pronouns=it"
    )
    assert render("```\n- **Pet:** x\n```\n<!-- \n- **Pet:** x\n-->\n", keys) == ""
    assert render("- **Avatar:** data:image/png;base64," + "A" * 400, keys) == ""


@given(st.text() | st.text(st.sampled_from("- *_:：\n\r\tabName<!>"), max_size=80))
@example("- **Na\x0bme:** a\x85b")
def test_a_render_is_always_one_line_without_control_characters(text):
    shown = render(text, layout_for("anima").row("identity").fields)

    assert len(shown.splitlines()) <= 1
    assert one_line(shown) == shown


# -- what may be a value -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        "",
        "  ",
        "a\nb",
        "a\rb",
        "a\u2028b",
        "a\x00b",
        "(a)",
        "_(a)_",
        "pick something",
        "—",
        "*a*",
        "_a_",
        " a",
        "a <!-- b",
        "\ud800",
    ],
)
def test_a_value_that_would_not_be_read_back_is_refused(value):
    with pytest.raises(BadArguments) as error:
        check("name", value)
    assert "name" in str(error.value) and str(error.value).isprintable()


# -- resolution -------------------------------------------------------------------------------------------------------


def test_with_nothing_said_the_agent_is_assistant_with_an_a():
    resolved = resolve([])

    assert resolved.name == SourcedValue(value="Assistant", source="default")
    assert resolved.avatar == SourcedValue(value="A", source="default")
    assert resolved.emoji is None and resolved.vibe is None


def test_each_field_comes_from_the_first_source_that_has_it():
    resolved = resolve(
        [
            ("interface", {"name": "Boss"}),
            ("agent", {"name": "Aria", "emoji": "🌿"}),
            ("IDENTITY.md", {"name": "Kate", "emoji": "🐙", "vibe": "dry", "creature": "octopus", "avatar": "a.png"}),
        ]
    )

    assert resolved.name == SourcedValue(value="Boss", source="interface")
    assert resolved.emoji == SourcedValue(value="🌿", source="agent")
    assert resolved.vibe == SourcedValue(value="dry", source="IDENTITY.md")
    assert [(a.value, a.source) for a in resolved.avatars] == [
        ("🌿", "agent"),
        ("a.png", "IDENTITY.md"),
        ("🐙", "IDENTITY.md"),
        ("A", "default"),
    ]
    shown = {key: found.value for key in FIELDS if (found := getattr(resolved, key))}
    assert shown == {"name": "Boss", "creature": "octopus", "vibe": "dry", "emoji": "🌿", "avatar": "🌿"}


def test_a_blank_override_is_no_override():
    resolved = resolve([("interface", {"name": " \n"}), ("agent", {"name": "Aria"})])

    assert resolved.name == SourcedValue(value="Aria", source="agent")


def test_a_long_name_is_cut_and_a_wild_one_tamed():
    assert resolve([("agent", {"name": "x" * 60})]).name.value == "x" * 50
    assert resolve([("agent", {"name": "Ka\nte\x1b[31m"})]).name.value == "Ka te [31m"


@pytest.mark.parametrize("emoji", ["octopus", "https://example.org/🐙", "pics/🐙", "🐙" * 17])
def test_an_emoji_that_is_none_is_passed_over(emoji):
    resolved = resolve([("agent", {"emoji": emoji}), ("IDENTITY.md", {"avatar": "🦉"})])

    assert resolved.emoji == SourcedValue(value="🦉", source="IDENTITY.md")


# -- avatars ----------------------------------------------------------------------------------------------------------

HOME = {"avatars/kate.png": 1_000, "big.gif": MAX_AVATAR_BYTES + 1, "full.webp": MAX_AVATAR_BYTES, "me.svg": 9}


def look(value: str) -> Avatar:
    return avatar(value, size_of=lambda path: HOME.get(path.text))


@pytest.mark.parametrize("value", ["avatars/kate.png", "./avatars/kate.png", "full.webp", "me.svg", " me.svg "])
def test_a_picture_in_the_home_is_local(value):
    found = look(value)

    assert (found.kind, found.source, found.reason) == ("local", value.strip().removeprefix("./"), None)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("/etc/kate.png", "outside_workspace"),
        ("~/kate.png", "outside_workspace"),
        ("../kate.png", "outside_workspace"),
        ("avatars/../../kate.png", "outside_workspace"),
        ("C:\\Users\\kate\\me.png", "outside_workspace"),
        ("C:/Users/kate/me.png", "outside_workspace"),
        ("\\\\host\\share\\me.png", "outside_workspace"),
        ("file:///home/kate/me.png", "outside_workspace"),
        ("javascript:alert(1)", "outside_workspace"),
        ("https:///etc/kate.png", "outside_workspace"),
        (".hidden/kate.png", "outside_workspace"),
        ("/a", "outside_workspace"),
        ("~", "outside_workspace"),
        ("..", "outside_workspace"),
        ("avatars/ka\u202ete.png", "outside_workspace"),
        ("kate.bmp", "unsupported_extension"),
        ("kate.png.exe", "unsupported_extension"),
        ("avatars/png", "unsupported_extension"),
        ("octopus", "unsupported_extension"),
        ("data:text/html,hello", "unsupported_extension"),
        ("nobody.png", "missing"),
        ("", "missing"),
        ("big.gif", "too_large"),
    ],
)
def test_an_avatar_that_cannot_be_shown_says_why_and_shows_no_absolute_path(value, reason):
    found = look(value)

    assert (found.kind, found.reason, found.value) == ("none", reason, None)
    if reason == "outside_workspace":
        assert found.source is None


def test_case_of_the_extension_does_not_matter():
    assert avatar("ME.PNG", size_of=lambda path: 5).kind == "local"


def test_a_web_address_is_remote_and_its_password_is_not_shown():
    assert look("https://example.org/kate.png?v=2").source == "https://example.org/kate.png?v=2"
    hidden = look("HTTPS://kate:secret@example.org/me")
    assert (hidden.kind, hidden.source) == ("remote", "HTTPS://example.org/me")
    assert "secret" not in repr(hidden)


def test_an_inline_picture_is_shown_short():
    found = look("data:image/png;base64," + "QUJD" * 5_000)

    assert (found.kind, found.source) == ("data", "data:image/png,…")
    assert len(repr(found)) < 200


@pytest.mark.parametrize("value", ["A", "KT", "🐙", "👨‍👩‍👧‍👦", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "👍🏽", ":)", "凯特", "❤️", "é"])
def test_up_to_four_characters_are_a_text_avatar(value):
    assert look(value) == Avatar(kind="text", source=value, value=value)


@pytest.mark.parametrize("value", ["A B", "abcde", "\u200b", "🐙🐙🐙🐙🐙"])
def test_what_is_longer_or_has_blanks_or_cannot_be_seen_is_no_text_avatar(value):
    assert look(value).kind == "none"


@given(st.text() | st.builds("/{}.png".format, st.text()) | st.builds("~{}".format, st.text()))
def test_no_avatar_ever_shows_an_absolute_path(value):
    for size in (None, 10, MAX_AVATAR_BYTES + 1):
        found = avatar(value, size_of=lambda path, size=size: size)
        shown = found.source or ""
        assert not shown.startswith(("/", "~", "\\")) and "../" not in shown
        assert shown == one_line(shown)


def test_the_first_avatar_that_can_be_shown_is_taken_and_the_failure_before_it_told():
    resolved = resolve([("agent", {"avatar": "/etc/me.png"}), ("IDENTITY.md", {"emoji": "🐙"})])

    found = first_avatar(resolved.avatars, size_of=lambda path: None)

    assert (found.kind, found.source, found.reason) == ("text", "🐙", "outside_workspace")
    assert first_avatar([], size_of=lambda path: None).source == "A"


# -- peers ------------------------------------------------------------------------------------------------------------

PEER_LIST = """\
# AGENTS

The colleagues you may turn to.

- **ana** — sales, and anything about quotes
- **bob**: keeps the books
  - only on weekdays
- `ops-2` - watches the servers
- **legal:** reads contracts
- @luca – travel
- marta
"""

GUIDE = """\
# AGENTS.md - how you work

Read this first.

## Memory

- **Daily**: what happened
- **Long-term**: what stays true
- Write things down

## Working with other agents

- **Never**: share MEMORY.md
- Ask before you delegate anything that costs money
- Say what you expect back

1. Plan
2. Do
"""


def test_a_list_of_peers_is_read():
    assert peers(PEER_LIST) == (
        Peer(id="ana", description="sales, and anything about quotes"),
        Peer(id="bob", description="keeps the books"),
        Peer(id="ops-2", description="watches the servers"),
        Peer(id="legal", description="reads contracts"),
        Peer(id="luca", description="travel"),
        Peer(id="marta", description=""),
    )


def test_an_operating_guide_is_no_list_of_peers():
    assert peers(GUIDE) == ()


def test_a_guide_may_have_a_section_of_peers():
    text = GUIDE + "\n## Peers\n\n- **ana**: sales\n- **ANA**: again\n"

    assert peers(text) == (Peer(id="ana", description="sales"),)


def test_names_in_code_or_comments_or_under_other_headings_are_no_peers():
    for text in (
        "# Peers\n```\n- **ana**: sales\n```\n",
        "# Peers\n<!--\n- **ana**: sales\n-->\n",
        "# Colours\n- **red**: warm\n",
        "- **ana**: sales\n",
        "# Agents\n- Be kind to everyone\n- Never shout\n",
        "",
    ):
        assert peers(text) == ()


@given(DOCUMENTS | st.text())
def test_any_text_is_a_list_of_peers_or_not(text):
    named = peers(text)

    assert all(peer.id and peer.description == one_line(peer.description) for peer in named)
