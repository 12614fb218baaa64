"""What a prompt costs: against reading and scanning the same files, and from the shell.

Run with the environment's own Python: `.venv/bin/python benchmarks/prompt.py [RUNS]`. All times are medians, in
microseconds, of runs in this one process unless it says otherwise. Files are in the page cache.

raw        os.open, os.fstat, os.read, os.close of every document the prompt is made of
scan       the same, decoded and looked through for hidden text with `anima.gate.scan.find_hidden`
read       the same documents by `home.read` (beneath the home, no links, exact text and digest), and the same scan
cold       the first `home.prompt(scope="main")` of a Home that was just opened (opening is not in it): nothing was read
           or listed yet; only Python itself is warm
shell      `anima prompt` as a process of its own, against `python -c 'import click, rich.console'`, taken in turns and
           both compiled, as installed packages are
"""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from anima import Home
from anima.gate.scan import find_hidden

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
COLUMNS = ("raw", "scan", "read", "cold")
GOALS = {"cold": 3.0, "shell": 2.0}
SHELL_RUNS = 15
NOW = datetime(2026, 5, 8, 19, 30, tzinfo=UTC)
LINE = "- On Tuesday Ana said that the second key hangs behind the blue door, next to the fuse box.\n"
TEXTS = ("SOUL.md", "AGENTS.md", "USER.md", "TOOLS.md", "MEMORY.md", "memory/2026-05-08.md", "memory/2026-05-07.md")


def make_home(root: Path, size: int) -> None:
    """A home as `anima init` makes it, its files then written by their owner until there are `size` bytes of them."""
    Home.create(root, name="Aria", clock=lambda: NOW).close()
    for name in TEXTS:
        lines = max(1, size // len(TEXTS) // len(LINE))
        (root / name).write_text(f"# {name}\n\n" + LINE * lines, encoding="utf-8")


def median_of(act: Callable[[], object], prepare: Callable[[], object] = lambda: None, runs: int = RUNS) -> float:
    times = []
    for _ in range(runs):
        prepare()
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def read(paths: Iterable[str]) -> list[bytes]:
    texts = []
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        texts.append(os.read(fd, os.fstat(fd).st_size))
        os.close(fd)
    return texts


def scan(paths: Iterable[str]) -> None:
    for raw in read(paths):
        find_hidden(raw.decode("utf-8"))


def first_of(root: Path, act: Callable[[Home], object]) -> float:
    """What it costs a Home that has done nothing yet. All are opened first: opening one in between would count, too."""
    homes = [Home.open(root, clock=lambda: NOW) for _ in range(RUNS)]
    waiting = iter(homes)
    found = median_of(lambda: act(next(waiting)))
    for home in homes:
        home.close()
    return found


def read_and_scan(home: Home, names: Iterable[str]) -> None:
    for name in names:
        find_hidden(home.read(name).text)


def measure(root: Path) -> tuple[int, dict[str, float], int]:
    with Home.open(root, clock=lambda: NOW) as home:
        manifest = home.prompt(scope="main").manifest
        names = [row.path for row in manifest if (root / row.path).is_file()]
    files = [str(root / name) for name in names]
    found = {
        "raw": median_of(lambda: read(files)),
        "scan": median_of(lambda: scan(files)),
        "read": first_of(root, lambda home: read_and_scan(home, names)),
        "cold": first_of(root, lambda home: home.prompt(scope="main")),
    }
    return sum(os.path.getsize(file) for file in files), found, len(files)


def shell(root: Path) -> tuple[float, float]:
    """Median seconds of (`anima prompt`, the imports alone), run in turns so that both see the same machine."""
    script = Path(sys.executable).parent / "anima"
    command = [str(script)] if script.exists() else [sys.executable, "-m", "anima"]
    ours, imports = [*command, "prompt", "--home", str(root)], [sys.executable, "-c", "import click, rich.console"]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = f"{root}.compiled"
    times: dict[int, list[float]] = {0: [], 1: []}
    for run in range(SHELL_RUNS + 1):
        for which, argv in enumerate((ours, imports)):
            start = time.perf_counter()
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
            if run:  # the first of each only compiles, and fills the page cache
                times[which].append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def verdict(name: str, ratio: float) -> str:
    return f"{ratio:4.1f}x  {'holds' if ratio <= GOALS[name] else 'MISSES'} (at most {GOALS[name]:g}x)"


def main() -> None:
    gc.disable()  # a collection in the middle of a run belongs to whoever filled the heap
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ANIMA_CONFIG"] = f"{folder}/config"
        print(f"{'home':>8} " + " ".join(f"{name:>8}" for name in COLUMNS))
        for size in (6_000, 60_000, 600_000):
            root = Path(folder, f"home{size}")
            make_home(root, size)
            real, found, files = measure(root)
            print(f"{real // 1000:>5} KB " + " ".join(f"{found[name]:8.1f}" for name in COLUMNS))
            print(f"{'':9}{files} files; cold is {found['cold'] / found['scan']:.1f}x of scan")
            print(f"{'':9}cold / read   {verdict('cold', found['cold'] / found['read'])}")
        ours, imports = shell(Path(folder, "home6000"))
        print(f"shell: anima prompt {ours * 1e3:.0f} ms, import click, rich.console {imports * 1e3:.0f} ms")
        print(f"{'':9}shell         {verdict('shell', ours / imports)}")


if __name__ == "__main__":
    main()
