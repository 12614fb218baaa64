"""hermes: a memory provider in its folder of plugins, chosen in `config.yaml`, and the server beside it.

The provider starts `anima` for each call, so that nothing of ours is installed beside hermes. A YAML file is added to by
lines; where the result would not say just that, it is refused, and the person told what to write.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from anima.connect.change import HostEdit
from anima.connect.host import Host, folder_of
from anima.connect.wiring import NAME, Wiring, about
from anima.errors import BadInput

MARK = "  # anima"


def _folder(wiring: Wiring) -> Path:
    return wiring.folder("HERMES_HOME", ".hermes")


def plugin(wiring: Wiring) -> dict[str, str]:
    """The provider's folder."""
    text = Path(__file__).with_name("hermes_plugin.txt").read_text(encoding="utf-8")
    said = f"name: {NAME}\nversion: {about()['version']}\ndescription: {json.dumps(about()['description'])}\n"
    return {
        "plugin.yaml": f"{said}hooks:\n  - on_session_end\n  - on_pre_compress\n",
        "__init__.py": text.format(words=json.dumps(wiring.hook("hermes", "EVENT"), ensure_ascii=False)),
    }


def _edits(wiring: Wiring) -> list[HostEdit]:
    folder = _folder(wiring)
    wanted: list[tuple[str, str, object]] = [
        ("memory", "provider", NAME),
        ("mcp_servers", NAME, wiring.server("hermes", joins=False)),
    ]
    chosen = HostEdit(path=folder / "config.yaml", put=lambda text: with_lines(text, wanted), take=without_lines)
    return [*folder_of(folder / "plugins" / NAME, plugin(wiring)), chosen]


def with_lines(text: str, wanted: list[tuple[str, str, object]]) -> str:
    """A YAML file with a member in each of some top ones. Raises BadInput where it cannot be added by a line."""
    expected = _read(text)
    for top, key, value in wanted:
        inside = expected.setdefault(top, {})
        inside = expected[top] = {} if inside is None else inside
        if not isinstance(inside, dict) or inside.get(key, value) != value:
            raise BadInput(f"{top}.{key} is something else already")
        if key not in inside:
            text = _added(text, top, f"{key}: {json.dumps(value, ensure_ascii=False)}{MARK}")
            inside[key] = value
    if _read(text) != expected:
        raise BadInput("it is written in a way we do not add to; add memory.provider and mcp_servers by hand")
    return text


def _added(text: str, top: str, line: str) -> str:
    found = re.search(rf"^{top}:[ \t]*(?:#.*)?\n(?P<indent>[ \t]*)", text, re.MULTILINE)
    if found is None:
        gap = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{gap}{top}:{MARK}\n  {line}\n"
    at, indent = found.start("indent"), found["indent"] or "  "
    return f"{text[:at]}{indent}{line}\n{text[at:]}"


def without_lines(text: str) -> str:
    """The file without the lines that are marked as ours."""
    left = "".join(line for line in text.splitlines(keepends=True) if not line.rstrip("\r\n").endswith(MARK))
    _read(left)
    return left


def _read(text: str) -> dict[str, Any]:
    import yaml

    try:
        found = yaml.safe_load(text) or {}
    except (yaml.YAMLError, RecursionError, ValueError):
        raise BadInput("it cannot be read as YAML") from None
    if not isinstance(found, dict):
        raise BadInput("it is no mapping")
    return found


HOST = Host(
    name="hermes",
    title="hermes",
    edits=_edits,
    then="Start a new session of hermes; hermes memory status names anima.",
)
