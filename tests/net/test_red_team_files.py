"""What an attacker once got past us with files, archives and addresses: each item a promise, carried out on a real home.

A test marked `xfail` is an attack that still succeeds; it is strict, so the repair that ends it must take the mark off.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anima import Home
from anima.testing import Clock
from fake_embeddings import EmbeddingServer
from fake_embeddings import serving as embeddings

KEY = "sk-of-the-owner-0123456789"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home.create(tmp_path / "aria", name="Aria", clock=Clock()) as made:
        yield made


# -- Design 5: a key goes to the address it is for --------------------------------------------------------------------------


def keys_shown(folder: Path, server: EmbeddingServer, env: dict[str, str], provider: str) -> set[str | None]:
    """What a server was shown as a key when a home whose settings name it was searched."""
    settings = {"index.embedder": provider, "index.url": server.url, "index.model": "m"}
    with Home.create(folder, name="Aria", env={"ANIMA_CONFIG": str(folder.parent), **env}, settings=settings) as home:
        home.remember("Ana keeps bees")
        home.search("who keeps bees", scope="main")
    assert server.asked
    return {asked.headers.get("authorization") for asked in server.asked}


@pytest.mark.parametrize("provider", ["openai", "near", "ollama"])
def test_design_5_no_providers_key_goes_to_the_address_that_a_setting_names(tmp_path: Path, provider: str) -> None:
    env = {"OPENAI_API_KEY": KEY, "NEAR_EMBEDDING_API_KEY": KEY}
    with embeddings() as server:
        assert keys_shown(tmp_path / "aria", server, env, provider) == {None}


def test_design_5_a_key_that_the_owner_bound_to_an_address_goes_there_and_to_no_other_port(tmp_path: Path) -> None:
    with embeddings() as own, embeddings() as other:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": own.url}
        assert keys_shown(tmp_path / "one", own, env, "openai") == {f"Bearer {KEY}"}
        assert keys_shown(tmp_path / "two", other, env, "openai") == {None}
