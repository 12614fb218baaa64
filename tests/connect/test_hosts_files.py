"""Files of hosts: what connecting puts in is taken out again, byte for byte, and nothing else is touched."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima import BadInput, Home, Refused
from anima.connect import EVENTS
from anima.connect import hosts as texts
from anima.connect.hosts import HOSTS, with_block, without_block
from connecting import connecting

VALUE = {"command": "anima", "args": ["mcp", "--home", "/aria"]}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home.create(tmp_path / "aria", name="Aria") as made:
        yield made


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# -- whole hosts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", HOSTS)
def test_every_line_that_a_program_is_given_is_shown_before_it_is_made(home: Home, tmp_path: Path, host: str) -> None:
    for step in connecting(home, host, tmp_path / "hosts").plan(remove=False):
        shown = {line[1:] for line in step.shown.splitlines()}
        assert step.after is not None and set(step.after.decode().splitlines()) <= shown, step.path


@pytest.mark.parametrize("host", ["claude-code", "cursor", "gemini", "generic"])  # codex has the names of Claude Code
def test_the_page_of_a_host_names_every_event_that_is_heard(host: str) -> None:
    page = Path(__file__).parents[2].joinpath("docs", "hosts", f"{host}.md").read_text(encoding="utf-8")

    assert [event for event in EVENTS[host] if f"`{event}`" not in page] == []


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_is_connected_and_taken_out_and_all_is_as_it_was(home: Home, tmp_path: Path, host: str) -> None:
    folder = tmp_path / "hosts"
    folder.mkdir()
    connecting(home, host, folder).connect(connecting(home, host, folder).plan(remove=False))
    assert connecting(home, host, folder).plan(remove=False) == ()
    made = connecting(home, host, folder)
    made.remove(made.plan(remove=True))

    assert files(folder) == {} and list(folder.iterdir()) == []
    assert made.spool.connection is None


THEIRS = {
    "codex/hooks.json": '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}',
    "codex/config.toml": "# mine\nmodel = 'gpt-5'   # kept\n\n[mcp_servers.other]\ncommand = 'x'",
    "cursor/hooks.json": '{\n\t"version": 1,\n\t"hooks": {\n\t\t"stop": [{"command": "x"}]\n\t}\n}\n',
    "cursor/mcp.json": '{\r\n  // mine\r\n  "mcpServers": {"other": {"command": "x",},},\r\n}\r\n',
    "vscode/mcp.json": '{"inputs": [], "servers": {}}',
    "openclaw/openclaw.json": "{\n  // JSON5\n  agents: { list: [{ id: 'main', }] },\n}\n",
    "nanobot/config.json": '{"tools": {"web": {}}, "agents": {}}\n',
}


@pytest.mark.parametrize("host", [name for name in HOSTS if name in {key.partition("/")[0] for key in THEIRS}])
def test_what_a_person_has_stays_and_comes_back_byte_for_byte(home: Home, tmp_path: Path, host: str) -> None:
    folder = tmp_path / "hosts"
    for name, text in THEIRS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    before = files(folder)
    made = connecting(home, host, folder)
    made.connect(made.plan(remove=False))
    changed = {name for name, text in files(folder).items() if before.get(name) != text}
    assert changed and all(name.startswith(f"{host}/") for name in changed)
    made = connecting(home, host, folder)
    made.remove(made.plan(remove=True))

    assert files(folder) == before


def test_what_was_added_beside_ours_stays_when_ours_goes(home: Home, tmp_path: Path) -> None:
    made = connecting(home, "codex", tmp_path)
    made.connect(made.plan(remove=False))
    config, hooks = tmp_path / "codex/config.toml", tmp_path / "codex/hooks.json"
    config.write_text('model = "o"\n' + config.read_text() + '\n[hooks.state]\nx = "y"\n')
    theirs = {"hooks": [{"type": "command", "command": "mine"}]}
    hooks.write_text(texts.put_item(hooks.read_text(), ["hooks", "Stop"], theirs))
    made = connecting(home, "codex", tmp_path)
    made.remove(made.plan(remove=True))

    assert tomllib.loads(config.read_text()) == {"model": "o", "hooks": {"state": {"x": "y"}}}
    assert json.loads(hooks.read_text()) == {"hooks": {"Stop": [theirs]}}


@pytest.mark.parametrize(
    ("host", "name", "text"),
    [
        ("codex", "codex/config.toml", "model = "),
        ("codex", "codex/config.toml", 'mcp_servers = "x"'),
        ("codex", "codex/config.toml", "[mcp_servers.anima]\ncommand = 'theirs'\n"),
        ("codex", "codex/hooks.json", '{"hooks": '),
        ("codex", "codex/hooks.json", '{"hooks": []}'),
        ("codex", "codex/hooks.json", '{"hooks": {"Stop": {}}}'),
        ("cursor", "cursor/mcp.json", '{"mcpServers": {"anima": {"command": "theirs", "args": []}}}'),
        ("cursor", "cursor/mcp.json", "[1]"),
        ("vscode", "vscode/mcp.json", "{'servers' 1}"),
        ("nanobot", "nanobot/config.json", '{"tools": 3}'),
        ("claude-code", "claude/skills/anima/README.md", "a folder of somebody else's"),
    ],
)
def test_a_file_that_cannot_be_read_or_has_our_place_is_refused_and_nothing_changes(
    home: Home, tmp_path: Path, host: str, name: str, text: str
) -> None:
    folder = tmp_path / "hosts"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text(text)

    with pytest.raises(BadInput, match="nothing was changed"):
        connecting(home, host, folder).plan(remove=False)
    assert files(folder) == {name: text.encode()}


def test_bytes_that_are_no_text_are_refused(home: Home, tmp_path: Path) -> None:
    (tmp_path / "codex").mkdir()
    (tmp_path / "codex/config.toml").write_bytes(b"\xff\xfe")

    with pytest.raises(BadInput, match="not UTF-8"):
        connecting(home, "codex", tmp_path).plan(remove=False)


def test_a_second_home_does_not_take_the_place_of_the_first(home: Home, tmp_path: Path) -> None:
    for host in ("claude-code", "codex", "cursor"):
        made = connecting(home, host, tmp_path)
        made.connect(made.plan(remove=False))
        with Home.create(tmp_path / f"other-{host}", name="Other") as other:
            with pytest.raises(BadInput):
                connecting(other, host, tmp_path).plan(remove=False)


def test_a_program_that_moved_is_not_connected_twice(home: Home, tmp_path: Path) -> None:
    for program in ("/old/anima", "/new place/anima"):
        for host in ("codex", "cursor", "nanobot"):
            made = connecting(home, host, tmp_path)
            made.wiring = replace(made.wiring, program=(program,))
            made.connect(made.plan(remove=False))
    text = "".join(found.decode() for name, found in files(tmp_path).items() if name.endswith((".json", ".toml")))
    hooks = json.loads((tmp_path / "codex/hooks.json").read_text())["hooks"]

    assert "/old/anima" not in text and "/new place/anima" in text
    assert all(len(entries) == 1 for entries in hooks.values())


def test_a_file_that_changed_since_it_was_shown_is_left_as_it_is(home: Home, tmp_path: Path) -> None:
    made = connecting(home, "cursor", tmp_path)
    steps = made.plan(remove=False)
    (tmp_path / "cursor").mkdir()
    (tmp_path / "cursor/mcp.json").write_text('{"mcpServers": {}}')

    with pytest.raises(Refused, match="changed meanwhile"):
        made.connect(steps)
    assert files(tmp_path / "cursor") == {"mcp.json": b'{"mcpServers": {}}'}


def test_a_link_is_followed_and_its_mode_kept(home: Home, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles/mcp.json"
    real.write_text('{"mcpServers": {}}')
    os.chmod(real, 0o640)
    (tmp_path / "cursor").mkdir()
    (tmp_path / "cursor/mcp.json").symlink_to(real)
    made = connecting(home, "cursor", tmp_path)
    made.connect(made.plan(remove=False))

    assert (tmp_path / "cursor/mcp.json").is_symlink() and "anima" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


# -- JSON as text ------------------------------------------------------------------------------------------------------------

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\u2028\u2029"), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=4)
DRAWN = st.sampled_from([{}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}])


@given(OBJECTS, DRAWN)
def test_any_file_is_read_as_json_reads_it(value: dict[str, Any], drawn: dict[str, Any]) -> None:
    assert texts.parse(json.dumps(value, **drawn)).value == value
    assert texts.parse(f"// x\n{json.dumps(value, ensure_ascii=False, **drawn)} /* y */\n").value == value


@given(OBJECTS.filter(lambda value: "ours" not in value), DRAWN)
def test_a_member_is_put_in_and_taken_out_and_the_rest_stays(value: dict[str, Any], drawn: dict[str, Any]) -> None:
    text = json.dumps(value, **drawn)
    made = texts.put(text, ["ours", "anima"], VALUE)

    assert json.loads(made) == {**value, "ours": {"anima": VALUE}}
    assert texts.put(made, ["ours", "anima"], VALUE) == made
    assert texts.take(made, ["ours"]) == text
    assert json.loads(texts.take(made, ["ours", "anima"])) == {**value, "ours": {}}


@given(st.lists(JSON, max_size=4), DRAWN)
def test_an_element_is_put_in_and_taken_out_and_the_rest_stays(value: list[Any], drawn: dict[str, Any]) -> None:
    text = json.dumps({"a": {"b": value}}, **drawn)
    made = texts.put_item(text, ["a", "b"], VALUE)

    assert json.loads(made) == {"a": {"b": [*value, VALUE]}}
    assert texts.take_item(made, ["a", "b"], VALUE) == text


@given(st.text(max_size=60))
def test_no_text_makes_the_reader_fail_otherwise_than_by_saying_so(text: str) -> None:
    try:
        texts.parse(text)
    except BadInput:
        pass


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r"), max_size=80))
def test_a_block_is_put_in_and_taken_out(text: str) -> None:
    made = with_block(text, "[x]\ny = 1")

    assert with_block(made, "[x]\ny = 1") == made
    assert without_block(made).rstrip("\n") == text.rstrip("\n")
