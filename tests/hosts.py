"""`make test-hosts`: fetches the real programs into build/hosts, then runs the tests that need them.

Promise: what cannot be had is said loudly and its tests are skipped; nothing is installed beside anima. Each program runs
with an empty environment, a configuration of its own and a model server on loopback: no account is used, and nobody's
settings are read.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACE = ROOT / "build" / "hosts"
CLAUDE = PLACE / "claude" / "claude_agent_sdk" / "_bundled" / "claude"
CODEX = PLACE / "codex" / "node_modules" / ".bin" / "codex"
HERMES = PLACE / "hermes" / "bin" / "python"
WHEEL, PACKAGE, AGENT = "claude-agent-sdk==0.2.182", "@openai/codex@0.166.0", "hermes-agent==0.19.0"


def _ran(*words: str) -> bool:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"  {' '.join(words[:4])}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
    return done.returncode == 0


def _claude() -> None:
    wheels = PLACE / "wheels"
    if _ran(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels), WHEEL):
        with zipfile.ZipFile(next(wheels.glob("claude_agent_sdk*.whl"))) as wheel:
            wheel.extractall(PLACE / "claude", [name for name in wheel.namelist() if "/_bundled/" in name])
        CLAUDE.chmod(0o755)


def _codex() -> None:
    _ran("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(PLACE / "codex"), PACKAGE)


def _hermes() -> None:
    if _ran(sys.executable, "-m", "venv", str(PLACE / "hermes")):
        _ran(str(HERMES), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", AGENT)


def main() -> int:
    PLACE.mkdir(parents=True, exist_ok=True)
    for name, program, fetch in (
        ("Claude Code", CLAUDE, _claude),
        ("Codex", CODEX, _codex),
        ("hermes", HERMES, _hermes),
    ):
        if not program.exists():
            print(f"fetching {name} …", file=sys.stderr)
            try:
                fetch()
            except (OSError, StopIteration) as error:
                print(f"  {error}", file=sys.stderr)
        if not program.exists():
            print(f"SKIPPED: {name} cannot be had here; nothing about it is tested", file=sys.stderr)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "hosts", str(ROOT / "tests" / "connect")], check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
