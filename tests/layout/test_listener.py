"""Who is listening: layers, scopes of files, and what of a document they see."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.errors import BadArguments
from anima.layout import Listener, Row, how_to_own, layer_at, layer_of, person_of, place_of
from anima.layout.dialects import DIALECTS, layout_for
from anima.model import DocPath, Scope

CHANNELS = st.text(st.characters(exclude_characters=":"), min_size=1, max_size=8) | st.sampled_from(["telegram", "cli"])
SENDERS = st.text(max_size=60) | st.from_regex(r"[a-zA-Z0-9_+@.-]{1,60}", fullmatch=True)


# -- layers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sender", ["", "ana", "luis", "Ana", "../../etc", "telegram:4711"])
def test_while_nobody_is_named_as_owner_no_sender_is(sender: str) -> None:
    assert layer_of(sender, ()) != "" and layer_of(sender, [""]) != ""


def test_the_owner_and_a_message_without_sender_have_the_homes_own_layer() -> None:
    assert layer_of(None, ["luis"]) == layer_of("luis", ["luis", "tg:42"]) == layer_of("tg:42", ["luis", "tg:42"]) == ""
    assert layer_of(None, ()) == ""


@pytest.mark.parametrize(
    ("channel", "sender"),
    [
        ("slack", "luis"),
        ("slack", "tg:42"),
        ("tg", "tg:42"),
        ("tg", "luis"),
        ("TG", "42"),
        ("tg", " 42"),
        ("t", "g:42"),
    ],
)
def test_whoever_has_the_owners_name_elsewhere_is_somebody_else(channel: str, sender: str) -> None:
    assert layer_of(person_of(sender, channel), ["luis", "tg:42"]) != ""
    assert layer_of(person_of("42", "tg"), ["luis", "tg:42"]) == ""


@given(one=st.tuples(SENDERS, CHANNELS), other=st.tuples(SENDERS, CHANNELS))
def test_two_people_are_never_one_and_can_be_named_as_a_whole(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert place_of(person_of(*one), None) == (one[1], one[0])
    if one != other:
        assert person_of(*one) != person_of(*other)
        assert layer_of(person_of(*one), ()) != layer_of(person_of(*other), ())


def test_a_channel_with_a_colon_could_be_taken_for_another() -> None:
    with pytest.raises(BadArguments, match="no colon"):
        place_of("b", "telegram:a")


@pytest.mark.parametrize(
    ("owners", "told"),
    [((), True), (("luis",), True), (("slack:7",), True), (("telegram:1",), False), (("slack:7", "telegram:1"), False)],
)
def test_a_stranger_is_told_of_where_the_owner_may_only_have_forgotten_to_name_themselves(
    owners: tuple[str, ...], told: bool
) -> None:
    said = how_to_own("telegram:4711", owners)
    assert ('owner = ["telegram:4711"]' in said) == told == bool(said)
    assert not any(owner in said for owner in owners)


@pytest.mark.parametrize("sender", ["Luis", " luis", "luis ", "luiS", "lu\u200bis", "", "lui"])
def test_a_name_that_is_only_like_the_owners_is_somebody_else(sender: str) -> None:
    assert layer_of(sender, ["luis"]) != ""


@pytest.mark.parametrize("sender", ["ana", "42", "ana-maria", "constance", "comfort", "nullius", "a", "x" * 48])
def test_a_plain_name_is_its_own_layer(sender: str) -> None:
    assert layer_of(sender, ["luis"]) == sender


@pytest.mark.parametrize(
    "sender", ["con", "nul", "com1", "lpt9", "../luis", "a/b", ".", "", "u-ana", "Ana", "-a", "é", "a" * 49]
)
def test_any_other_name_becomes_a_safe_one(sender: str) -> None:
    layer = layer_of(sender, ["luis"])

    assert layer.startswith("u-")
    assert DocPath.parse(f"users/{layer}/MEMORY.md").key == f"users/{layer}/memory.md"


@given(one=SENDERS, other=SENDERS)
def test_two_senders_never_share_a_layer(one: str, other: str) -> None:
    if one != other:
        assert layer_of(one, ["luis"]) != layer_of(other, ["luis"])


@given(sender=SENDERS)
def test_nobody_can_take_the_name_of_somebody_elses_layer(sender: str) -> None:
    layer = layer_of(sender, ["luis"])

    assert layer == sender or layer_of(layer, ["luis"]) != layer


@pytest.mark.parametrize(
    ("person", "layer"),
    [("telegram:4711", "telegram.4711"), ("telegram:-100", "telegram.-100"), ("ana", "ana"), ("con:x", "u-con-x-")],
)
def test_a_person_on_a_channel_has_a_readable_layer(person: str, layer: str) -> None:
    assert layer_of(person, ()).startswith(layer)
    assert DocPath.parse(f"users/{layer_of(person, ())}/MEMORY.md").text.endswith("MEMORY.md")


@pytest.mark.parametrize(
    ("path", "layer"),
    [
        ("users/ana/MEMORY.md", "ana"),
        ("Users/ANA/memory/x.md", "ana"),
        ("users/ana.md", None),
        ("MEMORY.md", None),
        ("notes/users/ana/MEMORY.md", None),
    ],
)
def test_a_layer_is_known_by_its_place(path: str, layer: str | None) -> None:
    assert layer_at(DocPath.parse(path)) == layer


# -- who sees what -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("scope", Scope)
def test_a_sender_never_sees_what_is_the_owners_own(dialect: str, scope: Scope) -> None:
    layout, ana = layout_for(dialect), Listener(scope=scope, layer="ana")

    for path in (
        "USER.md",
        layout.curated,
        f"{layout.daily}/2026-05-08.md",
        "DREAMS.md",
        "bank/world.md",
        "users/bob/USER.md",
        "memory/topics/x.md",
        "sessions/x.jsonl",
        "notes/a.md",
    ):
        assert not ana.sees(layout, DocPath.parse(path)), path
        assert not ana.owns(DocPath.parse(path))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_owner_alone_sees_everything_but_what_another_scope_is_for(dialect: str) -> None:
    layout, owner = layout_for(dialect), Listener(scope=Scope.MAIN)

    assert owner.sees_all
    for path in ("USER.md", layout.curated, "DREAMS.md", "users/bob/USER.md", "anything/else.md"):
        assert owner.sees(layout, DocPath.parse(path)), path


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("scope", [scope for scope in Scope if scope is not Scope.MAIN])
def test_a_file_the_table_does_not_know_is_for_the_owner_alone(dialect: str, scope: Scope) -> None:
    assert not Listener(scope=scope).sees(layout_for(dialect), DocPath.parse("somewhere/new.md"))


def test_a_layer_stands_in_for_user_memory_and_logs_and_for_nothing_else() -> None:
    layout, ana = layout_for("anima"), Listener(scope=Scope.MAIN, layer="ana")

    assert ana.path_of(layout.row("user")) == "users/ana/USER.md"
    assert ana.path_of(layout.row("memory")) == "users/ana/MEMORY.md"
    assert ana.path_of(layout.row("soul")) == "SOUL.md"
    assert ana.daily_folder(layout) == "users/ana/memory"
    assert Listener(scope=Scope.MAIN).path_of(layout.row("memory")) == "MEMORY.md"


SHARING = "# Boat\n\nquiet\n\n## Team <!-- share: group, main -->\n\noars\n\n## Mine <!-- private -->\n\nkey\n"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_heading_shares_reaches_the_scope_it_names_of_whose_it_is(dialect: str) -> None:
    layout = layout_for(dialect)
    for place, layer in ((layout.curated, ""), ("notes/boat.md", ""), ("users/ana/MEMORY.md", "ana")):
        path = DocPath.parse(place)
        for listener in (Listener(scope=scope, layer=who) for scope in Scope for who in ("", "ana", "bob")):
            part = listener.view(layout, path, SHARING)
            theirs = listener.layer == layer
            is_read_over = listener.sees_all and layer == "ana"  # the owner reads a user's, but for what is private
            assert ("oars" in part.text) == (
                is_read_over or (theirs and listener.scope in (Scope.MAIN, Scope.GROUP)) or listener.sees(layout, path)
            ), (place, listener)
            assert ("key" in part.text) == (theirs and listener.scope is Scope.MAIN), (place, listener)
            assert part.text == "".join(SHARING[start:end] for start, end in part.spans)


def test_a_text_without_a_place_is_nobodys_until_somebody_says_so() -> None:
    layout, group = layout_for("anima"), Listener(scope=Scope.GROUP)

    assert group.view(layout, None, SHARING).text == ""
    assert "oars" in group.view(layout, None, SHARING, visible=True).text
    assert "key" not in group.view(layout, None, SHARING, visible=True).text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_row_the_configuration_adds_can_loosen_one_of_the_table(dialect: str) -> None:
    from dataclasses import replace

    layout = layout_for(dialect)
    wider = replace(
        layout, others=(*layout.others, Row(role="alternate-soul", path=layout.curated, scopes=frozenset(Scope)))
    )

    assert wider.row_of(DocPath.parse(layout.curated)).role == "memory"
