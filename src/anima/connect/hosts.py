"""Hosts: the programs that people's agents run in. Of each, which files are changed, where it writes conversations down, and
what the person does next.

Promise: what is put in is a folder of ours, a member or an element of the host's JSON, or lines that are marked as ours; a
member of our name that is not for this home is refused, never replaced. That a hook is trusted is never written.
Not here: what every host is told (wiring), how files are changed (change), connecting (connections).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anima.connect import EVENTS, json_text
from anima.connect.change import HostEdit, owned
from anima.connect.toml_text import with_table, without_block
from anima.connect.wiring import NAME, WAITS, Wiring, about, bundle, cursor_hooks, extension, skills
from anima.errors import BadInput

_ENDS_IN = 3  # seconds that Codex gives a session's last hook
_MARK = "  # anima"  # of a line of ours in YAML


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One program that people's agents run in. `then` is what is left to do once its files are changed."""

    name: str
    title: str
    edits: Callable[[Wiring], Sequence[HostEdit]]
    then: str
    transcripts: Callable[[Wiring], Path | None] = lambda wiring: None  # None: those that we cannot read
    reports: bool = True  # whether it runs hooks


# -- what is put into a host's files ----------------------------------------------------------------------------------------


def folder_of(top: Path, files: Mapping[str, str]) -> list[HostEdit]:
    """A folder that is ours alone."""
    return [owned(top / name, text) for name, text in files.items()]


def member(path: Path, *keys: str, value: object) -> HostEdit:
    """One member of a host's JSON file. A member of that name that is not ours is refused, never replaced."""

    def put(text: str) -> str:
        there = json_text.at(text or "{}", keys)
        if there and not is_same(there, value):
            raise BadInput(f"{'.'.join(keys)} is there already, and not for this home")
        return json_text.put(text or "{}\n", keys, value)

    def take(text: str) -> str:
        return json_text.take(text, keys) if text.strip() else text

    return HostEdit(path=path, put=put, take=take)


def is_same(entry: object, wanted: object) -> bool:
    """Whether a server's entry serves the home that another one does."""
    homes = [
        each["args"][-1:] for each in (entry, wanted) if isinstance(each, dict) and isinstance(each.get("args"), list)
    ]
    return len(homes) == 2 and homes[0] == homes[1]


def items(path: Path, values: Mapping[tuple[str, ...], object], *, first: Mapping[str, object]) -> HostEdit:
    """Elements of lists in a host's JSON file. `first` is what a file that we make says besides."""

    def put(text: str) -> str:
        text = text or _begun(first)
        for keys, value in values.items():
            for old in _older(text, keys, value):
                text = json_text.take_item(text, keys, old)
            text = json_text.put_item(text, keys, value)
        return text

    def take(text: str) -> str:
        for keys, value in values.items() if text.strip() else ():
            text = json_text.take_item(text, keys, value)
            if not json_text.at(text, keys):
                text = json_text.take(text, keys)
        return text

    return HostEdit(path=path, put=put, take=take)


def _older(text: str, keys: Sequence[str], value: object) -> list[object]:
    """Elements that say the same of the same home by another program, such as one that was moved."""
    there, tail = json_text.at(text, keys), json.dumps(value).partition(" hook ")[2].partition('"')[0]
    return [each for each in there if each != value and tail in json.dumps(each)] if isinstance(there, list) else []


def _begun(first: Mapping[str, object]) -> str:
    text = "{}\n"
    for key, value in first.items():
        text = json_text.put(text, [key], value)
    return text


def with_lines(text: str, wanted: list[tuple[str, str, object]]) -> str:
    """A YAML file with a member in each of some top ones. Raises BadInput where it cannot be added by a line."""
    expected = _read_yaml(text)
    for top, key, value in wanted:
        inside = expected.setdefault(top, {})
        inside = expected[top] = {} if inside is None else inside
        if not isinstance(inside, dict) or inside.get(key, value) != value:
            raise BadInput(f"{top}.{key} is something else already")
        if key not in inside:
            text = _added(text, top, f"{key}: {json.dumps(value, ensure_ascii=False)}{_MARK}")
            inside[key] = value
    if _read_yaml(text) != expected:
        raise BadInput("it is written in a way we do not add to; add memory.provider and mcp_servers by hand")
    return text


def _added(text: str, top: str, line: str) -> str:
    found = re.search(rf"^{top}:[ \t]*(?:#.*)?\n(?P<indent>[ \t]*)", text, re.MULTILINE)
    if found is None:
        gap = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{gap}{top}:{_MARK}\n  {line}\n"
    at, indent = found.start("indent"), found["indent"] or "  "
    return f"{text[:at]}{indent}{line}\n{text[at:]}"


def without_lines(text: str) -> str:
    """The file without the lines that are marked as ours."""
    left = "".join(line for line in text.splitlines(keepends=True) if not line.rstrip("\r\n").endswith(_MARK))
    _read_yaml(left)
    return left


def _read_yaml(text: str) -> dict[str, Any]:
    import yaml

    try:
        found = yaml.safe_load(text) or {}
    except (yaml.YAMLError, RecursionError, ValueError):
        raise BadInput("it cannot be read as YAML") from None
    if not isinstance(found, dict):
        raise BadInput("it is no mapping")
    return found


# -- the files of each ------------------------------------------------------------------------------------------------------


def _claude_code(wiring: Wiring) -> list[HostEdit]:
    """A plugin in its folder of skills, which it loads by itself. None of the person's own files is touched."""
    return folder_of(_of_claude(wiring) / "skills" / NAME, bundle(wiring, "claude-code"))


def _of_claude(wiring: Wiring) -> Path:
    return wiring.folder("CLAUDE_CONFIG_DIR", ".claude")


def _codex(wiring: Wiring) -> list[HostEdit]:
    """Hooks in `hooks.json`, the server in `config.toml`, skills in its folder of skills."""
    folder, hooks = _of_codex(wiring), dict[tuple[str, ...], object]()
    for event in EVENTS["codex"]:
        waits = _ENDS_IN if event == "SessionEnd" else WAITS
        hook = {"type": "command", "command": wiring.hook_line("codex", event), "timeout": waits}
        hooks["hooks", event] = {"hooks": [hook]}
    server = HostEdit(
        path=folder / "config.toml",
        put=lambda text: with_table(text, f"mcp_servers.{NAME}", wiring.server("codex"), is_same=is_same),
        take=without_block,
    )
    return [items(folder / "hooks.json", hooks, first={"hooks": {}}), server, *folder_of(folder, skills())]


def _of_codex(wiring: Wiring) -> Path:
    return wiring.folder("CODEX_HOME", ".codex")


def _cursor(wiring: Wiring) -> list[HostEdit]:
    """Hooks in `hooks.json`, the server in `mcp.json`, skills in its folder of skills."""
    folder = _of_cursor(wiring)
    hooks: dict[tuple[str, ...], object] = {
        ("hooks", event): entry for event, entries in cursor_hooks(wiring).items() for entry in entries
    }
    return [
        items(folder / "hooks.json", hooks, first={"version": 1, "hooks": {}}),
        member(folder / "mcp.json", "mcpServers", NAME, value=wiring.server("cursor")),
        *folder_of(folder, skills()),
    ]


def _of_cursor(wiring: Wiring) -> Path:
    return wiring.folder("CURSOR_CONFIG_DIR", ".cursor")


def _vscode(wiring: Wiring) -> list[HostEdit]:
    """The server in the user's `mcp.json`. Its agents have hooks of their own kinds, so there are none of ours."""
    folder = wiring.folder("XDG_CONFIG_HOME", ".config") / "Code" / "User"
    if sys.platform == "darwin":
        folder = wiring.user / "Library" / "Application Support" / "Code" / "User"
    if given := wiring.env.get("VSCODE_USER_DATA"):
        folder = Path(given).expanduser().absolute()
    entry = {"type": "stdio", **wiring.server("vscode", joins=False)}
    return [member(folder / "mcp.json", "servers", NAME, value=entry)]


def _gemini(wiring: Wiring) -> list[HostEdit]:
    """An extension in its folder of extensions. None of the person's own files is touched."""
    return folder_of(_of_gemini(wiring) / "extensions" / NAME, extension(wiring))


def _of_gemini(wiring: Wiring) -> Path:
    return wiring.folder("GEMINI_CLI_HOME") / ".gemini"


def _openclaw(wiring: Wiring) -> list[HostEdit]:
    """The server in `openclaw.json`, and a bundle of skills that its own command installs."""
    given = wiring.env.get("OPENCLAW_CONFIG_PATH")
    file = Path(given) if given else wiring.folder("OPENCLAW_STATE_DIR", ".openclaw") / "openclaw.json"
    server = member(file, "mcp", "servers", NAME, value=wiring.server("openclaw", joins=False))
    return [server, *folder_of(wiring.bundle, bundle(wiring, "openclaw"))]


def _hermes(wiring: Wiring) -> list[HostEdit]:
    """A memory provider in its folder of plugins, chosen in `config.yaml`, and the server beside it. The provider starts
    `anima` for each call, so that nothing of ours is installed beside hermes."""
    folder = wiring.folder("HERMES_HOME", ".hermes")
    text = (Path(__file__).parent / "tables" / "hermes_plugin.txt").read_text(encoding="utf-8")
    said = f"name: {NAME}\nversion: {about()['version']}\ndescription: {json.dumps(about()['description'])}\n"
    plugin = {
        "plugin.yaml": f"{said}hooks:\n  - on_session_end\n  - on_pre_compress\n",
        "__init__.py": text.format(words=json.dumps(wiring.hook("hermes", "EVENT"), ensure_ascii=False)),
    }
    wanted: list[tuple[str, str, object]] = [
        ("memory", "provider", NAME),
        ("mcp_servers", NAME, wiring.server("hermes", joins=False)),
    ]
    chosen = HostEdit(path=folder / "config.yaml", put=lambda text: with_lines(text, wanted), take=without_lines)
    return [*folder_of(folder / "plugins" / NAME, plugin), chosen]


def _nanobot(wiring: Wiring) -> list[HostEdit]:
    """The server among the tools of its `config.json`."""
    file = wiring.folder("NANOBOT_HOME", ".nanobot") / "config.json"
    return [member(file, "tools", "mcpServers", NAME, value=wiring.server("nanobot", joins=False))]


def _generic(wiring: Wiring) -> list[HostEdit]:
    """A bundle in every format there is, to point any other program at, and hooks that speak plainly."""
    return folder_of(wiring.bundle, bundle(wiring, "generic"))


_EVERY = (
    Host(
        name="claude-code",
        title="Claude Code",
        edits=_claude_code,
        transcripts=lambda wiring: _of_claude(wiring) / "projects",
        then="Start a new session of claude; /plugin lists anima.",
    ),
    Host(
        name="codex",
        title="Codex",
        edits=_codex,
        transcripts=lambda wiring: _of_codex(wiring) / "sessions",
        then="Open codex once and trust the hooks of anima when it asks: until then it runs none of them, and says nothing.",
    ),
    Host(
        name="cursor",
        title="Cursor",
        edits=_cursor,
        transcripts=lambda wiring: _of_cursor(wiring) / "projects",
        then="Open Cursor anew; Settings lists the hooks, and anima among the MCP servers.",
    ),
    Host(
        name="vscode",
        title="VS Code",
        edits=_vscode,
        then="Start anima with the command MCP: List Servers, and pick its prompt wake at the start of a conversation.",
        reports=False,
    ),
    Host(
        name="gemini",
        title="Gemini CLI",
        edits=_gemini,
        transcripts=lambda wiring: _of_gemini(wiring) / "tmp",
        then="Start a new session of gemini; /extensions list shows anima.",
    ),
    Host(
        name="openclaw",
        title="OpenClaw",
        edits=_openclaw,
        then="Restart the gateway. For the skills too: openclaw plugins install {bundle}",
        reports=False,
    ),
    Host(
        name="hermes",
        title="hermes",
        edits=_hermes,
        then="Start a new session of hermes; hermes memory status names anima.",
    ),
    Host(name="nanobot", title="nanobot", edits=_nanobot, then="Start nanobot anew.", reports=False),
    Host(
        name="generic",
        title="another program",
        edits=_generic,
        then="Point your program at {bundle}: plugin.json and mcp.json there are Agent Plugins 1.0.0.",
    ),
)
HOSTS: dict[str, Host] = {host.name: host for host in _EVERY}
