"""Embedders, by name: what turns texts into vectors.

Promise: an embedder is chosen by the configuration, else by the environment, and none is imported before it is chosen.
Not here: the embedders themselves (`static`, `remote`, `local`; for tests `anima.testing`), and where vectors are kept
(`index`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import datetime
from importlib import import_module

from anima.config import Config
from anima.errors import BadConfig
from anima.model import Embedder

# Embedders that need no settings: module and class. The mock comes along for whoever tries things out.
_PLAIN = {"static": ("anima.search.embed.static", "StaticEmbedder"), "mock": ("anima.testing.embedder", "MockEmbedder")}


def open_embedder(name: str) -> Embedder | None:
    """An embedder that needs no settings: `static`, `mock`, or None for `none`."""
    if name == "none":
        return None
    if name not in _PLAIN:
        raise BadConfig(
            f"there is no embedder {name!r}; there are static, none, openai, ollama, near, onnx, "
            "sentence-transformers, mock"
        )
    module, class_name = _PLAIN[name]
    made: Embedder = getattr(import_module(module), class_name)()
    return made


def embedder_for(
    config: Config, env: Mapping[str, str], *, clock: Callable[[], datetime], dice: random.Random
) -> Embedder | None:
    """The embedder the configuration names, or, where it names none, the environment. Raises BadConfig or MissingExtra."""
    from anima.search.embed.remote import HOSTS, endpoint_for, endpoint_in, provider_in, remote_embedder

    asked = config.index
    provider = "" if "index.embedder" in config.sources else provider_in(env)
    if provider in HOSTS:
        return remote_embedder(endpoint_in(provider, env), clock=clock, dice=dice)
    if provider:
        return open_embedder(provider)
    if asked.embedder in HOSTS:
        endpoint = endpoint_for(asked.embedder, url=asked.url, model=asked.model, env=env)
        return remote_embedder(endpoint, clock=clock, dice=dice)
    if asked.embedder in ("onnx", "sentence-transformers"):
        from anima.search.embed.local import DEFAULT_MODEL, local_embedder

        return local_embedder(asked.model or DEFAULT_MODEL, runtime=asked.embedder, clock=clock, dice=dice)
    return open_embedder(asked.embedder)
