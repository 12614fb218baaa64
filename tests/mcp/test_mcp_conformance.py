"""The protocol's own conformance scenarios for servers, run against a home over HTTP, in both eras.

They are written for Node and come from npm, into a folder of the test's own. Where npm cannot supply them the test is
skipped, and says so. Scenarios that call test tools by name (`test_simple_text` and such), and those about logging and
subscriptions, which a home does not offer, do not apply.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from anima import Home
from mcp_doors import environment

pytestmark = pytest.mark.long

PACKAGES = ["@modelcontextprotocol/conformance@0.2.0-alpha.12", "node@22"]
HANDSHAKE = """
    server-initialize server-session-lifecycle ping completion-complete tools-list server-sse-polling
    server-sse-multiple-streams resources-list prompts-list dns-rebinding-protection
""".split()
STATELESS = """
    server-stateless completion-complete tools-list server-sse-multiple-streams resources-list sep-2164-resource-not-found
    prompts-list dns-rebinding-protection caching http-header-validation input-required-result-unsupported-methods
""".split()
APPLICABLE = [("2025-11-25", name) for name in HANDSHAKE] + [("2026-07-28", name) for name in STATELESS]
SERVER = """
import socket, sys
from contextlib import asynccontextmanager
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route
from anima import Home, Scope
from anima.mcp import Visitor, asgi_app

home = Home.open(sys.argv[1])
endpoint = asgi_app(lambda request: Visitor(home=home, scope=Scope.MAIN))  # the scenarios bring no credential

@asynccontextmanager
async def lifespan(app):
    async with endpoint.running():
        yield

listening = socket.socket(proto=socket.IPPROTO_TCP)
listening.bind(("127.0.0.1", 0))
listening.listen()
print(listening.getsockname()[1], flush=True)
app = Starlette(routes=[Route("/mcp", endpoint=endpoint)], lifespan=lifespan)
uvicorn.Server(uvicorn.Config(app, log_config=None)).run(sockets=[listening])
"""


@dataclass(frozen=True, slots=True)
class Suite:
    node: Path
    program: Path
    address: str


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """The scenarios, and a served home for them."""
    folder = tmp_path_factory.mktemp("conformance")
    installed = _installed(folder)
    Home.create(folder / "aria", name="Aria").close()
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(folder / "aria")], stdout=subprocess.PIPE, text=True, env=environment()
    )
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield Suite(*installed, f"http://127.0.0.1:{port}/mcp")
    finally:
        process.terminate()
        process.communicate()


def _installed(folder: Path) -> tuple[Path, Path]:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("NOT RUN: the conformance scenarios need npm, and there is none on this machine")
    (folder / "package.json").write_text("{}", encoding="utf-8")
    done = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", *PACKAGES],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    node = folder / "node_modules/node/bin/node"
    if done.returncode or not node.exists():
        pytest.skip(f"NOT RUN: npm could not supply the conformance scenarios: {done.stderr[-300:]}")
    return node, folder / "node_modules/.bin/conformance"


def _wrong(suite: Suite, version: str, scenario: str, folder: Path) -> list[dict[str, Any]]:
    """The checks of a scenario that failed, but for those that say they had no test tool to look at."""
    done = subprocess.run(
        [
            suite.node,
            suite.program,
            "server",
            "--url",
            suite.address,
            "--scenario",
            scenario,
            "--spec-version",
            version,
            "-o",
            folder,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    found = [check for file in folder.rglob("checks.json") for check in json.loads(file.read_text(encoding="utf-8"))]
    assert found, done.stdout + done.stderr
    failures = [check for check in found if check["status"] == "FAILURE"]
    return [check for check in failures if not str(check.get("errorMessage", "")).startswith("Not testable")]


@pytest.mark.parametrize(("version", "scenario"), APPLICABLE, ids=[f"{v}-{s}" for v, s in APPLICABLE])
def test_a_home_conforms(suite: Suite, tmp_path: Path, version: str, scenario: str) -> None:
    assert not _wrong(suite, version, scenario, tmp_path)
