"""How long the commands of the first help screen take, cold, beside the imports that they need.

Promise: one run measures both, turn by turn: a new process with the command, and a new process that only imports the
modules the command had loaded when it ended. A command may take at most 1.6 times its imports; what it loads from other
packages is named, and one that loads more than NEEDS grants it fails.

    python benchmarks/cli.py [--times 7]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

from anima import Home
from anima.cli import FIRST

MOST = 1.6
# What a command may load of other packages beside click: to draw, to keep history, to compare meanings, to serve.
SERVING = {"fastapi", "mcp", "uvicorn"}
NEEDS: dict[str, set[str]] = {
    "init": {"pygit2", "platformdirs"},
    "up": {"pygit2", "rich", "numpy", "yaml", *SERVING},
    "remember": {"pygit2"},
    "search": {"numpy", "rich", "safetensors", "tokenizers", "wordllama", "yaml"},
    "review": {"pygit2", "rich"},
    "why": {"pygit2"},
    "undo": {"pygit2", "rich"},
    "forget": {"pygit2", "numpy", "yaml"},
}
HEAVY = set().union(
    *NEEDS.values(), {"httpx2", "pydantic", "starlette", "jinja2", "watchfiles", "cronsim", "onnxruntime"}
)
LINES = {
    "init": ["init", "{new}", "--name", "Aria"],
    "up": ["up", "{home}", "--port", "0", "--json"],
    "remember": ["remember", "Bo", "likes", "tea"],
    "search": ["search", "what", "is", "Luis", "allergic", "to"],
    "review": ["review", "--list"],
    "why": ["why", "MEMORY.md:7"],
    "undo": ["undo"],
    "forget": ["forget", "walnuts", "--yes"],
}
# The command in this very process; then the names of what is loaded go to the last line of standard error.
RUN = (
    "import sys, json; before = set(sys.modules); from anima.cli import run; code = run(sys.argv[1:]); sys.stdout.flush();"
    "print(json.dumps([code, sorted(set(sys.modules) - before)]), file=sys.stderr)"
)


def home_in(folder: Path) -> Path:
    """A home with something to find, to review, to undo and to forget."""
    with Home.create(folder, name="Aria") as home:
        home.write("MEMORY.md", "# Memory\n\n## People\n\n- Ana uses a Samsung\n\n- Luis is allergic to walnuts\n")
        home.index()
        with home.session(scope="main", channel="cli") as session:
            session.taint("web")
            session.call("memory_write", {"content": "Bo wants the invoices"})
        home.remember("Bo has a boat")
    return folder


def environment(place: Path) -> dict[str, str]:
    return {**os.environ, "ANIMA_CONFIG": str(place / "config"), "ANIMA_HOME": str(place / "home")}


def commanded(verb: str, place: Path) -> tuple[float, list[str]]:
    """Seconds of one command in a new process, and the modules it loaded; of `up`, until it tells its address."""
    line = [word.format(home=place / "home", new=place / "new") for word in LINES[verb]]
    line += ["--as-owner"] if verb in ("init", "up", "remember", "undo", "forget") else []
    begun = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", RUN, *line],
        env=environment(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        if verb == "up":
            told = ""
            while not told.endswith("\n}\n"):
                told += process.stdout.readline()
            took = time.perf_counter() - begun
            with urlopen(json.loads(told)["url"] + "/login", timeout=60):
                process.terminate()
        _, error = process.communicate()
    took = took if verb == "up" else time.perf_counter() - begun
    code, loaded = json.loads(error.splitlines()[-1])
    if code:
        sys.exit(f"anima {verb} ended with {code}: {error}")
    return took, loaded


def imported(loaded: list[str], place: Path) -> float:
    """Seconds of a new process that imports these modules and does nothing."""
    script = "import sys, importlib\nfor name in sys.stdin.read().split():\n try: importlib.import_module(name)\n except ImportError: pass"
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", script], input="\n".join(loaded), env=environment(place), text=True, check=True
    )
    return time.perf_counter() - begun


def measured(verb: str, times: int, kept: Path) -> tuple[float, float, list[str]]:
    takes, imports, loaded = [], [], []
    for _ in range(times + 1):  # the first fills the caches of the system
        with tempfile.TemporaryDirectory(prefix="anima-cold-") as place:
            shutil.copytree(kept, place, dirs_exist_ok=True)
            with Home.open(Path(place) / "home", env=environment(Path(place))) as home:
                home.trust()  # a copy is another folder, for which nobody vouched yet
            took, loaded = commanded(verb, Path(place))
            takes.append(took)
            imports.append(imported(loaded, Path(place)))
    return statistics.median(takes[1:]), statistics.median(imports[1:]), loaded


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--times", type=int, default=7)
    times, wrong = asked.parse_args().times, []
    print(
        f"{'command':10} {'seconds':>8} {'imports':>8} {'ratio':>6}  what it loads of others (beside click and Python's own)"
    )
    with tempfile.TemporaryDirectory(prefix="anima-cold-") as folder:
        os.environ["ANIMA_CONFIG"] = f"{folder}/config"
        home_in(Path(folder) / "home")
        for verb in FIRST:
            took, imports, loaded = measured(verb, times, Path(folder))
            ratio, heavy = took / imports, HEAVY & {name.partition(".")[0] for name in loaded}
            print(f"{verb:10} {took:8.3f} {imports:8.3f} {ratio:6.2f}  {', '.join(sorted(heavy)) or '–'}")
            wrong += [f"{verb} takes {ratio:.2f} times its imports, more than {MOST}"] if ratio > MOST else []
            more = heavy - NEEDS[verb]
            wrong += (
                [f"{verb} loads {', '.join(sorted(more))}, which it does not need"] if more and verb != "up" else []
            )
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
