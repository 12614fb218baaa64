"""A terminal that a test types into: a private tmux, whose screen comes through a pipe, so that nothing waits by the clock."""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

_ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][A-Z0-9]|[=>78])")
PATIENCE = 120.0  # seconds; whoever waits longer is told what the screen showed


class Terminal:
    """One program in a terminal of 110 columns. Use it in a `with`."""

    def __init__(self, folder: Path, command: Sequence[str], env: Mapping[str, str]) -> None:
        if shutil.which("tmux") is None:
            pytest.skip("tmux is not installed: nobody can type into a chat here")
        self._socket, self._pipe, self._heard, self._at = folder / "tmux", folder / "screen", "", 0
        os.mkfifo(self._pipe)
        words = shlex.join([*(f"{name}={value}" for name, value in env.items()), *command])
        # The program waits for a line, so that nothing it shows is missed before the pipe is there.
        self._tmux("new-session", "-d", "-x", "110", "-y", "50", f"read go; exec env {words}")
        self._reader = os.open(self._pipe, os.O_RDONLY | os.O_NONBLOCK)
        self._tmux("pipe-pane", f"cat > {shlex.quote(str(self._pipe))}")
        self.type("go")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._reader)
        subprocess.run(["tmux", "-S", str(self._socket), "kill-server"], capture_output=True, check=False)

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(["tmux", "-S", str(self._socket), *words], capture_output=True, text=True, check=True)
        return done.stdout

    def type(self, line: str) -> None:
        self._tmux("send-keys", "-l", line)
        self.press("Enter")

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def sees(self, words: str) -> None:
        """Waits until these words appeared since the last ones that were waited for, however they are wrapped."""
        wanted, until = words.split(), time.monotonic() + PATIENCE
        pattern = re.compile(r"\s*".join(re.escape(letter) for letter in "".join(wanted)))
        while (found := pattern.search(self._heard, self._at)) is None:
            left = until - time.monotonic()
            ready, _, _ = select.select([self._reader], [], [], max(0.0, left))
            if not ready:
                raise AssertionError(f"{words!r} did not appear; the screen:\n{self._tmux('capture-pane', '-p')}")
            data = os.read(self._reader, 65_536)
            self._heard += _ESCAPES.sub(b"", data).decode("utf-8", "replace")
        self._at = found.end()
