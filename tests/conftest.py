"""What all tests share: a user's configuration of their own, a clock that stands still, and copies of example homes."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, settings

if TYPE_CHECKING:
    from fronting import Front
    from serving import Desk

HOMES = Path(__file__).parent / "homes"
NOW = datetime(
    2026, 5, 8, 19, 30, tzinfo=UTC
)  # 14:30 on a Friday in Bogota, where the people of the example homes live

# The same examples in every run, so that a red test stays red; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("steady", deadline=None, derandomize=True, database=None, max_examples=40)
settings.register_profile(
    "quick", deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
)
settings.register_profile("explore", deadline=None, max_examples=2_000, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


# A runner that started us in the background has us ignore Ctrl-C, and so would every program the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Homes of tests stand in memory where there is room: nothing they prove hangs on the disk, and it is the slowest
    part of a busy machine. What proves itself against a real disk asks for one (benchmarks/faults.py, powercut.py)."""
    gc.disable()  # nothing that is imported or collected is garbage; see pytest_collection_finish
    memory = Path("/dev/shm")
    in_memory = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**32
    if in_memory:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = str(HOMES)  # no authority is there: hundreds of clients would read all of a machine's
    if SERVER not in os.environ:  # whoever runs beside us, started by us, finds it there
        os.environ[SERVER] = tempfile.mkdtemp(prefix="pg-", dir=memory if in_memory else None)
        config.add_cleanup(stop_server)


SERVER = "TEST_POSTGRES_FOLDER"


def stop_server() -> None:
    from anima.testing.postgres import stop

    folder = os.environ.pop(SERVER)
    stop(folder)
    shutil.rmtree(folder, ignore_errors=True)


# Files whose tests wait for a browser, for programs that are started or for kills: whoever runs files side by side begins
# with these, so that none of them is left for the end.
SLOW = (
    "test_browser",
    "test_faults",
    "test_mcp",
    "test_damages",
    "test_mending",
    "test_web",
    "test_api",
    "test_privacy",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.path.name.startswith(SLOW))


def pytest_collection_finish() -> None:
    """What stands after ten thousand tests were collected stays to the end: nobody need look through it for garbage."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def nobodys_configuration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What several tests share is made before `own_configuration`, and must not find the user's list of homes either."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANIMA_CONFIG", str(tmp_path_factory.mktemp("nobody")))
        yield


@pytest.fixture(scope="session")
def configurations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the configurations of tests lie: beside their own folders each would be counted whenever one is made."""
    return tmp_path_factory.mktemp("configurations")


@pytest.fixture(autouse=True)
def own_configuration(configurations: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test sees or changes the configuration, the variables or the timezone of whoever runs it."""
    for name in [name for name in os.environ if name.startswith("ANIMA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ANIMA_CONFIG", tempfile.mkdtemp(dir=configurations))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def clock() -> Callable[[], datetime]:
    """A clock that stands at 2026-05-08 19:30 UTC."""
    return lambda: NOW


@pytest.fixture
def example(tmp_path: Path) -> Callable[[str], Path]:
    """Copies the example home of a dialect to where a test may change it."""

    def copy(dialect: str) -> Path:
        there = tmp_path / dialect
        shutil.copytree(HOMES / dialect, there)
        return there

    return copy


@dataclass(frozen=True)
class Cluster:
    """A PostgreSQL server of this test session: the address for its superuser, and for the application's role."""

    owner: str
    application: str

    def new_tenant(self) -> str:
        from anima.testing.postgres import new_tenant

        return new_tenant(self.owner)


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """One server for all tests: the one ANIMA_TEST_DATABASE_URL names for its superuser, else one of our own."""
    from anima.errors import MissingExtra
    from anima.testing import postgres

    pytest.importorskip("psycopg")
    try:
        owner = os.environ.get("ANIMA_TEST_DATABASE_URL") or postgres.server(os.environ[SERVER])
    except MissingExtra as error:
        pytest.skip(f"there is no PostgreSQL server: {error}")
    return Cluster(owner, postgres.prepare(owner))


@pytest.fixture
def sealed(monkeypatch: pytest.MonkeyPatch) -> str:
    """The key that seals the keys of homes."""
    monkeypatch.setenv("ANIMA_KEY", "0123456789abcdef" * 4)
    return os.environ["ANIMA_KEY"]


@pytest.fixture
def front(cluster: Cluster, sealed: str) -> Iterator[Front]:
    """A running server of many homes, in this process."""
    from starlette.testclient import TestClient

    from fronting import BASE, Front

    made = Front(cluster)
    with TestClient(made.app, base_url=BASE):
        yield made


@pytest.fixture(autouse=True)
def stores(request: pytest.FixtureRequest, own_configuration: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """With STORE=postgres homes that a test makes in folders stand in a database instead (`databased`)."""
    if os.environ.get("STORE") == "postgres":
        from databased import move_in

        move_in(request, monkeypatch)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if os.environ.get("STORE") == "postgres" and os.environ.get("FOLDERS") == "run":
        from databased import stays_listed

        stays_listed(item, report)
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if os.environ.get("STORE") == "postgres":
        from databased import SKIPPED

        for why, count in sorted(SKIPPED.items()):
            terminalreporter.write_line(f"{count:>5} only in folders: {why}")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A home with a server in front of it, and clients to ask it."""
    from serving import desk_in

    made = desk_in(tmp_path)
    yield made
    made.app.state.served.close()
    made.home.close()


@pytest.fixture
def bouncer(cluster: Cluster) -> Iterator[str]:
    """The application's address through pgbouncer in transaction mode, with fewer connections than there are workers."""
    import psycopg

    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        pytest.skip("NOT PROVEN: there is no pgbouncer here (Debian: apt-get install pgbouncer)")
    place = Path(tempfile.mkdtemp(prefix="pb-"))
    socket = psycopg.conninfo.conninfo_to_dict(cluster.owner)["host"]
    (place / "users").write_text('"anima_app" ""\n')
    (place / "ini").write_text(
        f"[databases]\n* = host={socket}\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\nunix_socket_dir = {place}\n"
        f"auth_type = trust\nauth_file = {place}/users\npool_mode = transaction\ndefault_pool_size = 6\n"
        f"logfile = {place}/log\nmax_client_conn = 200\n"
    )
    nobody = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--") if os.geteuid() == 0 else ()
    running = subprocess.Popen([*nobody, found, "-q", str(place / "ini")])
    address = f"postgresql://anima_app@/postgres?host={place}&port=6432"
    try:
        while True:
            assert running.poll() is None, (place / "log").read_text()
            try:
                psycopg.connect(address).close()
                break
            except psycopg.OperationalError:
                continue
        yield address
    finally:
        running.kill()
        running.wait()
        shutil.rmtree(place, ignore_errors=True)
