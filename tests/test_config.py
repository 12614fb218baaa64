"""anima.toml, environment and flags: checked, merged, and held back where a folder is not trusted. And the user's list."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.config import Config, load
from anima.errors import BadConfig, Damaged, NewerFormat
from anima.layout.trust import Register, default_home, folder
from anima.model import Scope

KEYS = [key for key, _, _ in Config().rows()]


def read(text: str | None = None, *, trusted: bool = True, **env: str) -> Config:
    return load(text, env=env, trusted=trusted)


# -- keys, types, ranges -----------------------------------------------------------------------------------------------


def test_with_nothing_said_every_value_is_the_default() -> None:
    settings = read()

    assert settings.rows() == Config().rows()
    assert {source for _, _, source in settings.rows()} == {"default"}


def test_the_example_of_the_design_is_read() -> None:
    settings = read(
        """
        dialect = "auto"
        timezone = "America/Bogota"
        owner = ["luis"]
        [identity]
        name = "Aria"
        emoji = "🌿"
        [prompt]
        file_chars = 8000
        additional = ["VISION.md", {path = "notes/house.md", scopes = ["main", "group"]}]
        order = "seed"
        [persona]
        chance = 0.1
        at = "23:30"
        duration = "30m"
        [gate]
        preset = "strict"
        [[gate.rule]]
        id = "no-web"
        when = {origin = ["web"]}
        then = "deny"
        [[agent]]
        id = "scout"
        home = "../scout"
        allowed_delegates = ["aria"]
        [[binding]]
        agent = "scout"
        channel = "telegram"
        """
    )

    assert settings.owner == ("luis",)
    assert [file.path for file in settings.prompt.additional] == ["VISION.md", "notes/house.md"]
    assert settings.prompt.additional[1].scopes == {Scope.MAIN, Scope.GROUP}
    assert settings.gate.rule[0].when == (("origin", ("web",)),)
    assert settings.agent[0].allowed_delegates == ("aria",)
    assert settings.binding[0].channel == "telegram"
    assert settings.persona.chance == 0.1


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        read().prompt.style = "xml"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("dialekt = 'nexo'", "dialect"),
        ("[prompt]\nfile_char = 3", "prompt.file_chars"),
        ("[promt]\nstyle = 'xml'", "prompt"),
        ("[persona]\nchanse = 1", "persona.chance"),
        ("[sessions]\nredakt = true", "sessions.redact"),
        ("[prompt.style]\nx = 1", "style"),
        ("timezon = 'UTC'", "timezone"),
        ("[[agents]]\nid = 'a'", "agent"),
    ],
)
def test_an_unknown_key_is_an_error_that_names_the_nearest(text: str, nearest: str) -> None:
    with pytest.raises(BadConfig, match=nearest) as caught:
        read(text)

    assert str(caught.value).startswith("anima.toml: ")


def test_an_unknown_key_that_is_near_to_nothing_points_to_the_list() -> None:
    with pytest.raises(BadConfig, match="anima config lists the keys"):
        read("xyzzyxyzzy = 1")


def test_a_key_of_a_table_names_the_nearest_too() -> None:
    with pytest.raises(BadConfig, match="did you mean allowed_tools"):
        read("[[agent]]\nid = 'a'\nallowed_tool = ['x']")


WRONG = [
    ("dialect = 'openclav'", "did you mean openclaw"),
    ("dialect = 3", "one of"),
    ("timezone = 'Mars/Olympus'", "not a timezone"),
    ("timezone = '../../etc/passwd'", "not a timezone"),
    ("timezone = 7", "must be text"),
    ("owner = 7", "list of texts"),
    ("owner = [7]", "must be text"),
    ("[identity]\nname = ['x']", "must be text"),
    ("identity = 'x'", r"write \[identity\]"),
    ("[prompt]\nfile_chars = 0", "from 1 to"),
    ("[prompt]\nfile_chars = -5", "from 1 to"),
    ("[prompt]\nfile_chars = 1.5", "whole number"),
    ("[prompt]\nfile_chars = true", "whole number"),
    ("[prompt]\nfile_chars = '12k'", "whole number"),
    ("[prompt]\nfile_chars = 99999999999", "from 1 to"),
    ("[prompt]\norder = 'random'", "stable, seed"),
    ("[prompt]\nstyle = 'html'", "markdown, xml"),
    ("[prompt]\nfreeze = 'never'", "session, turn"),
    ("[prompt]\nadditional = 3", "list of files"),
    ("[prompt]\nadditional = [3]", "each entry is a table"),
    ("[prompt]\nadditional = ['../x.md']", "begins with a dot"),
    ("[prompt]\nadditional = ['/etc/passwd']", "relative"),
    ("[prompt]\nadditional = ['users/eve/MEMORY.md']", "additional: .* others said"),
    ("[prompt]\nadditional = [{path = 'Groups/x/MEMORY.md', scopes = ['main']}]", "others said"),
    ("[prompt]\nadditional = ['agents/a/workspace/x.md']", "others said"),
    ("[prompt]\nadditional = ['ｓessions/x.md']", "others said"),
    ("[sessions]\ndir = 'talks'\n[prompt]\nadditional = ['Talks/x.md']", "is a transcript"),
    ("[persona]\nfile = 'unreviewed/2026-05-08.md'", "persona.file: .* others said"),
    ("[prompt]\nadditional = [{scopes = ['main']}]", "an entry needs 'path'"),
    ("[prompt]\nadditional = [{path = 'x.md', scopes = ['all']}]", "one of"),
    ("[prompt]\nadditional = [{path = 'x.md', scope = ['main']}]", "no key 'scope'; did you mean scopes"),
    ("[persona]\nchance = 1.1", "from 0 to 1"),
    ("[persona]\nchance = nan", "from 0 to 1"),
    ("[persona]\nchance = true", "from 0 to 1"),
    ("[persona]\nchance = 'often'", "from 0 to 1"),
    ("[persona]\nfile = '../evil.md'", "begins with a dot"),
    ("[persona]\nat = 23:30:00", "must be text"),
    ("[gate]\npreset = 'loose'", "open, guarded, strict"),
    ("[[gate.rule]]\nthen = 'deny'", "needs 'id'"),
    ("[[gate.rule]]\nid = 'a'\nthen = 'maybe'", "allow, ask, deny"),
    ("[[gate.rule]]\nid = 'a'\nwhen = 'web'", "table of conditions"),
    ("[[gate.rule]]\nid = 'a'\n[[gate.rule]]\nid = 'a'", "two entries have the id 'a'"),
    ("[gate]\nrule = 'x'", "list of tables"),
    ("[gate]\nrule = ['x']", "each entry is a table"),
    ("[history]\nenabled = 'perhaps'", "true or false"),
    ("[sessions]\ndir = '/var/log'", "relative"),
    ("[sessions]\npatterns = ['(']", "not a regular expression"),
    ("[sessions]\nwindow = 10", "from 1,000"),
    ("[index]\nurl = 7", "must be text"),
    ("[dream]\npreset = 'x'", "anima, nexo, openclaw"),
    ("[[agent]]\nid = ''", "needs 'id'"),
    ("[[agent]]\nid = 'a'\nworkspace_access = 'all'", "rw, ro, none"),
    ("[[agent]]\nid = 'a'\n[[agent]]\nid = 'a'", "two entries have the id 'a'"),
    ("[[agent]]\nid = 3", "must be text"),
    ("[[binding]]\nchannel = 'x'", "needs 'agent'"),
    ("agent = 'a'", "list of tables"),
]


def test_scopes_of_an_extra_file_are_checked_however_a_caller_spells_the_list() -> None:
    for names in (["everybody"], frozenset({"everybody"})):
        with pytest.raises(BadConfig, match="additional"):
            load("", env={}, trusted=True, flags={"prompt.additional": [{"path": "VISION.md", "scopes": names}]})


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_a_value_of_the_wrong_type_or_range_is_an_error_that_names_its_key(text: str, why: str) -> None:
    with pytest.raises(BadConfig, match=why) as caught:
        read(text)

    assert str(caught.value).startswith("anima.toml: ")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "text",
    [
        "dialect = ",
        "[prompt",
        "a = 1\na = 2",
        "\x00",
        "x" * 1000,
        "[[",
        "a = " + "[" * 5000,
        "'''",
        "=",
        "a.b = 1\na = 2",
    ],
)
def test_broken_toml_is_an_error_that_says_so_and_that_nothing_changed(text: str) -> None:
    with pytest.raises(BadConfig, match=r"not TOML|there is no key") as caught:
        read(text)

    assert caught.value.where == "anima.toml"


def test_a_byte_order_mark_and_windows_line_ends_are_no_matter() -> None:
    assert read("\ufeffdialect = 'nexo'\r\n[prompt]\r\nstyle = 'xml'\r\n").prompt.style == "xml"


@given(st.text(max_size=60))
def test_any_text_is_a_configuration_or_a_named_error(text: str) -> None:
    try:
        load(text, env={}, trusted=True)
    except BadConfig as error:
        assert error.where == "anima.toml"


ANY_VALUE = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.lists(st.text(max_size=3))
    | st.dictionaries(st.text(max_size=3), st.integers())
)


@given(st.sampled_from(KEYS), ANY_VALUE)
def test_any_value_for_any_key_is_taken_or_a_named_error(key: str, value: Any) -> None:
    try:
        load(None, env={}, flags={key: value}, trusted=True)
    except BadConfig as error:
        assert key in str(error)


# -- where a value comes from --------------------------------------------------------------------------------------------


def test_a_flag_beats_a_variable_beats_the_file_beats_the_default() -> None:
    text = "[prompt]\nfile_chars = 1000\ntotal_chars = 2000\norder = 'seed'\n"
    env = {"ANIMA_PROMPT_FILE_CHARS": "3000", "ANIMA_PROMPT_TOTAL_CHARS": "4000", "UNRELATED": "1"}
    settings = load(text, env=env, flags={"prompt.file_chars": "5000"}, trusted=True)
    rows = {key: (value, source) for key, value, source in settings.rows()}

    assert rows["prompt.file_chars"] == (5000, "flag")
    assert rows["prompt.total_chars"] == (4000, "ANIMA_PROMPT_TOTAL_CHARS")
    assert rows["prompt.order"] == ("seed", "anima.toml")
    assert rows["prompt.style"] == ("markdown", "default")


@pytest.mark.parametrize(
    ("name", "raw", "key", "value"),
    [
        ("ANIMA_DIALECT", "nexo", "dialect", "nexo"),
        ("ANIMA_OWNER", "luis, ana", "owner", ("luis", "ana")),
        ("ANIMA_PERSONA_CHANCE", "0.25", "persona.chance", 0.25),
        ("ANIMA_HISTORY_ENABLED", "off", "history.enabled", False),
        ("ANIMA_SESSIONS_REDACT", "YES", "sessions.redact", True),
        ("ANIMA_PROMPT_FILE_CHARS", "77", "prompt.file_chars", 77),
        ("ANIMA_PROMPT_EXTRA", "Be brief.", "prompt.extra", "Be brief."),
        ("ANIMA_TIMEZONE", "", "timezone", ""),
    ],
)
def test_a_variable_holds_any_value_that_fits_one_line(name: str, raw: str, key: str, value: object) -> None:
    settings = load(None, env={name: raw}, trusted=True)

    assert settings.value(key) == value
    assert settings.sources[key] == name


def test_a_wrong_value_names_the_variable_or_the_setting_it_came_from() -> None:
    with pytest.raises(BadConfig, match=r"^ANIMA_PROMPT_STYLE: prompt\.style: .*did you mean xml"):
        read(ANIMA_PROMPT_STYLE="xm")
    with pytest.raises(BadConfig, match=r"^settings: prompt\.style: "):
        load(None, env={}, flags={"prompt.style": "xm"}, trusted=True)
    with pytest.raises(BadConfig, match=r"there is no key 'prompt\.stile'; did you mean prompt\.style"):
        load(None, env={}, flags={"prompt.stile": "xml"}, trusted=True)


def test_a_variable_that_looks_like_a_setting_and_is_none_is_an_error() -> None:
    with pytest.raises(BadConfig, match="did you mean ANIMA_PROMPT_STYLE"):
        read(ANIMA_PROMPT_STILE="xml")


@pytest.mark.parametrize(
    "name", ["ANIMA_HOME", "ANIMA_CONFIG", "ANIMA_TOKEN", "ANIMA", "ANIMA_PROMPTS", "anima_prompt_stile"]
)
def test_variables_that_are_no_settings_are_left_alone(name: str) -> None:
    assert load(None, env={name: "x"}, trusted=True).rows() == Config().rows()


# -- a folder that is not trusted ----------------------------------------------------------------------------------------

LOOSER = {
    "own_tools": ['own_tools = ["web_fetch"]'],
    "tidy.days": ["[tidy]\ndays = 30"],
    "rituals.heartbeat": ["[rituals]\nheartbeat = '1m'"],
    "rituals.model": ["[rituals]\nmodel = 'openai:x'"],
    "rituals.day_tokens": ["[rituals]\nday_tokens = 100001"],
    "rituals.run_tokens": ["[rituals]\nrun_tokens = 20001"],
    "channels.day_tokens": ["[channels]\nday_tokens = 100001"],
    "tidy.folders": ['[tidy]\nfolders = {"notes/" = 5}'],
    "identity.avatar": [
        "[identity]\navatar = 'https://example.org/a.png'",
        "[identity]\navatar = 'HTTP://example.org/a.png'",
        "[identity]\navatar = '//example.org/a.png'",
        "[identity]\navatar = ' https://example.org/a.png'",
    ],
    "prompt.file_chars": ["[prompt]\nfile_chars = 100001"],
    "prompt.total_chars": ["[prompt]\ntotal_chars = 400001"],
    "prompt.memory_tokens": ["[prompt]\nmemory_tokens = 100001"],
    "prompt.additional": [
        "[prompt]\nadditional = [{path = 'x.md', scopes = ['main', 'group']}]",
        "[prompt]\nadditional = ['a.md', {path = 'x.md', scopes = ['subagent']}]",
    ],
    "persona.file": ["[persona]\nfile = 'notes/diary.md'"],
    "gate.preset": ["[gate]\npreset = 'open'", "[gate]\npreset = 'guarded'"],
    "gate.rule": ["[[gate.rule]]\nid = 'x'\nthen = 'allow'", "[[gate.rule]]\nid = 'x'\nthen = 'ask'"],
    "history.enabled": ["[history]\nenabled = false"],
    "sessions.dir": ["[sessions]\ndir = 'knowledge'"],
    "sessions.redact": ["[sessions]\nredact = false"],
    "sessions.patterns": ["[sessions]\npatterns = ['(a+)+$']"],
    "index.embedder": ["[index]\nembedder = 'openai'", "[index]\nembedder = 'http'"],
    "index.model": ["[index]\nmodel = 'x'"],
    "index.url": ["[index]\nurl = 'http://example.org'"],
    "snapshot.at": ["[snapshot]\nat = '* * * * *'"],
    "snapshot.keep": ["[snapshot]\nkeep = 1"],
    "snapshot.days": ["[snapshot]\ndays = 1"],
    "snapshot.dir": ["[snapshot]\ndir = '/srv/public'"],
    "layers.lower": ["[layers]\nlower = '/srv/template'"],
    "layers.routes": ['[layers]\nroutes = {"a/" = "/srv/shared"}'],
    "snapshot.recipients": ["[snapshot]\nrecipients = ['age1x']"],
    "agent": [
        "[[agent]]\nid = 'a'\nhome = '/etc'",
        "[[agent]]\nid = 'a'\nallowed_delegates = ['*']",
        "[[agent]]\nid = 'a'\navatar = 'https://example.org/a.png'",
    ],
    "binding": ["[[binding]]\nagent = 'a'"],
    "owner": ["owner = ['telegram:4711']"],
}

# What an untrusted file may say as it likes, with the reason: it loosens no rule, reaches nobody and hides nothing.
FREE = {
    "rituals.active": "fewer hours than all",
    "rituals.quiet": "the same",
    "channels.others": "no more people than all",
    "dialect": "the folder's own names decide it anyway",
    "timezone": "only a clock",
    "clean_agents": "no home's file says it, trusted or not",
    "identity.name": "only a name",
    "identity.emoji": "only a sign",
    "prompt.extra": "the folder's AGENTS.md can say the same",
    "prompt.order": "an order of the same texts",
    "prompt.freeze": "how often the same is read",
    "prompt.style": "a drawing of the same texts",
    "persona.chance": "a soul of the same folder",
    "persona.at": "the same",
    "persona.duration": "the same",
    "sessions.window": "a number of tokens",
    "sessions.reserve": "a number of tokens",
    "sessions.soft": "a number of tokens",
    "dream.enabled": "on by default",
    "dream.at": "an hour",
    "dream.preset": "a choice among three known ones",
}


def test_every_key_is_either_held_back_or_free_for_a_reason() -> None:
    assert set(LOOSER) | set(FREE) == set(KEYS)
    assert not set(LOOSER) & set(FREE)


@pytest.mark.parametrize(("key", "text"), [(key, text) for key, texts in LOOSER.items() for text in texts])
def test_an_untrusted_file_cannot_make_things_looser(key: str, text: str) -> None:
    trusted, untrusted = read(text), read(text, trusted=False)

    assert trusted.value(key) != Config().value(key)
    assert untrusted.value(key) == Config().value(key)
    assert [name.partition(" ")[0] for name, _ in untrusted.ignored] == [key]
    assert trusted.ignored == ()
    assert not untrusted.trusted


def test_what_an_untrusted_file_may_not_say_is_still_checked() -> None:
    with pytest.raises(BadConfig):
        read("[index]\nurl = 7", trusted=False)
    with pytest.raises(BadConfig):
        read("[index]\nurll = 'x'", trusted=False)


def test_an_untrusted_file_can_make_things_stricter() -> None:
    settings = read(
        "[prompt]\nfile_chars = 500\n[gate]\npreset = 'strict'\n[index]\nembedder = 'none'\n"
        "[[gate.rule]]\nid = 'loose'\nthen = 'allow'\n[[gate.rule]]\nid = 'tight'\nthen = 'deny'\n",
        trusted=False,
    )

    assert (settings.prompt.file_chars, settings.gate.preset, settings.index.embedder) == (500, "strict", "none")
    assert [rule.id for rule in settings.gate.rule] == ["tight"]
    assert settings.ignored == (("gate.rule loose", "a rule that does not deny"),)


def test_the_owners_own_variables_and_flags_are_trusted_whatever_the_file_is() -> None:
    env = {"ANIMA_INDEX_URL": "http://localhost:11434"}
    settings = load("[index]\nurl = 'http://example.org'", env=env, flags={"gate.preset": "open"}, trusted=False)

    assert settings.index.url == "http://localhost:11434"
    assert settings.gate.preset == "open"


# -- the user's list of homes ----------------------------------------------------------------------------------------------

NOON = datetime(2026, 5, 8, 12, tzinfo=UTC)


def test_the_list_says_what_was_noted(tmp_path: Path) -> None:
    register = Register(tmp_path / "config")
    register.note("/homes/aria", identity="7", made=NOON, trusted=True)
    register.note("/homes/clawd", identity="8", trusted=False)

    known = Register(tmp_path / "config").known("/homes/aria")
    assert known is not None
    assert (known.made, known.trusted, known.identity) == (NOON.isoformat(), True, "7")
    assert not register.trusts("/homes/clawd", "8")
    assert register.known("/homes/nobody") is None


def test_trust_holds_for_the_very_folder_and_for_no_other(tmp_path: Path) -> None:
    register = Register(tmp_path)
    register.note("/homes/aria", identity="7", trusted=True)

    assert register.trusts("/homes/aria", "7")
    assert not register.trusts("/homes/aria", "9")
    assert not register.trusts("/homes/other", "7")


def test_trusting_a_home_later_keeps_the_day_it_was_made(tmp_path: Path) -> None:
    register = Register(tmp_path)
    register.note("/homes/aria", identity="7", made=NOON, trusted=False)
    register.note("/homes/aria", identity="7", trusted=True)

    known = register.known("/homes/aria")
    assert known is not None
    assert known.made == NOON.isoformat()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"/homes/aria": 3}',
        b'{"/homes/aria": {"trusted": "yes", "identity": 7}}',
    ],
)
def test_a_damaged_list_trusts_nobody_and_raises_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "homes.json").write_bytes(content)
    register = Register(tmp_path)

    assert not register.trusts("/homes/aria", "7")


def test_a_damaged_list_is_put_aside_before_a_new_one_is_begun(tmp_path: Path) -> None:
    (tmp_path / "homes.json").write_text('{"/homes/old": {"trusted": true', encoding="utf-8")
    Register(tmp_path).note("/homes/aria", identity="7", trusted=True)

    assert Register(tmp_path).trusts("/homes/aria", "7")
    assert "/homes/old" in (tmp_path / "homes.json.damaged").read_text(encoding="utf-8")


def test_a_list_that_cannot_be_written_is_said_and_what_stood_there_stays(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file", encoding="utf-8")

    with pytest.raises(Damaged, match="list of homes"):
        Register(tmp_path / "config").note("/homes/aria", identity="7", trusted=True)
    assert (tmp_path / "config").read_text(encoding="utf-8") == "a file"


def test_a_newer_list_of_homes_trusts_nothing_and_is_not_written_over(tmp_path: Path) -> None:
    register = Register(tmp_path)
    register.note("/a", identity="1", trusted=True)
    assert json.loads((tmp_path / "homes.json").read_text())["format"] == 1
    newer = json.dumps({"format": 2, "/a": {"trusted": True, "identity": "1"}})
    (tmp_path / "homes.json").write_text(newer)
    assert not register.trusts("/a", "1")
    with pytest.raises(NewerFormat, match="list of homes"):
        register.note("/b", identity="2", trusted=True)
    assert (tmp_path / "homes.json").read_text() == newer


def test_the_list_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Register(tmp_path / "config").note("/homes/aria", identity="7", trusted=True)
    finally:
        os.umask(before)

    assert (tmp_path / "config").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "config" / "homes.json").stat().st_mode & 0o777 == 0o600


def test_homes_noted_at_the_same_time_are_all_in_the_list(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: Register(tmp_path).note(f"/homes/{n}", identity=str(n), trusted=True), range(40)))

    assert len(json.loads((tmp_path / "homes.json").read_text(encoding="utf-8"))) == 1 + 40  # and the format


def test_the_folders_of_the_user_follow_the_environment(tmp_path: Path) -> None:
    assert folder({"ANIMA_CONFIG": str(tmp_path)}) == tmp_path
    assert folder({"XDG_CONFIG_HOME": "/x"}) == Path("/x/anima")
    assert default_home({"XDG_DATA_HOME": "/x"}) == Path("/x/anima/home")
    assert folder({"ANIMA_CONFIG": "~nobody-here/x"}) == Path("~nobody-here/x")


@pytest.mark.parametrize(
    "said", ['dream.at = "banana"', 'dream.at = "25:99"', 'snapshot.at = "61 3 * * *"', 'rituals.heartbeat = "soon"']
)
def test_a_time_that_is_none_is_told_before_it_is_waited_for(said):
    with pytest.raises(BadConfig, match="is not a time to run at") as told:
        load(f"{said}\n", env={}, trusted=True)

    assert told.value.where == "anima.toml" and "0 3 * * *" in told.value.hint


@pytest.mark.parametrize(
    "said",
    [
        'rituals.heartbeat = "0m"',
        'rituals.heartbeat = "59s"',
        'rituals.heartbeat = "30"',
        'rituals.quiet = "22:00"',
        'rituals.active = "8-23"',
        'rituals.active = "08:00-24:00"',
        'persona.at = "2330"',
        'persona.duration = "soon"',
    ],
)
def test_an_hour_or_a_length_that_is_none_is_told_with_its_key(said):
    with pytest.raises(BadConfig, match=re.escape(said.split()[0])) as told:
        load(f"{said}\n", env={}, trusted=True)

    assert told.value.where == "anima.toml"


def test_every_time_that_may_be_empty_means_never():
    keys = ("rituals.heartbeat", "rituals.active", "rituals.quiet", "persona.at", "dream.at", "snapshot.at")
    for empty in ("", "  "):
        config = load("".join(f'{key} = "{empty}"\n' for key in keys), env={}, trusted=True)
        assert {config.value(key) for key in keys} == {""}


@pytest.mark.parametrize("said", ["30m", "1h 30m", "", "@daily", "*/5 8 * * 1-5"])
def test_a_heartbeat_is_an_interval_a_time_or_never(said):
    assert load(f'rituals.heartbeat = "{said}"\n', env={}, trusted=True).rituals.heartbeat == said
