"""The pages of the documentation: every command and program in them is run, and says what the page says.

Promise: the blocks of a page run in their order in one empty folder, with a configuration of its own. `console` and `sh`
blocks run at a terminal; the former are compared with what the page shows, dates, times and drawn names apart, and what a
line of `…` stands for, the latter must succeed; `python` blocks are compared with the `text` block that follows.
Comments of a page say the rest: `setup` holds commands that no reader needs, `drawn: NAME = COMMAND` finds what a name of
the page is today, `keys` are typed, `not run` says why.
`DOCS=write` puts what was said into the pages. Pages of hosts run as far as the host's own program is not needed; those of
libraries where the library is, which is what `make test-adapters` is for. `make test-long PART=docs` runs the pages that take
longer than the rest: of those, `make test` holds the command lines against the commands (test_surface).
"""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lodging import there

ROOT = Path(__file__).parent.parent
FRAMEWORKS = [ROOT / "docs/frameworks" / f"{name}.md" for name in there()]
STEPS = [
    ROOT / "README.md",
    ROOT / "docs/index.md",
    ROOT / "docs/concepts.md",
    *sorted((ROOT / "docs/start").glob("*.md")),
    *sorted((ROOT / "docs/hosts").glob("*.md")),
    *FRAMEWORKS,
]
REFERENCE = [page for page in sorted((ROOT / "docs").glob("*.md")) if page not in STEPS]
LONG = ("agent", "dreaming", "forgetting", "health", "manual", "moving", "snapshots")
BLOCK = re.compile(
    r"(?:<!-- (?P<what>keys|not run): (?P<said>[^>]*?) -->\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```\n"
    r"|^<!-- (?P<quiet>setup|drawn):\s(?P<commands>.*?)\s-->\n",
    re.M | re.S,
)
PATIENCE = 120
MASKS = (
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "NAME"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:-\d{6}\b)?|\b\d{8}T\d{6}Z?"), "DAY"),
    (re.compile(r"\b\d\d? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?: 20\d\d)?\b"), "DAY"),
    (re.compile(r"(?:\bnext (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?\b\d\d:\d\d(?::\d\d)?\b"), "TIME"),
    (re.compile(r"\bu?[0-9a-f]{7,64}\b"), "NAME"),
    (re.compile(r"\b0\.\d+\b"), "SCORE"),
    (re.compile(r"\b[\d,]+(?:\.\d+)? (ms|s|kB|MB|bytes|days)\b"), r"N \1"),
    (re.compile(r"^(runtime|all|stable|\w+, anima:|· The main prompt) .*\d.*", re.M), r"\1 N"),  # has the day's name
    (re.compile(r"[█░]+"), "BAR"),
    (re.compile(r"\s+"), " "),
)


class Block(NamedTuple):
    """One fenced block of a page, or a comment that is run; `keys` are typed into it, `skipped` says why it is not run."""

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
        body = "commands" if found["quiet"] else "body"
        yield Block(found["quiet"] or found["kind"], found[body], keys, skipped, found.start(body), found.end(body))


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


def seen(said: bytes) -> str:
    """What is left on the screen of a quick machine: bars of progress are taken away again, and so is what is said of work
    that takes longer than a second."""
    text = re.sub(
        r"[^\n]*\n(?:\x1b\[\?25h)?\r?\x1b\[1A(?=\x1b\[2K)|[^\n]*\x1b\[2K", "", said.decode("utf-8", "replace")
    )
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r\n", "\n")
    return re.sub(r"^anima: [^\n]* …\n", "", text, flags=re.MULTILINE)


def is_asked(terminal: int, said: bytes) -> bool:
    """Whether a command waits for a key (it reads them one by one) or for a line (behind a question)."""
    return not termios.tcgetattr(terminal)[3] & termios.ICANON or (bool(said) and not seen(said).endswith("\n"))


class Somebody:
    """Who follows a page: where they stand, what their shell knows, and what the page's names are today."""

    def __init__(self, place: Path, env: dict[str, str]) -> None:
        self.place, self.env, self.drawn = place, env, dict[str, str]()

    def at_a_terminal(self, command: str, keys: str) -> tuple[str, int]:
        """What a command says to somebody who sits before it, and its exit code."""
        ours, theirs = pty.openpty()
        for name, today in self.drawn.items():
            command = command.replace(name, today)
        with subprocess.Popen(
            ["bash", "-ec", command], cwd=self.place, env=self.env, stdin=theirs, stdout=theirs, stderr=theirs
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
                elif typed and is_asked(ours, said):
                    os.write(ours, typed[:1].encode())
                    typed = typed[1:]
            else:
                run.kill()
                raise AssertionError(f"{command} did not end:\n{said.decode()}")
        os.close(ours)
        heard = seen(said)
        for name, today in self.drawn.items():
            heard = heard.replace(today, name)
        return heard, run.returncode

    def console(self, block: Block) -> str:
        """The block with what its commands say now."""
        made: list[str] = []
        for line in re.findall(r"^\$ (.*(?:\\\n.*)*)\n?", block.body, re.M):
            said = ""
            if line.startswith("cd "):
                self.place /= line[3:]
            else:
                said, _ = self.at_a_terminal(line, block.keys)
            made.append(f"$ {line}\n{said}")
        return "".join(made)

    def shell(self, block: Block) -> str:
        said, code = self.at_a_terminal(block.body, block.keys)
        assert code == 0, f"{block.body}\n{said}"
        return said

    def draw(self, block: Block) -> None:
        name, _, command = block.body.partition(" = ")
        self.drawn[name] = self.shell(block._replace(body=command)).splitlines()[-1]
        assert self.drawn[name], command

    def program(self, block: Block) -> str:
        done = subprocess.run(
            [sys.executable, "-c", block.body],
            cwd=self.place,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0 and not done.stderr, f"{block.body}\n{done.stderr}"
        return done.stdout


def said_now(text: str, somebody: Somebody) -> Iterator[tuple[Block, str]]:
    """Every block that shows what something says, with what it says now."""
    printed: str | None = None
    for block in blocks(text):
        if block.skipped:
            continue
        if block.kind == "console":
            yield block, somebody.console(block)
        elif block.kind in ("sh", "setup"):
            somebody.shell(block)
        elif block.kind == "drawn":
            somebody.draw(block)
        elif block.kind == "text" and printed is not None:
            yield block, printed
        printed = somebody.program(block) if block.kind == "python" else None


def pages() -> Iterator[object]:
    """The pages with something to run; in the environment of one library, its own."""
    for page in FRAMEWORKS if "ADAPTER" in os.environ else [*STEPS, *REFERENCE]:
        found = blocks(page.read_text(encoding="utf-8"))
        if any(block.kind in ("console", "sh", "python") and not block.skipped for block in found):
            long = page in REFERENCE and page.stem in LONG
            yield pytest.param(page, id=page.stem, marks=[pytest.mark.long] if long else [])


def somebody_in(place: Path) -> Somebody:
    """Somebody with an empty folder and a configuration of their own."""
    place.mkdir()
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "ANIMA_TEST") if name in os.environ}
    env = {
        **kept,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(place),
        "ROOT": str(ROOT),
        "PYTHONPATH": os.pathsep.join(each for each in sys.path if each and Path(each).resolve() != ROOT / "tests"),
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "TZ": "UTC",
        "EDITOR": "true",
        "PROMPT_TOOLKIT_NO_CPR": "1",
    }
    return Somebody(place, env)


@pytest.mark.parametrize("page", list(pages()))
def test_every_command_and_program_of_a_page_does_what_the_page_says(page: Path, tmp_path: Path) -> None:
    place, text = tmp_path / "somebody", page.read_text(encoding="utf-8")
    somebody = somebody_in(place)
    shown = [(block, said.replace(str(place), "~")) for block, said in said_now(text, somebody)]
    if os.environ.get("DOCS") == "write":
        for block, said in reversed(shown):
            if not is_shown(said, block.body):
                text = text[: block.start] + re.sub(r" +$", "", said, flags=re.M) + text[block.end :]
        page.write_text(text, encoding="utf-8")
    for block, said in shown:
        assert is_shown(said, block.body) or os.environ.get("DOCS") == "write", said


def programs(page: Path) -> list[Block]:
    return [each for each in blocks(page.read_text(encoding="utf-8")) if each.kind == "python" and not each.skipped]


WITH_MORE = [page for page in REFERENCE if programs(page) and "<!-- setup:" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", WITH_MORE, ids=lambda page: page.stem)
def test_a_program_of_a_page_needs_nothing_that_the_page_does_not_show(page: Path, tmp_path: Path) -> None:
    somebody = somebody_in(tmp_path / "somebody")

    for block in programs(page):
        somebody.program(block)


@pytest.mark.long
def test_the_programs_for_a_python_developer_pass_a_strict_type_checker(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="an adapter's environment has no type checker")
    found = programs(ROOT / "docs/start/python.md")
    for number, block in enumerate(found):
        (tmp_path / f"program{number}.py").write_text(block.body, encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--cache-dir",
            str(tmp_path / "cache"),
            *map(str, tmp_path.glob("*.py")),
        ],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert len(found) > 5 and done.returncode == 0, done.stdout


def test_a_bar_of_progress_is_gone_from_the_screen() -> None:
    drawn = b"\x1b[?25l\r\x1b[2Kreading   0%\r\x1b[2Kreading 100%\r\n\x1b[?25h\r\x1b[1A\x1b[2KOld logs\r\n"

    assert seen(b"$ anima tidy\r\n" + drawn) == "$ anima tidy\nOld logs\n"
