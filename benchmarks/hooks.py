"""How long a host waits for a hook: each kind of event, cold, beside what Python itself takes.

A hook that only records may take three times `python -c "import json, sqlite3"`, one that recalls or wakes twice
`python -c "import numpy"`. Programs are started in turn, so that a busy machine slows them all alike; the figure is the median.
A home of 2,000 lines of memory. Exit code 1 when a limit is passed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from anima import Home
from anima.connect.connections import Connection, host_of
from anima.connect.hosts import Wiring

ROUNDS = 15
ID = "0f9f6f3e-5d7c-4a57-9d0e-6a2b1c3d4e5f"
BASES = {"json, sqlite3": "import json, sqlite3", "numpy": "import numpy"}
# Event, and which base it is held against, how many times.
EVENTS = {
    "PostToolUse": ("json, sqlite3", 3.0),
    "Stop": ("json, sqlite3", 3.0),
    "PostCompact": ("json, sqlite3", 3.0),
    "UserPromptSubmit": ("numpy", 2.0),
    "SessionStart": ("numpy", 2.0),
    "SubagentStart": ("numpy", 2.0),
}
START = "import sys; from anima.__main__ import main; sys.argv = ['anima', *sys.argv[1:]]; main()"


def made(folder: Path) -> Home:
    home = Home.create(folder / "aria", name="Aria")
    lines = [f"- Harbour number {n} has its tide table in the galley, drawer {n % 40}." for n in range(2_000)]
    home.write("MEMORY.md", "# Memory\n\n## Harbours\n\n" + "\n".join(lines) + "\n")
    home.index.bring_up()
    return home


def connected(home: Home, folder: Path) -> None:
    wiring = Wiring(
        program=("anima",),
        home=home.name,
        config=os.environ["ANIMA_CONFIG"],
        agent="Aria",
        env={"CLAUDE_CONFIG_DIR": str(folder / "claude")},
    )
    store = home.site.store
    host = Connection(
        wiring,
        host_of("claude-code"),
        identity=store.identity,
        index=store.scratch("index.sqlite"),
        now=home.clock(),
    )
    host.connect(host.plan(remove=False))


def timed(words: list[str], raw: bytes) -> float:
    started = time.perf_counter()
    subprocess.run(words, input=raw, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - started) * 1_000


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.environ["ANIMA_CONFIG"] = str(folder / "config")
        with made(folder) as home:
            connected(home, folder)
            words = ["--home", home.name, "--config", os.environ["ANIMA_CONFIG"]]
            report = {"session_id": ID, "prompt": "Where is the tide table of harbour number 7?", "tool_name": "Read"}
            raw = json.dumps(report).encode()
            programs = {name: [sys.executable, "-c", text] for name, text in BASES.items()}
            programs |= {e: [sys.executable, "-c", START, "hook", "claude-code", e, *words] for e in EVENTS}
            took: dict[str, list[float]] = {name: [] for name in programs}
            for _ in range(ROUNDS):
                for name, program in programs.items():
                    took[name].append(timed(program, raw))
    return told({name: statistics.median(each) for name, each in took.items()})


def told(medians: dict[str, float]) -> int:
    for name in BASES:
        print(f"python -c 'import {name}':  {medians[name]:6.0f} ms")
    passed = True
    for event, (base, limit) in EVENTS.items():
        ratio = medians[event] / medians[base]
        print(f"{event:<18} {medians[event]:6.0f} ms   {ratio:4.2f} times {base:<14} at most {limit:g}")
        passed &= ratio <= limit
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
