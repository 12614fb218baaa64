"""Settings of other systems become anima.toml: every value of the five systems' own examples lands there or in the list."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from anima import BadInput, Home
from anima.config import load
from anima.connect.connections import Settings, settings_of, with_settings
from anima.text import read_table

OPENCLAW = """// the owner's
{
  "ui": {"assistant": {"name": "Aria", "avatar": "aria.png"}},
  "agents": {
    "defaults": {
      "bootstrapMaxChars": 20000,
      "compaction": {"memoryFlush": {"enabled": true, "softThresholdTokens": 4000}},
      "sandbox": {"mode": "non-main", "workspaceAccess": "rw"},
    },
    "list": [
      {"agentId": "aria", "workspace": "~/aria-workspace", "identity": {"name": "Aria", "emoji": "🌿"}},
      {"agentId": "devbot", "workspace": "~/devbot-workspace", "identity": {"name": "C-3PO", "emoji": "🤖"}},
    ],
  },
  "memorySearch": {"enabled": true},
  "hooks": {"internal": {"enabled": true, "entries": {"soul-evil": {
    "enabled": true, "file": "SOUL_EVIL.md", "chance": 0.1, "purge": {"at": "23:30", "duration": "30m"}}}}},
  "bindings": [{"agentId": "devbot", "match": {"channel": "discord", "peer": {"kind": "group", "id": "42"}}}],
}
"""
NEXO = """
agents:
  - id: kate
    workspace: ./data/workspace/kate
    workspace_git:
      enabled: true
    allowed_delegates: [luis]
    allowed_tools: ["memory_*", who_am_i]
    transcripts_dir: talks
    model: {provider: anthropic}
"""
CARAPACE = """
rules:
  - {id: memory-write, trigger: always, mode: approve, effect: asks the user, description: x}
  - {id: no-write-after-web, trigger: the web was read, effect: no writes, mode: approve}
  - {id: finance, trigger: money was spoken of, effect: no mails, mode: block}
memory: {embedding_model: all-MiniLM-L6-v2}
data_dir: ~/carapace
"""
IRONCLAW = """
export EMBEDDING_PROVIDER=ollama
export OLLAMA_BASE_URL=http://localhost:11434
export OLLAMA_EMBEDDING_MODEL="nomic-embed-text"
export OPENAI_API_KEY=sk-not-for-a-file
export NEAR_EMBEDDING_API_KEY=near-not-for-a-file
export DATABASE_URL=postgresql://user:hunter22@localhost/ironclaw
# a comment
"""
AGENTSCOPE = """{"name": "MyAgent", "model": "qwen-max", "workspace": ".agentscope/workspace",
 "additionalContextFile": ["SOUL.md", "PREFERENCES.md"], "maxContextTokens": 8000}"""
EXAMPLES = {
    "moltbot.json": OPENCLAW,
    "agents.yaml": NEXO,
    "rules.yaml": CARAPACE,
    ".env": IRONCLAW,
    "builder.json": AGENTSCOPE,
}
LANDS: dict[str, dict[str, Any]] = {
    "moltbot.json": {
        "identity": {"name": "Aria", "avatar": "aria.png"},
        "prompt": {"file_chars": 20000},
        "sessions": {"soft": 4000},
        "persona": {"file": "SOUL_EVIL.md", "chance": 0.1, "at": "23:30", "duration": "30m"},
        "agent": [
            {"id": "aria", "home": "/o/aria-workspace", "name": "Aria", "emoji": "🌿"},
            {"id": "devbot", "home": "/o/devbot-workspace", "name": "C-3PO", "emoji": "🤖"},
        ],
        "binding": [{"agent": "devbot", "channel": "discord", "chat": "42"}],
    },
    "agents.yaml": {
        "history": {"enabled": True},
        "sessions": {"dir": "talks"},
        "agent": [
            {
                "id": "kate",
                "home": "/o/data/workspace/kate",
                "allowed_delegates": ["luis"],
                "allowed_tools": ["memory_*", "who_am_i"],
            }
        ],
    },
    "rules.yaml": {
        "gate": {"preset": "strict"},
        "index": {"embedder": "sentence-transformers", "model": "all-MiniLM-L6-v2"},
    },
    ".env": {"index": {"embedder": "ollama", "url": "http://localhost:11434", "model": "nomic-embed-text"}},
    "builder.json": {
        "identity": {"name": "MyAgent"},
        "prompt": {"additional": ["SOUL.md", "PREFERENCES.md"], "memory_tokens": 8000},
    },
}
LEFT = {
    "moltbot.json": [
        "agents.defaults.sandbox.mode",
        "agents.defaults.sandbox.workspaceAccess",
        "bindings[devbot].match.peer.kind",
    ],
    "agents.yaml": ["agents[kate].model.provider"],
    "rules.yaml": [
        *(f"rules[memory-write].{key}" for key in ("id", "effect", "description")),
        *(f"rules[no-write-after-web].{key}" for key in ("id", "trigger", "effect")),
        *(f"rules[finance].{key}" for key in ("id", "trigger", "effect", "mode")),
        "data_dir",
    ],
    ".env": ["OPENAI_API_KEY", "NEAR_EMBEDDING_API_KEY", "DATABASE_URL"],
    "builder.json": ["model", "workspace"],
}
AS_HERE = {  # values that say how anima does it anyway need no key; one that needs two counts against them
    "moltbot.json": 4,  # memoryFlush.enabled, memorySearch.enabled, and two hooks that are on
    "rules.yaml": 2 - 1,  # memory-write is always on, after the web it asks; the model of embeddings
}


@pytest.fixture
def found(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("HOME", "/o")
    return settings_of(f"/o/{request.param}", EXAMPLES[request.param], home="/o/home")


def anima(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "anima", *words], capture_output=True, text=True, check=True)
    return done.stdout


def leaves(tree: Any) -> int:
    """How many values a configuration has; a list of plain values is one."""
    if isinstance(tree, dict):
        return sum(map(leaves, tree.values()))
    return sum(map(leaves, tree)) if isinstance(tree, list) and any(isinstance(e, dict) for e in tree) else 1


@pytest.mark.parametrize(("found", "name"), [(name, name) for name in EXAMPLES], indirect=["found"])
def test_every_value_of_an_example_lands_in_the_file_or_in_the_list(found: Settings, name: str) -> None:
    text, already = with_settings('# mine\ndialect = "anima"\n', found)
    made = tomllib.loads(text)

    assert made.pop("dialect") == "anima" and text.startswith("# mine\n") and not already
    assert made == LANDS[name]
    assert [key for key, _ in found.left] == LEFT[name] and all(why for _, why in found.left)
    load(text, env={}, trusted=True)
    if name != ".env":
        import yaml

        from anima.connect import hosts as texts

        tree = texts.at(EXAMPLES[name], ()) if name.endswith("json") else yaml.safe_load(EXAMPLES[name])
        assert leaves(tree) == leaves(made) + len(found.left) + AS_HERE.get(name, 0)


def test_keys_of_others_services_go_into_no_file_and_are_not_shown() -> None:
    found = settings_of("/o/.env", IRONCLAW, home="/o/home")

    assert "not-for-a-file" not in f"{found}" and "hunter22" not in f"{found}"


def test_no_prompt_is_told_what_others_said_and_no_login_is_taken_over() -> None:
    nexo = settings_of("/o/a.yaml", "agents: [{id: k, extra_docs: [a.md, users/eve/MEMORY.md]}]", home="/o/home")
    soul = '{"hooks": {"internal": {"entries": {"soul-evil": {"file": "Unreviewed/x.md", "chance": 1}}}}}'
    evil = settings_of("/o/moltbot.json", soul, home="/o/home")
    login = settings_of("/o/.env", "OLLAMA_BASE_URL=https://me:hunter22@mine.example/v1", home="/o/home")

    assert nexo.taken["prompt.additional"] == ["a.md"] and "others said" in dict(nexo.left)["agents[k].extra_docs"]
    assert "persona.file" not in evil.taken and "others said" in evil.left[0][1]
    assert login.taken == {"index.url": "https://mine.example/v1"} and "hunter22" not in f"{login}" and login.left


@pytest.mark.parametrize(
    ("address", "taken"),
    [
        ("https://mine.example/v1?key=hunter22", "https://mine.example/v1"),
        ("https://mine.example/v1?api_key=hunter22&api-version=7", "https://mine.example/v1?api-version=7"),
        ("https://me@mine.example/v1?v=7&Access_Token=hunter22", "https://mine.example/v1?v=7"),
        ("https://mine.example/v1?v=7&monkeys=3", "https://mine.example/v1?v=7&monkeys=3"),
        ("https://mine.example/v1?", "https://mine.example/v1?"),
    ],
)
def test_no_key_in_what_an_address_asks_with_is_taken_over(address: str, taken: str) -> None:
    found = settings_of("/o/.env", f"OLLAMA_BASE_URL={address}", home="/o/home")

    assert found.taken == {"index.url": taken} and "hunter22" not in f"{found}"
    assert bool(found.left) is (taken != address)


def test_a_time_that_is_none_for_us_is_told_and_keeps_nothing_else_out() -> None:
    nexo = "agents: [{id: k, dreaming: {cron: '03:00', preset: nexo}, heartbeat: {interval: 5 min}}]"
    text, left = with_settings("", settings_of("/o/a.yaml", nexo, home="/o/home"))
    assert {key for key, _ in left} == {"dream.at", "rituals.heartbeat"} and "03:00" in dict(left)["dream.at"]
    assert "03:00" not in text and load(text, env={}, trusted=True).agent[0].id == "k"


def test_what_the_home_says_already_stays_and_so_does_every_line_of_its_file() -> None:
    mine = 'timezone = "Europe/Lisbon" # home\n\n[identity] # who\nname = "Mine"\n\n[[agent]]\nid = "aria"\n'
    text, already = with_settings(mine, settings_of("/o/moltbot.json", OPENCLAW, home="/o/home"))
    made = tomllib.loads(text)

    assert [key for key, _ in already] == ["identity.name", "agent[0]"]
    assert made["identity"] == {"name": "Mine", "avatar": "aria.png"}
    assert [agent["id"] for agent in made["agent"]] == ["aria", "devbot"]
    assert all(line in text for line in mine.splitlines())
    assert with_settings(text, settings_of("/o/moltbot.json", OPENCLAW, home="/o/home"))[0].count("[[binding]]") == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.json", '{"hello": 1}'),
        ("x.json", '{"agents": '),
        ("x.yaml", "a: [b"),
        ("x.yaml", "7"),
        ("x.txt", "hello"),
        ("x.yaml", "a: b"),
    ],
)
def test_a_file_of_nobody_we_know_is_refused_with_a_sentence(name: str, text: str) -> None:
    with pytest.raises(BadInput):
        settings_of(f"/o/{name}", text, home="/o/home")


def test_the_command_shows_the_change_makes_it_and_says_what_has_no_counterpart(tmp_path: Path) -> None:
    file = tmp_path / "openclaw.json"
    file.write_text(OPENCLAW)
    with Home.create(tmp_path / "aria", name="Aria") as home:
        before = (tmp_path / "aria" / "anima.toml").read_text()
    words = ["connect", "--from", str(file), "--home", home.name]
    shown = anima(*words, "--dry-run")
    assert "+soft = 4000" in shown and "agents.defaults.sandbox.mode: anima runs no commands" in shown
    assert (tmp_path / "aria" / "anima.toml").read_text() == before
    assert "anima.toml has the settings of OpenClaw" in anima(*words, "--yes", "--as-owner")
    with Home.open(tmp_path / "aria") as again:
        assert again.site.config.persona.at == "23:30"
    assert "nothing was changed" in anima(*words, "--yes", "--as-owner")


def test_every_key_of_the_table_is_one_of_ours() -> None:
    known = {
        row.split("`")[1] for row in Path("docs/configuration.md").read_text().splitlines() if row.startswith("| `")
    }
    for kind in read_table("connect", "settings").values():
        for goes in kind["keys"].values():
            wheres = (
                [goes] if isinstance(goes, str) else [p.partition("=")[0] for v in goes.values() for p in v.split("; ")]
            )
            for where in filter(None, wheres):
                assert where in known or where.partition("[")[0] in known, where
