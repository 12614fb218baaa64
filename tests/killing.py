"""A piece of work that is killed after so many of its calls to the system, for each number asked for.

What starts, imports and does the work once stays, and forks whoever is killed: only the work itself is done again.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_DIES = """
import os, signal, sys, traceback
from anima import Home
from anima.testing import Clock
CALLS = ("open", "os.rename", "os.remove", "os.link", "os.mkdir", "fcntl.flock", "os.truncate")
left = 0
def watch(event, arguments):
    global left
    if event in CALLS:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
def worked(folder, calls):
    global left
    with Home.open(folder, clock=Clock(*sys.argv[2:])) as home:
        BEFORE
        left = calls
        AT_RISK
sys.addaudithook(watch)
worked(sys.argv[1], 0)
for line in sys.stdin:
    calls, _, folder = line.rstrip("\\n").partition(" ")
    if not (child := os.fork()):
        try:
            worked(folder, int(calls))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@contextmanager
def dying(spare: Path, *day: str, before: str, at_risk: str) -> Iterator[Callable[[Path, int], int]]:
    """Does the work in a home and dies at its n-th call; gives the exit code, 0 once there are not so many calls.
    `spare` is a copy of the home in which the work is done first, to the end."""
    program = _DIES.replace("BEFORE", before).replace("AT_RISK", at_risk)
    line = [sys.executable, "-c", program, str(spare), *day]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        said, heard = process.stdin, process.stdout

        def killed(folder: Path, calls: int) -> int:
            print(calls, folder, file=said, flush=True)
            return int(heard.readline())

        yield killed
