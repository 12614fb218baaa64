"""Which agent a message reaches, and who is listening: keys, chat types and bindings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima import BadArguments, Home, Scope
from anima.config import Binding
from anima.sessions import agent_for, narrowed, route_of


@pytest.mark.parametrize(
    ("key", "scope", "agent", "channel", "chat"),
    [
        ("main", Scope.MAIN, "", "", ""),
        ("agent:bob:main", Scope.MAIN, "bob", "", ""),
        ("agent:bob:main:thread:7", Scope.MAIN, "bob", "", ""),
        ("agent:bob:telegram:direct:luis", Scope.MAIN, "bob", "telegram", "luis"),
        ("agent:bob:telegram:dm:luis", Scope.MAIN, "bob", "telegram", "luis"),
        ("agent:bob:telegram:group:42", Scope.GROUP, "bob", "telegram", "42"),
        ("agent:bob:discord:channel:9:thread:3", Scope.GROUP, "bob", "discord", "9"),
        ("agent:bob:subagent:5e1f", Scope.SUBAGENT, "bob", "", ""),
        ("agent:bob:cron:nightly:run:1", Scope.CRON, "bob", "", ""),
        ("cron:nightly", Scope.CRON, "", "", ""),
        ("heartbeat", Scope.HEARTBEAT, "", "", ""),
        ("telegram:group:42", Scope.GROUP, "", "telegram", "42"),
    ],
)
def test_a_key_says_who_listens(key, scope, agent, channel, chat):
    route = route_of(key)

    assert (route.scope, route.agent, route.channel, route.chat) == (scope, agent, channel, chat)


@pytest.mark.parametrize(
    "key",
    [
        "agent:bob",
        "agent::main",
        "agent:bob:",
        "hook:x",
        "mainly",
        "main:group:42",
        "telegram",
        "telegram:direct",
        "telegram:direct:",
        "agent:bob:telegram:party:42",
        "global",
        "unknown:main",
        "agent:bob:telegram",
    ],
)
def test_what_a_key_does_not_say_clearly_is_a_group(key):
    assert route_of(key).scope is Scope.GROUP


@given(st.text(max_size=60))
def test_any_key_gives_a_scope_and_the_owner_alone_only_by_a_known_form(key):
    try:
        route = route_of(key)
    except BadArguments:
        return
    words = key.strip().casefold().split(":")
    if route.scope is Scope.MAIN:
        assert "main" in words or {"direct", "dm", "private"} & set(words)


def test_a_channel_narrows_and_never_widens():
    assert narrowed(Scope.MAIN, "group") is Scope.GROUP
    assert narrowed(Scope.MAIN, "never-heard-of") is Scope.GROUP
    assert narrowed(Scope.MAIN, "direct") is Scope.MAIN
    assert narrowed(Scope.MAIN, None) is Scope.MAIN
    assert narrowed(Scope.GROUP, "direct") is Scope.GROUP
    assert narrowed(Scope.SUBAGENT, "group") is Scope.SUBAGENT


def test_the_first_binding_that_fits_names_the_agent():
    bindings = (
        Binding(agent="work", channel="slack"),
        Binding(agent="family", channel="telegram", chat="-100"),
        Binding(agent="home", channel="telegram"),
    )

    def asked(**said):
        return agent_for(bindings, default="main", **{"channel": None, "account": None, "chat": None} | said)

    assert asked(channel="slack", chat="x") == "work"
    assert asked(channel="telegram", chat="-100") == "family"
    assert asked(channel="telegram", chat="7") == "home"
    assert asked(channel="signal") == "main"


CONFIG = """
[[agent]]
id = "aria"
[[agent]]
id = "bob"
home = "bobs"
[[binding]]
agent = "bob"
channel = "slack"
"""


@pytest.fixture
def two(tmp_path, clock):
    """Two agents of one configuration, each with a home of its own."""
    with Home.create(tmp_path / "aria", name="Aria", clock=clock) as home:
        home.note("aria knows the CANARY-ARIA")
    Home.create(tmp_path / "aria" / "bobs", name="Bob", clock=clock).close()
    (tmp_path / "aria" / "anima.toml").write_text(CONFIG, encoding="utf-8")
    Home.open(tmp_path / "aria").trust()
    return tmp_path / "aria"


def test_bindings_route_and_no_agent_speaks_in_anothers_place(two, clock):
    with Home.open(two, clock=clock) as aria, Home.open(two, agent="bob", clock=clock) as bob:
        assert aria.sessions.agent_for(channel="slack") == "bob"
        assert aria.sessions.agent_for(channel="telegram") == "aria"
        with pytest.raises(BadArguments, match="'bob'"):
            aria.session(scope=Scope.MAIN, channel="slack")
        with pytest.raises(BadArguments, match="'aria'"):
            bob.session(scope=Scope.MAIN, channel="telegram")
        with bob.session(scope=Scope.MAIN, channel="slack") as session:
            assert "CANARY-ARIA" not in session.prompt.text
            assert session.call("who_am_i")["identity"]["name"] == "Bob"
        with pytest.raises(BadArguments, match="agent 'bob'"):
            aria.sessions.by_key("agent:bob:main")


def test_a_group_chat_makes_a_session_a_groups(tmp_path, clock):
    with Home.create(tmp_path / "home", name="Aria", clock=clock) as home:
        home.remember("CANARY-PRIVATE is the owner's")
        with home.session(scope=Scope.MAIN, channel="telegram", chat_type="supergroup") as session:
            assert session.listener.scope is Scope.GROUP
            assert "CANARY-PRIVATE" not in session.prompt.text
        with home.sessions.by_key("agent:main:telegram:direct:luis") as session:
            assert session.listener.scope is Scope.MAIN and session.channel == "telegram"
        with home.sessions.by_key("something:else:entirely") as session:
            assert session.listener.scope is Scope.GROUP
