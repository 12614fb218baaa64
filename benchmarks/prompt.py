"""What a prompt costs beside the reading it is made of, in one run, for homes of 6, 60 and 600 KB.

    python benchmarks/prompt.py

raw     open, read and close the files the prompt needs, nothing else
scan    the same, decoded and looked at for hidden text
cold    a prompt of a home that is open, with nothing kept from earlier
stats   a stat of every place the kept prompt depends on
warm    the same prompt again while nothing changed
Goals: cold at most 3 times scan, warm at most 5 times stats; `anima prompt` in a new process at most twice
`python -c 'import typer, rich.console'`.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from anima import Home, Scope
from anima.scan import hidden

SENTENCE = "- The tiller needs a second coat of varnish before the naïve guests arrive on Friday — says Ana.\n"
SHARES = {"SOUL.md": 2, "AGENTS.md": 3, "USER.md": 1, "TOOLS.md": 1, "MEMORY.md": 5}
RUNS = 200


def main() -> None:
    for kilobytes in (6, 60, 600):
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), kilobytes)
    shell()


def build(root: Path, kilobytes: int) -> None:
    settings = {"ANIMA_CONFIG": str(root / "config")}
    Home.create(root / "home", name="Aria", env=settings).close()
    total = sum(SHARES.values())
    for name, share in SHARES.items():
        lines = max(1, kilobytes * 1024 * share // total // len(SENTENCE.encode()))
        (root / "home" / name).write_text(f"# {name}\n\n" + SENTENCE * lines, encoding="utf-8")
    for file in (root / "home").rglob("*.md"):  # old enough to be believed unchanged
        os.utime(file, (time.time() - 60, time.time() - 60))
    time.sleep(0.3)


def measure(root: Path, kilobytes: int) -> None:
    build(root, kilobytes)
    with Home.open(root / "home", env={"ANIMA_CONFIG": str(root / "config")}) as home:
        for folder in (root / "home", root / "home" / "memory", root / "home" / ".anima"):
            os.utime(folder, (time.time() - 60, time.time() - 60))
        time.sleep(0.3)
        prompt = home.prompt(scope=Scope.MAIN)
        files = [f"{home.root}/{line.path}" for line in prompt.manifest if line.chars_raw and line.path]
        places = [place for kept in home.reading._kept.values() for place, _ in kept.places]

        def forget() -> None:
            home.reading._kept.clear()
            home.store._read.clear()
            home.store._named.clear()

        raw, scan = best(lambda: read(files)), best(lambda: read(files, look=True))
        cold = best(lambda: home.prompt(scope=Scope.MAIN), before=forget)
        home.prompt(scope=Scope.MAIN)
        stats = best(lambda: [stat(place) for place in places])
        warm = best(lambda: home.prompt(scope=Scope.MAIN))
    print(f"{kilobytes:4} KB  raw {raw * 1e6:7.0f} µs  scan {scan * 1e6:7.0f} µs  cold {cold * 1e6:7.0f} µs = {cold / scan:.2f}x (3)"
          f"  stats {stats * 1e6:5.1f} µs  warm {warm * 1e6:6.1f} µs = {warm / stats:.2f}x (5)  {len(places)} places")  # fmt: skip


def read(files: list[str], *, look: bool = False) -> None:
    for file in files:
        fd = os.open(file, os.O_RDONLY)
        data = os.read(fd, os.fstat(fd).st_size + 1)
        os.close(fd)
        if look:
            hidden(data.decode("utf-8"))


def stat(place: str) -> None:
    try:
        os.stat(place, follow_symlinks=False)
    except OSError:
        pass


def best(work: Callable[[], object], before: Callable[[], None] | None = None) -> float:
    """The median of many runs."""
    spent = []
    for _ in range(RUNS):
        if before:
            before()
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return statistics.median(spent)


def shell() -> None:
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "ANIMA_CONFIG": f"{folder}/config"}
        anima = str(Path(sys.executable).with_name("anima"))
        subprocess.run(
            [anima, "init", f"{folder}/home", "--name", "Aria"], env=env, check=True, stdout=subprocess.DEVNULL
        )
        commands = {
            "python -c 'import typer, rich.console'": [sys.executable, "-c", "import typer, rich.console"],
            "anima prompt": [anima, "prompt", "--home", f"{folder}/home"],
        }
        spent: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(15):
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
                spent[name].append(time.perf_counter() - start)
    base, ours = (statistics.median(times) for times in spent.values())
    print(
        f"anima prompt, cold process: {ours * 1e3:.0f} ms = {ours / base:.2f}x of {base * 1e3:.0f} ms for the two imports (2)"
    )


if __name__ == "__main__":
    main()
