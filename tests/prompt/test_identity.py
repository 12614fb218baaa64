"""IDENTITY.md read, rendered, written and resolved; avatars; and peers in AGENTS.md."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anima.errors import BadArguments
from anima.layout.dialects import DIALECTS
from anima.prompt.fields import FIELDS, IdentityFields, Peer, check, one_line, parse, peers, render, write
from anima.prompt.identity import MAX_AVATAR_BYTES, Avatar, SourcedValue, avatar, first_avatar, resolve

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
    assert parse(KATE) == IdentityFields(
        name="Kate", creature="octopus", vibe="warm but sharp", emoji="🐙", avatar="https://example.org/kate.png"
    )


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
    assert parse(line) == IdentityFields(name="Kate")


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
    assert parse(text) == IdentityFields()


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
    assert parse(text) == IdentityFields()


def test_text_after_a_fence_or_comment_counts_again():
    assert parse("```\nx\n```\n- **Name:** Kate") == IdentityFields(name="Kate")
    assert parse("<!-- x\n-->\n- **Name:** Kate") == IdentityFields(name="Kate")
    assert parse("<!-->\n- **Name:** Kate") == IdentityFields(name="Kate")


def test_the_last_real_value_wins():
    assert parse("- Name: Ana\n- **Name:** Kate\n- Name: _(pick something)_\n- Name:\n").name == "Kate"


def test_a_value_is_one_clean_line():
    assert parse("- Name: Ka\x00te\x1b\u2028Smith").name == "Kate Smith"


def test_marks_that_are_no_emphasis_stay():
    assert parse("- Avatar: _pics/me.png").avatar == "_pics/me.png"
    assert parse("- Vibe: warm (but *sharp*) today").vibe == "warm (but *sharp*) today"


@given(DOCUMENTS | st.text())
def test_any_text_is_read_and_every_value_could_be_written(text):
    for key in FIELDS:
        value = getattr(parse(text), key)
        assert value is None or acceptable(value)


# -- rendering --------------------------------------------------------------------------------------------------------


def test_the_render_is_that_of_the_seed():
    assert render(KATE, SEED) == "name=Kate, emoji=🐙, vibe=warm but sharp"


def test_absent_fields_are_left_out_of_the_render():
    assert render("- Name: Kate\n- Vibe: dry\n", SEED) == "name=Kate, vibe=dry"
    assert render("- Creature: octopus\n- Avatar: a.png\n- Theme: dusk\n", SEED) == ""


def test_every_field_that_is_filled_in_is_in_the_prompt_of_our_own_dialect():
    keys = DIALECTS["anima"].row("identity").fields
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
    shown = render(text, DIALECTS["anima"].row("identity").fields)

    assert len(shown.splitlines()) <= 1
    assert one_line(shown) == shown


# -- writing ----------------------------------------------------------------------------------------------------------


def test_one_bullet_changes_and_nothing_else():
    assert write(KATE, vibe="calm") == KATE.replace("warm but sharp", "calm")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\ufeff# Me\r\n\r\n* Name: Kate  \r\n* Vibe: dry\r\n", "\ufeff# Me\r\n\r\n* Name: Zoe  \r\n* Vibe: dry\r\n"),
        ("  + __NAME__： Kate", "  + __NAME__： Zoe"),
        ("- **Name: Kate** <!-- ok -->\n", "- **Name: Zoe** <!-- ok -->\n"),
        ("- **Name:** _(pick something)_\n", "- **Name:** Zoe\n"),
        ("- **Name:**\n- Vibe: dry", "- **Name:** Zoe\n- Vibe: dry"),
        ("- Name:Kate", "- Name:Zoe"),
        ("- Name: <!-- which? -->\n", "- Name: Zoe <!-- which? -->\n"),
        ("- Name: Ana\n- Name: Kate\n", "- Name: Ana\n- Name: Zoe\n"),
        ("- Name: Kate\n- Name: _(pick)_\n", "- Name: Zoe\n- Name: _(pick)_\n"),
        ("```\n- Name: Kate\n```\n- Name: Kate\n", "```\n- Name: Kate\n```\n- Name: Zoe\n"),
        ("---\nname: Kate\n---\nName: Kate\n", "---\nname: Kate\n---\nName: Zoe\n"),
    ],
)
def test_a_value_is_replaced_where_it_stands(before, after):
    assert write(before, name="Zoe") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- **Vibe:** dry\n\nMore.\n", "- **Vibe:** dry\n- **Name:** Zoe\n\nMore.\n"),
        ("* vibe: dry\r\nMore.", "* vibe: dry\r\n* name: Zoe\r\nMore."),
        ("VIBE： dry", "VIBE： dry\nNAME： Zoe"),
        ("- **Vibe: dry**\n", "- **Vibe: dry**\n- **Name:** Zoe\n"),
        ("- Vibe: dry <!-- a\nb -->\nMore.\n", "- Vibe: dry <!-- a\nb -->\n- Name: Zoe\nMore.\n"),
        ("- Vibe: dry <!-- a\nb\n", "- Name: Zoe\n- Vibe: dry <!-- a\nb\n"),
        ("# Me\n", "# Me\n\n- **Name:** Zoe\n"),
        ("# Me", "# Me\n\n- **Name:** Zoe"),
        ("Intro.\n# Me\nProse.\n", "Intro.\n# Me\n\n- **Name:** Zoe\n\nProse.\n"),
        ("# Me\r\n\r\nProse.\r\n", "# Me\r\n\r\n- **Name:** Zoe\r\n\r\nProse.\r\n"),
        ("Prose.\n", "- **Name:** Zoe\n\nProse.\n"),
        ("", "- **Name:** Zoe\n"),
        ("\ufeff", "\ufeff- **Name:** Zoe\n"),
        ("\ufeffProse.\r\n", "\ufeff- **Name:** Zoe\r\n\r\nProse.\r\n"),
        ("---\na: b\n---\nProse.", "---\na: b\n---\n- **Name:** Zoe\n\nProse."),
        ("---\na: b\n---", "---\na: b\n---\n- **Name:** Zoe\n"),
        ("```\n# Me\n```\n", "- **Name:** Zoe\n\n```\n# Me\n```\n"),
    ],
)
def test_a_new_bullet_goes_where_a_reader_would_put_it(before, after):
    assert write(before, name="Zoe") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- Vibe: dry\n- Name: Kate\nMore.\n", "- Vibe: dry\nMore.\n"),
        ("- Name: Ana\n\n- Name: Kate\n- Name: _(pick)_\n", "\n- Name: _(pick)_\n"),
        ("Prose.\r\n- Name: Kate", "Prose."),
        ("- Name: Kate <!-- a -->\nMore.", "More."),
        ("- Name: Kate <!-- a\n- Vibe: sly -->\n", "<!-- a\n- Vibe: sly -->\n"),
        ("- Name: Kate\n---\n- Vibe: dry\n---\n", "\n---\n- Vibe: dry\n---\n"),
        ("- Name: _(pick)_\n", "- Name: _(pick)_\n"),
    ],
)
def test_none_removes_the_bullet(before, after):
    assert write(before, name=None) == after


def test_writing_what_is_already_so_changes_nothing():
    text = "- **Name:** _Kate_\n"

    assert write(text, name="Kate", vibe=None) == text
    assert write(text) == text


def test_a_value_that_the_lines_style_cannot_hold_gets_a_plain_bullet():
    assert write("- _Avatar:old.png_\n", avatar="_pics/me.png") == "- **Avatar:** _pics/me.png\n"


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
        write(KATE, name=value)
    assert "name" in str(error.value) and str(error.value).isprintable()


def test_an_unknown_field_is_refused_and_the_known_ones_are_named():
    with pytest.raises(BadArguments, match=r"no identity field 'nmae'; they are name, creature"):
        write(KATE, nmae="Kate")


def test_nothing_is_written_when_one_of_several_values_is_refused():
    with pytest.raises(BadArguments):
        write(KATE, name="Zoe", vibe="(none)")


@given(text=DOCUMENTS, key=st.sampled_from(FIELDS), value=st.none() | VALUES)
@example(text="- _Name: snake_", key="name", value="_pics/me.png")
@example(text="_Avatar:old_", key="avatar", value="_pics/me.png")
@example(text="- Name: K\n---\n- Vibe: x\n---\n", key="name", value=None)
def test_what_was_written_is_read_back_and_the_other_fields_stay(text, key, value):
    before = parse(text)

    after = parse(write(text, **{key: value}))

    assert getattr(after, key) == value
    assert all(getattr(after, other) == getattr(before, other) for other in FIELDS if other != key)


def filled_lines(text: str) -> list[str]:
    return [line for line in re.split(r"\r?\n", text.removeprefix("\ufeff")) if line.strip()]


@given(text=DOCUMENTS, key=st.sampled_from(FIELDS), value=VALUES)
def test_writing_replaces_one_line_or_adds_one_and_keeps_all_others(text, key, value):
    before, after = filled_lines(text), filled_lines(write(text, **{key: value}))

    assert text.startswith("\ufeff") == write(text, **{key: value}).startswith("\ufeff")
    if len(after) > len(before):
        assert any(value in line and after[:n] + after[n + 1 :] == before for n, line in enumerate(after))
    else:
        assert sum(1 for a, b in zip(before, after, strict=True) if a != b) <= 1


@given(text=DOCUMENTS, key=st.sampled_from(FIELDS), value=VALUES)
def test_a_text_with_one_kind_of_line_end_keeps_it(text, key, value):
    lines = text.replace("\r", "")
    if "\n" in lines:
        edited = write(lines.replace("\n", "\r\n"), **{key: value})
        assert "\n" not in edited.replace("\r\n", "") and "\r" not in edited.replace("\r\n", "")


@given(text=DOCUMENTS, other=DOCUMENTS)
def test_parse_write_parse_is_lossless(text, other):
    identity = parse(text)

    written = write(other, **{key: getattr(identity, key) for key in FIELDS})

    assert parse(written) == identity
    assert write(written, **{key: getattr(identity, key) for key in FIELDS}) == written


@given(st.builds(IdentityFields, **{key: st.none() | VALUES for key in FIELDS}))
def test_any_identity_survives_an_empty_file(identity):
    assert parse(write("", **{key: getattr(identity, key) for key in FIELDS})) == identity


# -- resolution -------------------------------------------------------------------------------------------------------


def test_with_nothing_said_the_agent_is_assistant_with_an_a():
    resolved = resolve([])

    assert resolved.name == SourcedValue(value="Assistant", source="default")
    assert resolved.avatar == SourcedValue(value="A", source="default")
    assert resolved.emoji is None and resolved.vibe is None


def test_each_field_comes_from_the_first_source_that_has_it():
    resolved = resolve(
        [
            ("interface", IdentityFields(name="Boss")),
            ("agent", IdentityFields(name="Aria", emoji="🌿")),
            ("IDENTITY.md", IdentityFields(name="Kate", emoji="🐙", vibe="dry", creature="octopus", avatar="a.png")),
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
    assert resolved.fields == IdentityFields(name="Boss", creature="octopus", vibe="dry", emoji="🌿", avatar="🌿")


def test_a_blank_override_is_no_override():
    resolved = resolve([("interface", IdentityFields(name=" \n")), ("agent", IdentityFields(name="Aria"))])

    assert resolved.name == SourcedValue(value="Aria", source="agent")


def test_a_long_name_is_cut_and_a_wild_one_tamed():
    assert resolve([("agent", IdentityFields(name="x" * 60))]).name.value == "x" * 50
    assert resolve([("agent", IdentityFields(name="Ka\nte\x1b[31m"))]).name.value == "Ka te [31m"


@pytest.mark.parametrize("emoji", ["octopus", "https://example.org/🐙", "pics/🐙", "🐙" * 17])
def test_an_emoji_that_is_none_is_passed_over(emoji):
    resolved = resolve([("agent", IdentityFields(emoji=emoji)), ("IDENTITY.md", IdentityFields(avatar="🦉"))])

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
    resolved = resolve([("agent", IdentityFields(avatar="/etc/me.png")), ("IDENTITY.md", IdentityFields(emoji="🐙"))])

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
