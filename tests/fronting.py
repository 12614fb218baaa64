"""A server of many homes for tests: in this process or in one of its own, with tenants, their secrets and clients."""

from __future__ import annotations

import os
from typing import Any

from starlette.testclient import TestClient

from anima.home import now
from anima.home.folders import fleet
from anima.model import Scope
from anima.store.rows.tenants import Tenants
from anima.web.guard import KEY
from anima.web.serve import Fleetwise, fleet_app
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
