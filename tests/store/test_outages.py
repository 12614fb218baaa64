"""A server that goes away, at any statement and in any way, loses nothing that was acknowledged, leaves nothing half written
and writes nothing twice; so do writers that are killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from anima import Home, Scope
from anima.errors import HomeBusy, HomeError
from anima.testing import postgres
from conftest import Cluster
from fronting import Front, Started

psycopg = pytest.importorskip("psycopg")
SECONDS = int(os.environ.get("OUTAGE_SECONDS", "60"))  # how long writers are killed, one a second


class Axe:
    """Ends the backend of a connection when it is about to do its n-th statement, or right after; waits until it is gone."""

    def __init__(self, owner: str, at: int, *, after: bool, wait: int = 600_000) -> None:
        self.owner, self.at, self.after, self.count, self.wait = owner, at, after, 0, wait

    def __call__(self, statement: Callable[..., Any]) -> Callable[..., Any]:
        def struck(cursor: Any, *given: Any, **more: Any) -> Any:
            self.count += 1
            is_now = self.count == self.at
            pid = cursor.connection.info.backend_pid if is_now else 0
            if is_now and not self.after:
                self.strike(pid)
            answer = statement(cursor, *given, **more)
            if is_now and self.after:
                self.strike(pid)
            return answer

        return struck

    def strike(self, pid: int) -> None:
        with psycopg.connect(self.owner, autocommit=True) as db:
            db.pgconn.exec_(f"select pg_terminate_backend({pid}, {self.wait})".encode())


@pytest.fixture
def home(cluster: Cluster, sealed: str) -> Iterator[Home]:
    with Home.create(cluster.application, tenant=cluster.new_tenant(), name="Aria") as made:
        made.write("a.md", "- zero\n")
        yield made


def beneath(axe: Axe, monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> bool:
    """Whether a change was acknowledged that was made while the axe hung over it."""
    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", axe(psycopg.Cursor.execute))
        patch.setattr(psycopg.Cursor, "executemany", axe(psycopg.Cursor.executemany))
        try:
            change()
        except HomeError:
            return False
    return True


@pytest.mark.parametrize("after", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_backend_that_dies_at_any_statement_of_a_change_leaves_it_done_once(
    cluster: Cluster, home: Home, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    axe = Axe(cluster.owner, 0, after=False)
    assert beneath(axe, monkeypatch, lambda: home.write("a.md", "- one\n")) and axe.count > 10
    for at in range(1, axe.count + 1):
        before, text = home.site.store.ledger.tip.n, f"- {at}{'+' * after}\n"
        strike = Axe(cluster.owner, at, after=after)
        assert beneath(strike, monkeypatch, lambda text=text: home.write("a.md", text))  # type: ignore[misc]
        with anew(home, cluster.application) as again:
            assert again.read("a.md").text == text
            records = list(again.site.store.ledger.records(before))
            assert [record.kind for record in records] == ["intent", "done"], at
            assert again.past.audit().ok and not again.past.history_problems()


@pytest.mark.parametrize("after", [False, True])
def test_a_line_of_a_log_whose_backend_dies_at_any_statement_stands_once(
    cluster: Cluster, home: Home, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    log = home.site.store.logs("sessions").create("talk")
    axe = Axe(cluster.owner, 0, after=False)
    assert beneath(axe, monkeypatch, lambda: log.append(b"first\n", sync=True)) and axe.count > 3
    for at in range(1, axe.count + 1):
        strike = Axe(cluster.owner, at, after=after)
        assert beneath(strike, monkeypatch, lambda at=at: log.append(b"line %d.\n" % at, sync=True))  # type: ignore[misc]
    wanted = [b"first", *(b"line %d." % at for at in range(1, axe.count + 1))]
    assert log.read(0, log.size()).splitlines() == wanted


def test_a_backend_that_tells_its_end_before_its_connection_is_closed_loses_no_line(
    cluster: Cluster, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last words are read first, and that there is nothing more only later: nobody waits for it here."""
    log = home.site.store.logs("sessions").create("talk")
    lines = [b"line %d." % n for n in range(40)]
    for n, line in enumerate(lines):
        strike = Axe(cluster.owner, 1 + n % 4, after=bool(n & 4), wait=0)
        assert beneath(strike, monkeypatch, lambda line=line: log.append(line + b"\n", sync=True)), n  # type: ignore[misc]
    assert log.read(0, log.size()).splitlines() == lines


def text_of(home: Home) -> str:
    return "".join(home.read(entry.path).text for entry in home.list_all() if entry.path.endswith(".md"))


def say(home: Home, n: int) -> None:
    with home.resume(home.sessions.list()[0].id) as session:
        session.log("user", f"said {n}.")


def said(home: Home, n: int) -> int:
    entries = home.sessions.read(home.sessions.list()[0].id, limit=10_000).entries
    return sum(entry.content == f"said {n}." for entry in entries)


def propose(home: Home, n: int) -> None:
    with home.resume(home.sessions.list()[0].id) as session:
        session.call("memory_write", {"target": "soul", "content": f"# Soul {n}.\n"})


def moved(home: Home, n: int) -> int:
    both = home.exists(f"moved/{n}.md"), home.exists("b.md")
    return {(True, False): 1, (False, True): 0}.get(both, 2)


# Each verb, and how often it stands afterwards: not at all or once.
VERBS: dict[str, tuple[Callable[[Home, int], object], Callable[[Home, int], int]]] = {
    "append": (lambda home, n: home.append("a.md", f"- add {n}.\n"), lambda home, n: text_of(home).count(f"add {n}.")),
    "edit": (
        lambda home, n: home.edit("a.md", "- zero\n", f"- zero\n- edit {n}.\n"),
        lambda home, n: text_of(home).count(f"edit {n}."),
    ),
    "new": (lambda home, n: home.write(f"new/{n}.md", "- x\n"), lambda home, n: int(home.exists(f"new/{n}.md"))),
    "move": (lambda home, n: home.move("b.md", f"moved/{n}.md"), moved),
    "delete": (lambda home, n: home.delete("b.md"), lambda home, n: int(not home.exists("b.md"))),
    "remember": (
        lambda home, n: home.remember(f"Ana has {n} hens."),
        lambda home, n: text_of(home).count(f"Ana has {n} hens."),
    ),
    "undo": (lambda home, n: home.undo(), lambda home, n: 1 - text_of(home).count(f"word{n}.")),
    "propose": (propose, lambda home, n: sum(f"Soul {n}." in repr(each) for each in home.inbox.all())),
    "say": (say, said),
    "forget": (
        lambda home, n: home.forget(text=f"word{n}.", purge=True),
        lambda home, n: int(f"word{n}." not in text_of(home)),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("verb", VERBS)
def test_a_backend_that_dies_at_any_statement_of_any_verb_leaves_all_of_it_or_nothing(
    cluster: Cluster, home: Home, monkeypatch: pytest.MonkeyPatch, verb: str, after: bool
) -> None:
    do, stands = VERBS[verb]
    with home.session(scope=Scope.MAIN) as session:
        session.log("user", "hello")
    count = at = 0
    while at <= count:  # of verbs with very many statements some forty, spread over all of them
        if not home.exists("b.md"):
            home.write("b.md", "- bee\n")
        home.append("a.md", f"- word{at}.\n")
        axe = Axe(cluster.owner, at, after=after)
        is_done = beneath(axe, monkeypatch, lambda at=at: do(home, at))  # type: ignore[misc]
        with anew(home, cluster.application) as again:
            assert stands(again, at) in ((1,) if is_done else (0, 1)), at
            check_whole(again)
        count = count or axe.count
        at += 1 + count // 40 * (at > 0)
    assert count > 5


def check_whole(home: Home) -> None:
    """The chain and history are whole, and no change is half done or there twice."""
    assert home.past.audit().ok and not home.past.history_problems()
    ids: dict[str, list[str]] = {"intent": [], "done": []}
    for record in home.site.store.ledger.records():
        if record.kind in ids:
            ids[record.kind].append(str(record.fields["id"]))
    assert sorted(ids["intent"]) == sorted(ids["done"]) and len(set(ids["done"])) == len(ids["done"])


# -- whole servers, and whole writers ----------------------------------------------------------------------------------------


@contextmanager
def own_server() -> Iterator[tuple[Path, str]]:
    """A server nobody else uses: its folder, and the address for its owner."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        yield folder, postgres.server(folder)
    finally:
        postgres.stop(folder)
        shutil.rmtree(folder, ignore_errors=True)


class Writers:
    """Threads that add lines to one home and remember which were acknowledged."""

    def __init__(self, address: str, tenant: str, count: int = 4) -> None:
        self.address, self.tenant, self.stop = address, tenant, threading.Event()
        self.kept: list[list[str]] = [[] for _ in range(count)]
        self.tried, self.failed = Counter[str](), list[BaseException]()
        self.threads = [threading.Thread(target=self._work, args=(n,)) for n in range(count)]

    def _work(self, worker: int) -> None:
        try:
            with Home.open(self.address, tenant=self.tenant) as home:
                for n in range(1_000_000):
                    if self.stop.is_set():
                        return
                    line = f"- {worker}:{n}\n"
                    self.tried[line] += 1
                    try:
                        home.append("log.md", line)
                    except HomeError:
                        continue  # not acknowledged; it may stand, once
                    self.kept[worker].append(line)
        except BaseException as error:
            self.failed.append(error)

    def wait_for(self, more: int) -> None:
        """Until every writer was acknowledged so many times again."""
        wanted = [len(kept) + more for kept in self.kept]
        while any(len(kept) < least for kept, least in zip(self.kept, wanted, strict=True)):
            assert not self.failed, self.failed
            time.sleep(0.01)

    def check(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()
        assert not self.failed, self.failed
        with Home.open(self.address, tenant=self.tenant) as home:
            check_log(home.read("log.md").text, [line for kept in self.kept for line in kept], set(self.tried))
            check_whole(home)


def check_log(text: str, kept: list[str], tried: set[str]) -> None:
    """Every line that was acknowledged stands, in each writer's order; none stands twice, and none nobody wrote."""
    lines = text.splitlines(keepends=True)
    assert max(Counter(lines).values()) == 1 and set(lines) <= tried
    assert set(kept) <= set(lines)
    for worker in {line.partition(":")[0] for line in lines}:
        own = [int(line.partition(":")[2]) for line in lines if line.partition(":")[0] == worker]
        assert own == sorted(own)


@pytest.mark.long
def test_a_server_that_is_killed_while_it_writes_has_everything_it_acknowledged(sealed: str) -> None:
    with own_server() as (folder, owner):
        address, tenant = postgres.prepare(owner), postgres.new_tenant(owner)
        Home.create(address, tenant=tenant, name="Aria").close()
        writers = Writers(address, tenant)
        for thread in writers.threads:
            thread.start()
        for _ in range(3):
            writers.wait_for(5)
            postgres.crash(folder)
            postgres.start(folder)
        writers.wait_for(5)
        writers.check()


@pytest.mark.long
def test_a_standby_that_takes_over_has_everything_that_was_acknowledged(sealed: str) -> None:
    with own_server() as (first, owner):
        second = Path(tempfile.mkdtemp(prefix="pg-"))
        try:
            address, tenant = postgres.prepare(owner), postgres.new_tenant(owner)
            Home.create(address, tenant=tenant, name="Aria").close()
            follow(first, second, owner)
            both = address.replace(str(first / "socket"), f"{first / 'socket'},{second / 'socket'}")
            writers = Writers(f"{both}&target_session_attrs=read-write", tenant)
            for thread in writers.threads:
                thread.start()
            writers.wait_for(10)
            postgres.crash(first)
            with psycopg.connect(postgres.server(second), autocommit=True) as db:
                db.execute("select pg_promote()")
            writers.wait_for(10)
            writers.check()
        finally:
            postgres.stop(second)
            shutil.rmtree(second, ignore_errors=True)


def follow(first: Path, second: Path, owner: str) -> None:
    """A synchronous standby of the first server, in another folder."""
    postgres._run("pg_basebackup", "-D", second / "data", "-d", owner, "-R", "-X", "stream", "-c", "fast", "--no-sync")
    with psycopg.connect(owner, autocommit=True) as db:
        postgres.start(second)
        db.execute("alter system set synchronous_standby_names = '*'")  # the copy was made before, and waits for nobody
        db.execute("select pg_reload_conf()")
        while not db.execute("select 1 from pg_stat_replication where sync_state = 'sync'").fetchone():
            time.sleep(0.05)


@pytest.mark.long
def test_a_pool_that_is_exhausted_says_so_and_serves_again(
    cluster: Cluster, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine: Any = home.site.store.rows.engine  # type: ignore[attr-defined]
    monkeypatch.setattr(engine.pool, "timeout", 0.5)
    held = [engine.pool.getconn() for _ in range(engine.pool.max_size)]
    try:
        for ask in (lambda: home.read("a.md"), lambda: home.write("a.md", "- no\n"), lambda: home.list_all()):
            with pytest.raises(HomeBusy, match="in use"):
                ask()
    finally:
        for db in held:
            engine.pool.putconn(db)
    assert home.read("a.md").text == "- zero\n"
    monkeypatch.setattr(engine.pool, "timeout", 30.0)
    writers = Writers(cluster.application, home.name.rpartition(" ")[2].partition("/")[0], 3 * engine.pool.max_size)
    for thread in writers.threads:
        thread.start()
    writers.wait_for(1)
    writers.check()
    assert engine.pool.get_stats()["pool_available"] == engine.pool.get_stats()["pool_size"]


WRITER = """
import sys
from anima import Home
with Home.open(sys.argv[1], tenant=sys.argv[2]) as home:
    n = 0
    while True:
        n += 1
        line = f"- {sys.argv[3]}:{n}\\n"
        print(f"try {line}", end="", flush=True)
        if home.append("log.md", line).status == "written":
            print(f"has {line}", end="", flush=True)
"""


@pytest.mark.long
def test_writers_of_which_one_is_killed_every_second_lose_nothing_and_write_nothing_twice(
    cluster: Cluster, sealed: str, tmp_path: Path
) -> None:
    tenant, dice, tries, has = cluster.new_tenant(), random.Random(7), set[str](), list[str]()
    Home.create(cluster.application, tenant=tenant, name="Aria").close()
    number = iter(range(1_000_000))

    def start() -> tuple[subprocess.Popen[bytes], Path]:
        told = tmp_path / f"{next(number)}.txt"
        with open(told, "wb") as out:
            words = (sys.executable, "-c", WRITER, cluster.application, tenant, told.stem)
            return subprocess.Popen(words, stdout=out), told

    running = [start() for _ in range(4)]
    every = [told for _, told in running]
    until = time.monotonic() + SECONDS
    while time.monotonic() < until or len(every) < 8:
        time.sleep(1.0)
        ready = [n for n, (_, told) in enumerate(running) if told.stat().st_size]  # one that wrote something
        if ready:
            at = dice.choice(ready)
            running[at][0].send_signal(signal.SIGKILL)
            running[at][0].wait()
            running[at] = start()
            every.append(running[at][1])
    for process, _ in running:
        process.kill()
        process.wait()
    for told in every:
        for line in told.read_text().splitlines(keepends=True):
            tries.add(line[4:]) if line.startswith("try") else has.append(line[4:])
    with Home.open(cluster.application, tenant=tenant) as home:
        check_log(home.read("log.md").text, has, tries)
        check_whole(home)
    print(json.dumps({"killed": len(every) - 4, "acknowledged": len(has), "tried": len(tries)}))


class Servers:
    """Four servers, each in a process of its own; one that was killed is started again while the others go on."""

    def __init__(self, address: str, log: Path) -> None:
        self._address, self._log, self.killed = address, log, 0
        self.running = [Started(address, log) for _ in range(4)]
        self._starting = dict[int, threading.Thread]()

    def kill_one(self, dice: random.Random) -> None:
        """Kills one that answers, if another does, too."""
        ready = [n for n in range(4) if n not in self._starting or not self._starting[n].is_alive()]
        if len(ready) < 2:
            return
        self.running[at := dice.choice(ready)].kill()
        self.killed += 1
        self._starting[at] = threading.Thread(target=self._start, args=(at,))
        self._starting[at].start()

    def _start(self, at: int) -> None:
        self.running[at] = Started(self._address, self._log)

    def end(self) -> None:
        for thread in self._starting.values():
            thread.join()
        for server in self.running:
            server.kill()


class Client:
    """Somebody who adds lines to a document of their own through whichever server answers. What was written is bound to what
    was read (If-Match), so an answer that was lost may be asked for again: it stands, or is written now, and never twice."""

    def __init__(self, servers: Servers, secret: str, name: str, over: threading.Event) -> None:
        self._servers, self._path, self._over = servers, f"/api/v1/files/{name}.md", over
        self.kept, self.again, self.answered, self.failed = list[str](), 0, set[str](), list[BaseException]()
        self._headers, self._dice = {"Authorization": f"Bearer {secret}"}, random.Random(name)
        self.thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        try:
            for n in range(1_000_000):
                if self._over.is_set():
                    return
                line = f"- {n}\n"
                while not self._stands(line):
                    self.again += 1
                self.kept.append(line)
        except BaseException as error:
            self.failed.append(error)

    def _stands(self, line: str) -> bool:
        """Whether a line is there: it was read, or its write acknowledged."""
        url = self._dice.choice(self._servers.running).url
        try:
            with httpx.Client(base_url=url, headers=self._headers, timeout=60) as client:
                found = client.get(self._path)
                if found.status_code not in (200, 404):
                    return False
                text = found.json()["text"] if found.status_code == 200 else ""
                if line in text.splitlines(keepends=True):
                    return True
                base = {"If-Match": found.headers["ETag"]} if text else {"If-None-Match": "*"}
                self.answered.add(url)
                return bool(client.put(self._path, json={"text": text + line}, headers=base).status_code == 200)
        except httpx.HTTPError:
            return False  # it was killed, or is not there yet


@pytest.mark.long
def test_servers_of_which_one_is_killed_every_second_lose_nothing_and_write_nothing_twice(
    cluster: Cluster, sealed: str, tmp_path: Path
) -> None:
    front, tenant, dice, over = Front(cluster), cluster.new_tenant(), random.Random(7), threading.Event()
    secret = front.token(tenant)[1]
    front.app.state.homes.stop()
    servers = Servers(cluster.application, tmp_path / "log")
    clients = [Client(servers, secret, f"log{n}", over) for n in range(4)]
    try:
        for client in clients:
            client.thread.start()
        until = time.monotonic() + SECONDS
        while time.monotonic() < until or servers.killed < 4:
            time.sleep(1.0)
            servers.kill_one(dice)
            assert not any(client.failed for client in clients), [client.failed for client in clients]
    finally:
        over.set()
        for client in clients:
            client.thread.join()
        servers.end()
    with Home.open(cluster.application, tenant=tenant) as home:
        for n, client in enumerate(clients):
            assert home.read(f"log{n}.md").text == "".join(client.kept) and client.kept
        check_whole(home)
        wrote = [change for change in home.past.changes(limit=1_000_000) if change.what == "write"]
        own = [path for change in wrote for path in change.paths if str(path).startswith("log")]
        assert len(own) == sum(
            len(client.kept) for client in clients
        )  # no line was written twice, not even to be taken back
    told = {"killed": servers.killed, "acknowledged": len(own), "asked again": sum(client.again for client in clients)}
    print(json.dumps(told | {"servers that answered": len(set().union(*(client.answered for client in clients)))}))


SCRATCH = """
from anima.store.rows.store import Scratch
made = Scratch()
print(made.folder, flush=True)
input()
"""


def test_what_a_killed_process_left_of_conversations_goes_with_the_next_and_no_others_does(tmp_path: Path) -> None:
    def start() -> tuple[subprocess.Popen[str], Path]:
        env, pipe = {**os.environ, "TMPDIR": str(tmp_path)}, subprocess.PIPE
        made = subprocess.Popen([sys.executable, "-c", SCRATCH], stdin=pipe, stdout=pipe, text=True, env=env)
        assert made.stdout
        return made, Path(made.stdout.readline().strip())

    (killed, left), (living, own) = start(), start()
    assert left.is_dir() and own.is_dir()
    killed.kill()
    killed.communicate()
    assert left.is_dir()
    later, _ = start()
    assert not left.exists() and own.is_dir()
    for each in (living, later):
        each.communicate("\n")
    assert not list(tmp_path.iterdir())


def anew(home: Home, address: str) -> Home:
    """The same home as somebody else opens it."""
    return Home.open(address, tenant=home.name.rpartition(" ")[2].partition("/")[0])
