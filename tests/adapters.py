"""`make test-adapters`: each library in an environment of its own beneath build/adapters, and the adapters' tests in it.

Promise: an environment is made with the ordinary client, once; nothing is installed beside anima. What cannot be had is said
loudly and its tests are skipped. Which version was tested is printed with the result. `ONLY=langgraph` tests one of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACE = ROOT / "build" / "adapters"
# The extra, and what its tests need besides.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "pydantic-ai": ("pydantic-ai-slim[openai]==2.66.0",),
    "anthropic": ("anthropic==2.8.0",),
    "openai-agents": ("openai-agents==0.24.0",),
    "langgraph": ("langgraph==1.2.22", "langchain-openai==1.7.3"),
    "claude-agent-sdk": ("claude-agent-sdk==0.2.182",),
    "agentscope": ("agentscope==2.0.10",),
}
TESTS = ("connect/test_adapters.py", "connect/test_adapter_seams.py", "test_docs.py")


def _made(name: str, wanted: tuple[str, ...]) -> Path | None:
    """The Python of an environment that has the library; None where it cannot be had."""
    place = PLACE / name
    python, done = place / "bin" / "python", place / ".installed"
    if done.exists() and done.read_text() == str(wanted):
        return python
    print(f"making an environment with {', '.join(wanted)} …", file=sys.stderr)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for words in (
        [sys.executable, "-m", "venv", str(place)],
        [*pip, "--editable", f"{ROOT}[{name}]", "pytest", *wanted],
    ):
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        if ran.returncode:
            print(f"  {ran.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            return None
    done.write_text(str(wanted))
    return python


def main() -> int:
    PLACE.mkdir(parents=True, exist_ok=True)
    failed = []
    for name, wanted in LIBRARIES.items():
        if os.environ.get("ONLY", name) != name:
            continue
        if (python := _made(name, wanted)) is None:
            print(f"SKIPPED: {name} cannot be had here; nothing about it is tested", file=sys.stderr)
            continue
        print(f"== {', '.join(wanted)}", flush=True)
        words = [str(python), "-m", "pytest", "--noconftest", "-p", "no:cacheprovider", "-o", "filterwarnings=", *TESTS]
        env = {**os.environ, "ADAPTER": name, "PYTHONPATH": "."}
        if subprocess.run(words, cwd=ROOT / "tests", env=env, check=False).returncode:
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "every adapter does what it should", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
