"""The pages that people follow step by step: every command and program in them is run, and says what the page says.

Promise: the blocks of a page run in their order in one empty folder, with a configuration of its own. `console` blocks run
at a terminal and are compared with what the page shows, dates, times and drawn names apart, and what a line of `…` stands
for; `python` blocks are compared with the `text` block that follows; `sh` blocks must succeed. What cannot be run says so in
a comment before it.
`DOCS=write` puts what was said into the pages. Pages of hosts run as far as the host's own program is not needed; those of
libraries where the library is, which is what `make test-adapters` is for. Not here: the manual and the other pages of the
reference, whose command lines are held against the commands (test_surface).
"""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lodging import there

ROOT = Path(__file__).parent.parent
FRAMEWORKS = [ROOT / "docs/frameworks" / f"{name}.md" for name in there()]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs/index.md",
    ROOT / "docs/concepts.md",
    *sorted((ROOT / "docs/start").glob("*.md")),
    *sorted((ROOT / "docs/hosts").glob("*.md")),
    *FRAMEWORKS,
]
if "ADAPTER" in os.environ:  # in the environment of one library
    PAGES = FRAMEWORKS
BLOCK = re.compile(
    r"(?P<note><!-- (?P<what>keys|not run|as): (?P<said>[^>]*?) -->\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```\n",
    re.M | re.S,
)
PATIENCE = 120
MASKS = (
    (re.compile(r"\d{4}-\d\d-\d\d"), "DAY"),
    (re.compile(r"\b\d\d:\d\d(?::\d\d)?\b"), "TIME"),
    (re.compile(r"\bu?[0-9a-f]{7,64}\b"), "NAME"),
    (re.compile(r"\b0\.\d+\b"), "SCORE"),
    (re.compile(r"\b\d+(?:\.\d+)? (ms|s|kB|MB|bytes)\b"), r"N \1"),
    (re.compile(r"[█░]+"), "BAR"),
    (re.compile(r"\s+"), " "),
)


class Block(NamedTuple):
    """One fenced block of a page; `keys` are typed into it, `skipped` says why it is not run."""

    kind: str
    body: str
    keys: str
    skipped: str
    start: int
    end: int


def blocks(text: str) -> Iterator[Block]:
    for found in BLOCK.finditer(text):
        said = (found["said"] or "").encode().decode("unicode_escape")
        keys, skipped = (said if found["what"] == what else "" for what in ("keys", "not run"))
        yield Block(found["kind"], found["body"], keys, skipped, found.start("body"), found.end("body"))


def plain(text: str) -> list[str]:
    for pattern, instead in MASKS[:-1]:
        text = pattern.sub(instead, text)
    return [line for each in text.splitlines() if (line := MASKS[-1][0].sub(" ", each).strip())]


def is_shown(said: str, page: str) -> bool:
    """Whether a page shows what was said; a line of `…` in it stands for lines that it leaves out."""
    shown, lines = plain(page), plain(said)
    if "…" not in shown:
        return shown == lines
    pattern = "".join("(?:.*\n)*?" if line == "…" else re.escape(f"{line}\n") for line in shown)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


def at_a_terminal(command: str, place: Path, env: dict[str, str], keys: str) -> str:
    """What a command says to somebody who sits before it."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["bash", "-c", command], cwd=place, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    ) as run:
        os.close(theirs)
        said, typed, end = bytearray(), keys, time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
                if not part:
                    break
                said += part
            elif typed and said:
                os.write(ours, typed[:1].encode())
                typed = typed[1:]
        else:
            run.kill()
            raise AssertionError(f"{command} did not end:\n{said.decode()}")
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode("utf-8", "replace")).replace("\r\n", "\n")


def console(block: Block, place: Path, env: dict[str, str]) -> tuple[str, Path]:
    """The block with what its commands say now, and the folder that they end in."""
    made: list[str] = []
    for line in re.findall(r"^\$ (.*(?:\\\n.*)*)\n?", block.body, re.M):
        if line.startswith("cd "):
            place, said = place / line[3:], ""
        else:
            said = at_a_terminal(line, place, env, block.keys)
        made.append(f"$ {line}\n{said}")
    return "".join(made), place


def program(block: Block, place: Path, env: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", block.body],
        cwd=place,
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0 and not done.stderr, f"{block.body}\n{done.stderr}"
    return done.stdout


def shell(block: Block, place: Path, env: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-ec", block.body], cwd=place, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, f"{block.body}\n{done.stdout}{done.stderr}"


def said_now(text: str, place: Path, env: dict[str, str]) -> Iterator[tuple[Block, str]]:
    """Every block that shows what something says, with what it says now."""
    printed: str | None = None
    for block in blocks(text):
        if block.skipped:
            continue
        if block.kind == "console":
            said, place = console(block, place, env)
            yield block, said
        elif block.kind == "sh":
            shell(block, place, env)
        elif block.kind == "text" and printed is not None:
            yield block, printed
        printed = program(block, place, env) if block.kind == "python" else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_and_program_of_a_page_does_what_the_page_says(page: Path, tmp_path: Path) -> None:
    place, text = tmp_path / "somebody", page.read_text(encoding="utf-8")
    place.mkdir()
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "ANIMA_TEST") if name in os.environ}
    env = {
        **kept,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(place),
        "PYTHONPATH": os.pathsep.join(each for each in sys.path if each and Path(each).resolve() != ROOT / "tests"),
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "TZ": "UTC",
        "EDITOR": "true",
    }
    shown = [(block, said.replace(str(place), "~")) for block, said in said_now(text, place, env)]
    if os.environ.get("DOCS") == "write":
        for block, said in reversed(shown):
            if not is_shown(said, block.body):
                text = text[: block.start] + said.replace(str(tmp_path), "~") + text[block.end :]
        page.write_text(text, encoding="utf-8")
    for block, said in shown:
        assert is_shown(said, block.body) or os.environ.get("DOCS") == "write", said
