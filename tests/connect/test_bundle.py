"""The bundle: every manifest is what its format says, and the skills are skills.

The schemas here say what the formats say, in few words: closed where they are closed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from anima.connect import EVENTS
from anima.connect.hosts import HOSTS, SKILLS, Wiring, skill

WIRING = Wiring(
    program=("/opt/anima/bin/anima",), home="/home/ana/aria", config="/home/ana/.config/anima", agent="Aria", env={}
)
TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
NAME = {"type": "string", "pattern": r"^(?!.*(--|\.\.))[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?$"}
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


AUTHOR = closed([], name=TEXT, email=TEXT, url=TEXT)
ABOUT = {
    "name": NAME,
    "version": TEXT,
    "description": TEXT,
    "license": TEXT,
    "keywords": {"type": "array", "items": TEXT},
}
PROGRAM = {"command": TEXT, "args": {"type": "array", "items": {"type": "string"}}, "env": TEXTS}
SERVERS = closed(["mcpServers"], mcpServers={"type": "object", "additionalProperties": closed(["command"], **PROGRAM)})
HOOK = closed(
    ["type", "command"], type={"const": "command"}, command=TEXT, args=PROGRAM["args"], timeout={"type": "integer"}
)
ENTRIES = {"type": "array", "items": closed(["hooks"], matcher=TEXT, hooks={"type": "array", "items": HOOK})}
PLUGINS = "https://agent-plugins.org/schemas/1.0.0"
SCHEMAS: dict[str, dict[str, Any]] = {
    "plugin.json": closed(
        ["$schema", "name"], **{"$schema": {"const": f"{PLUGINS}/plugin.schema.json"}}, author=AUTHOR, **ABOUT
    ),
    "mcp.json": closed(
        ["$schema", "mcpServers"],
        **{"$schema": {"const": f"{PLUGINS}/mcp.schema.json"}},
        mcpServers={
            "type": "object",
            "additionalProperties": closed(["type", "command"], type={"const": "stdio"}, **PROGRAM),
        },
    ),
    ".claude-plugin/plugin.json": closed(["name"], author=AUTHOR, **ABOUT),
    ".mcp.json": SERVERS,
    "hooks/hooks.json": closed(
        ["hooks"], hooks=closed(list(EVENTS["claude-code"]), **dict.fromkeys(EVENTS["claude-code"], ENTRIES))
    ),
    ".cursor-plugin/plugin.json": closed(["name"], author=AUTHOR, skills=TEXT, hooks=TEXT, mcpServers=TEXT, **ABOUT),
    "hooks/cursor.json": closed(
        ["version", "hooks"],
        version={"const": 1},
        hooks={
            "type": "object",
            "additionalProperties": {
                "type": "array",
                "items": closed(["command"], command=TEXT, timeout={"type": "integer"}, loop_limit={"type": "integer"}),
            },
        },
    ),
}
GEMINI = closed(
    ["name", "version"], name=NAME, version=TEXT, contextFileName=TEXT, mcpServers=SERVERS["properties"]["mcpServers"]
)


CLAUDES = (".claude-plugin/plugin.json", ".mcp.json", "hooks/hooks.json")


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_manifest_is_what_its_format_says(name: str) -> None:
    jsonschema.validate(json.loads(HOSTS["generic"].bundle(WIRING)[name]), SCHEMAS[name])


def test_the_bundle_holds_its_manifests_and_skills_and_nothing_else() -> None:
    skills = {f"skills/{name}/SKILL.md" for name in SKILLS}

    assert set(HOSTS["generic"].bundle(WIRING)) == {*SCHEMAS, *skills, "README.md"}
    assert set(HOSTS["claude-code"].bundle(WIRING)) == {*skills, "README.md", *(n for n in SCHEMAS if n in CLAUDES)}
    assert set(HOSTS["gemini"].bundle(WIRING)) == {"gemini-extension.json", "GEMINI.md", "hooks/hooks.json", *skills}


def test_gemini_waits_in_milliseconds() -> None:
    files = HOSTS["gemini"].bundle(WIRING)
    jsonschema.validate(json.loads(files["gemini-extension.json"]), GEMINI)
    hooks = json.loads(files["hooks/hooks.json"])["hooks"]

    assert set(hooks) == set(EVENTS["gemini"])
    assert all(entry["hooks"][0]["timeout"] >= 1_000 for (entry,) in hooks.values())


@pytest.mark.parametrize("name", SKILLS)
def test_a_skill_is_a_skill(name: str) -> None:
    _, front, body = skill(name).split("---\n", 2)
    said = yaml.safe_load(front)

    assert set(said) == {"name", "description"} and said["name"] == name and len(said["description"]) <= 1_024
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) and len(body.splitlines()) < 60
    assert skill(name).isascii() and "!" not in body


def test_words_that_hosts_trust_by_their_hash_stay_as_they_are() -> None:
    hooks = WIRING.hooks("codex")
    apart = Wiring(program=("/a b/anima",), home="/h", config="/c", agent="A", env={}).hooks("codex")

    words = "/opt/anima/bin/anima hook codex SessionStart --home /home/ana/aria --config /home/ana/.config/anima"
    assert hooks["SessionStart"] == [{"hooks": [{"type": "command", "command": words, "timeout": 20}]}]
    assert "'/a b/anima' hook" in apart["Stop"][0]["hooks"][0]["command"]


def test_nothing_secret_and_no_word_of_trust_stands_in_what_hosts_are_given(tmp_path: Path) -> None:
    wiring = Wiring(
        program=("anima",), home="/h", config="/c", agent="A", env={"HOME": str(tmp_path), "SECRET": "s3cret"}
    )
    for host in HOSTS.values():
        text = "".join(edit.put("") for edit in host.edits(wiring))
        assert "s3cret" not in text and "trusted_hash" not in text and "clean" not in text
