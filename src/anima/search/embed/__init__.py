"""Embedders, by name: what turns texts into vectors, and which of them this home asks.

Promise: an embedder is chosen by the configuration, else by the environment, and none is imported before it is chosen.
The environment alone has keys, and one goes along only to the address it is for.
Not here: the embedders themselves (`local`, `client`; for tests `anima.testing`), and where vectors are kept.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import datetime
from importlib import import_module
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from anima.config import Config
from anima.errors import BadConfig
from anima.model import Embedder
from anima.search.embed.client import Endpoint, remote_embedder


class _Host(NamedTuple):
    """A provider: its address, the variable with its key, and its model; and the variables that name others."""

    title: str
    url: str
    key: str = ""
    url_variable: str = ""
    model: str = "text-embedding-3-small"
    model_variable: str = "EMBEDDING_MODEL"


HOSTS: Final = {
    "openai": _Host("OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "near": _Host("NEAR AI", "https://cloud-api.near.ai/v1", "NEAR_EMBEDDING_API_KEY"),
    "ollama": _Host(
        "Ollama", "http://localhost:11434", "", "OLLAMA_BASE_URL", "nomic-embed-text", "OLLAMA_EMBEDDING_MODEL"
    ),
}
# Embedders that need no settings: module and class. The mock comes along for whoever tries things out.
_PLAIN = {"static": ("anima.search.embed.local", "StaticEmbedder"), "mock": ("anima.testing.embedder", "MockEmbedder")}


def open_embedder(name: str) -> Embedder | None:
    """An embedder that needs no settings: `static`, `mock`, or None for `none`."""
    if name == "none":
        return None
    if name not in _PLAIN:
        known = "static, none, openai, ollama, near, onnx, sentence-transformers, mock"
        raise BadConfig(f"there is no embedder {name!r}; there are {known}")
    module, class_name = _PLAIN[name]
    made: Embedder = getattr(import_module(module), class_name)()
    return made


def embedder_for(
    config: Config, env: Mapping[str, str], *, clock: Callable[[], datetime], dice: random.Random
) -> Embedder | None:
    """The embedder the configuration names, or, where it names none, the environment. Raises BadConfig or MissingExtra."""
    asked, named = config.index, "" if "index.embedder" in config.sources else provider_in(env)
    name = named or asked.embedder
    if name in HOSTS:
        endpoint = endpoint_in(name, env) if named else endpoint_for(name, url=asked.url, model=asked.model, env=env)
        return remote_embedder(endpoint, clock=clock, dice=dice)
    if name in ("onnx", "sentence-transformers"):
        from anima.search.embed.local import DEFAULT_MODEL, local_embedder

        return local_embedder(asked.model or DEFAULT_MODEL, runtime=name, clock=clock, dice=dice)
    return open_embedder(name)


def provider_in(env: Mapping[str, str]) -> str:
    """The provider that EMBEDDING_PROVIDER names; "" when it names none.

    A key alone chooses nothing: memory leaves the machine only when somebody said so.
    """
    named = _variable(env, "EMBEDDING_PROVIDER").casefold()
    provider = "near" if named == "nearai" else named
    if provider not in ("", "mock", "static", "none", *HOSTS):
        hint = "openai, ollama, near, static, mock or none"
        raise BadConfig("there is no such embedding provider", where="EMBEDDING_PROVIDER", hint=hint)
    return provider


def endpoint_in(provider: str, env: Mapping[str, str]) -> Endpoint:
    """The endpoint that the environment asks for. Raises BadConfig with the variable's name."""
    host = HOSTS[provider]
    url, model = _variable(env, host.url_variable), _variable(env, host.model_variable)
    return endpoint_for(provider, url=url, model=model, env=env)


def endpoint_for(provider: str, *, url: str, model: str, env: Mapping[str, str]) -> Endpoint:
    """The endpoint at this address, or at the provider's own. The environment alone has keys, and one goes along only
    where it is for that very address. Raises BadConfig."""
    host = HOSTS[provider]
    # OpenAI's key is for OPENAI_BASE_URL where the same environment names it, else for OpenAI's own address.
    keys = {
        _origin(_variable(env, each.url_variable) or each.url): _variable(env, each.key)
        for each in HOSTS.values()
        if each.key
    }
    key = keys.get(_origin(url or host.url)) or None
    if host.key and not url and key is None:
        raise BadConfig(f"{host.title} needs a key", where=host.key)
    return Endpoint(provider=provider, url=url or host.url, model=model or host.model, api_key=key)


def _origin(url: str) -> tuple[str, str, int | None]:
    """Which server an address names; that it is one we can ask is checked elsewhere."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return "", "", None


def _variable(env: Mapping[str, str], name: str) -> str:
    return env.get(name, "").strip()
