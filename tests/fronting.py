"""A server of many homes for tests: in this process or in one of its own, with tenants, their secrets and clients."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TextIO

from starlette.testclient import TestClient

from anima.home import now
from anima.home.folders import fleet
from anima.model import Scope
from anima.store.rows.tenants import Tenants
from anima.web.guard import KEY
from anima.web.homes import Fleetwise
from anima.web.serve import fleet_app
from anima.web.tokens import digest_of, new_pass, new_secret
from conftest import Cluster

BASE = "http://127.0.0.1:4747"


class Front:
    """A server of many homes, tenants with their secrets, and clients of each kind."""

    def __init__(self, cluster: Cluster, **how: Any) -> None:
        self.cluster, self.tenants = cluster, Tenants(cluster.owner)
        from anima.cli.serve import _guest

        self.mcp = _guest(stateless=True)
        self.app = fleet_app(fleet(cluster.application), os.environ, Fleetwise(**how), mcp=self.mcp)

    def client(self, **headers: str) -> TestClient:
        return TestClient(self.app, base_url=BASE, headers=headers, follow_redirects=False)

    def token(self, tenant: str, kind: Any = "owner", **about: Any) -> tuple[str, str]:
        scope = Scope.MAIN if kind == "agent" else None
        made = new_pass(kind, name="x", now=now(), **{"scope": scope, "agent": "main", **about})
        secret = new_secret(made)
        row = {name: getattr(made, name) for name in "id agent kind name sender access expires".split()}
        row["scope"] = made.scope and made.scope.value
        self.tenants.add_token(tenant, row, bytes.fromhex(digest_of(secret)))
        return made.id, secret

    def owner(self, tenant: str) -> TestClient:
        return self.client(Authorization=f"Bearer {self.token(tenant)[1]}")

    def page(self, secret: str) -> TestClient:
        client = self.client(Origin=BASE)
        client.headers[KEY] = client.post("/login", data={"code": secret}).json()["key"]
        return client


# -- in a process of its own -----------------------------------------------------------------------------------------------


def bare(asked: Callable[[str], str]) -> Callable[[str], str]:
    """What is asked of the database without the application's own conditions, so that row policies alone hold. Only the index
    of documents and that of transcripts, which has the negative number of the home, stay apart: no answer would come else."""
    own = r"(?:\w+\.)?tenant = %\(tenant\)s(?P<home> and (?P<of>(?:\w+\.)?home) = %\(home\)s)?"

    def left(found: re.Match[str]) -> str:
        return f"({found['of']} > 0) = (%(home)s > 0)" if found["home"] else "true"

    return lambda statement: re.sub(own, left, asked(statement))


_BARE = """
import fronting
from anima.store.rows import transaction
transaction._told = fronting.bare(transaction._told)
"""
_SERVE = "import sys; from anima.cli import run; sys.exit(run(sys.argv[1:]))"


@contextmanager
def served(address: str, log: Path, *, without_conditions: bool = False) -> Iterator[str]:
    """Where a server answers that has a process of its own and logs into a file; it ends with this."""
    program, env = (
        (_BARE if without_conditions else "") + _SERVE,
        {**os.environ, "PYTHONPATH": os.fspath(Path(__file__).parent)},
    )
    with (
        open(log, "ab") as out,
        subprocess.Popen(
            [sys.executable, "-c", program, *_words(address)], stdout=subprocess.PIPE, stderr=out, env=env, text=True
        ) as server,
    ):
        try:
            assert server.stdout
            yield url_of(server.stdout)
        finally:
            server.terminate()
            try:
                server.wait(300)  # each conversation that is open is flushed
            finally:
                server.kill()


def _words(address: str) -> list[str]:
    return ["serve", "--database", address, "--port", "0", "--drain", "0", "--log-json", "--json"]


def url_of(told: TextIO) -> str:
    """Where a server answers, once it says so; empty where it ended before."""
    said = "".join(iter(told.readline, "}\n"))
    return str(json.loads(said + "}")["url"]) if said else ""


class Started:
    """A server that is a fork of a process which has everything loaded: it answers within a moment, and may be killed."""

    def __init__(self, address: str, log: Path) -> None:
        forks = multiprocessing.get_context("forkserver")
        forks.set_forkserver_preload(["anima.cli.serve", "anima.web.serve", "anima.mcp", "psycopg_pool", __name__])
        told, tell = forks.Pipe(duplex=False)
        self.process = forks.Process(target=_serve, args=(address, os.fspath(log), tell))
        self.process.start()
        tell.close()
        with open(told.fileno(), closefd=False) as said:
            self.url = url_of(said)
        told.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


def _serve(address: str, log: str, tell: Connection) -> None:
    from anima.cli import run

    os.dup2(tell.fileno(), 1)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    tell.close()
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
    sys.exit(run(_words(address)))


def made_up(schema: Any, canary: str) -> dict[str, Any]:
    """Arguments that fit a tool's description."""
    words = {"string": f"{canary}.md", "integer": 3, "number": 3, "boolean": False, "array": [canary], "object": {}}
    asked = schema.get("properties", {})
    kinds = {name: each.get("type", "string") for name, each in asked.items()}
    given = {name: words[kind if isinstance(kind, str) else kind[0]] for name, kind in kinds.items()}
    return given | {name: each["enum"][0] for name, each in asked.items() if each.get("enum")}
