"""Models: which one answers, at which address, and with whose key.

Promise: choice and keys stand in the user's own configuration (`models.json`, 0600), never in a home, so that a home
somebody else made names no model and no address. A key belongs to one address and is sent nowhere else, whatever the
environment says of addresses; one that is found in the environment is offered and used only when the user chose its
service. Without a choice `practice` answers. Not here: what is said to a model (conversation), the practice model (practice).
"""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from anima.agent import PRACTICE
from anima.errors import BadArguments, Damaged, NotFound, Refused, refuse_newer
from anima.store.outside import written_file
from anima.text import read_table

if TYPE_CHECKING:
    from pydantic_ai.models import Model as ChatModel
    from pydantic_ai.providers import Provider

    from anima.home import Home

FORMAT = 1
OUR_HEADERS = {"User-Agent": "anima"}  # in place of those that a client would take from the environment
NO_KEY = "no-key"  # a server on this machine wants none, and a client must not take one from the environment instead

SERVICES = {kind: (url, variable) for kind, (url, variable) in read_table("agent", "services").items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """A model by its name, such as `openai:gpt-5`, and the address at which it is asked; `practice` has none."""

    name: str
    url: str = ""
    key: str = ""  # in words: where its key comes from, never the key
    used: bool = False


class Models:
    """The models of one user. Cheap to make; reads its file at each question, so that processes agree."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.file, self._env = folder / "models.json", env

    @classmethod
    def of(cls, home: Home) -> Models:
        """Those of the user whose home it is: its credentials lie in serve/NAME of the same folder."""
        return cls(home.credentials.parents[1], home.site.env)

    def choice(self, name: str | None = None) -> ModelChoice:
        """The model of that name, or the one that is used. Raises BadArguments."""
        kept = self._kept()
        name = name or kept.use
        if name == PRACTICE:
            return ModelChoice(name=PRACTICE, used=kept.use == PRACTICE)
        url = kept.models.get(name) or _service(name)[0]
        return ModelChoice(name=name, url=url, key=self._key_in_words(kept, url), used=name == kept.use)

    def all(self) -> tuple[ModelChoice, ...]:
        """Every model that was set once, and `practice`."""
        return tuple(self.choice(name) for name in (*self._kept().models, PRACTICE))

    def offers(self) -> tuple[tuple[str, str], ...]:
        """(variable, service) of keys that stand in the environment and that nobody said may be used."""
        keys = self._kept().keys
        found = {variable: kind for kind, (url, variable) in SERVICES.items() if variable and url not in keys}
        return tuple((variable, kind) for variable, kind in found.items() if self._env.get(variable))

    def _key_in_words(self, kept: _Kept, url: str) -> str:
        held = kept.keys.get(url) or {}
        if variable := held.get("env"):
            return variable if self._env.get(variable) else f"{variable}, which is not set"
        if held.get("key"):
            return "kept in your configuration"
        return "none needed" if is_local(url) else "none yet"

    def use(self, name: str, *, url: str = "", key: str = "", ask: Callable[[], str] | None = None) -> ModelChoice:
        """Uses a model from now on, with the key given, else one kept for this address, else, at the service's own address, the
        environment's, else what `ask` gives, before anything is kept. Raises BadArguments; Refused for a key in the clear."""
        kept = self._kept()
        if name != PRACTICE:
            own, variable = _service(name)
            place = url or kept.models.get(name) or own
            parts = urlsplit(place)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
                raise BadArguments(f"{place!r} is no address of a model", hint="such as http://127.0.0.1:8080/v1")
            place = kept.models[name] = place.rstrip("/")
            if key:
                kept.keys[place] = {"key": _plain(key)}
            elif place not in kept.keys and place == own and self._env.get(variable):
                kept.keys[place] = {"env": variable}
            elif ask and self._key_in_words(kept, place) == "none yet" and (typed := ask()):
                kept.keys[place] = {"key": _plain(typed)}
            if kept.keys.get(place) and parts.scheme != "https" and not is_local(place):
                raise Refused(f"{place}: a key would travel there for anybody to read", hint="use an https address")
        kept.use = name
        self._keep(kept)
        return self.choice(name)

    def forget(self, name: str) -> None:
        """Takes a model off the list, and the key of its address where no other model needs it."""
        kept = self._kept()
        if name not in kept.models:
            raise NotFound(f"{name}: no such model was set", hint="anima model lists them")
        place = kept.models.pop(name)
        if place not in kept.models.values():
            kept.keys.pop(place, None)
        if kept.use == name:
            kept.use = PRACTICE
        self._keep(kept)

    def named(self, name: str) -> ChatModel:
        """The model of that name, which the user chose once or whose service they did. Raises BadArguments."""
        return self.made(self.choice(name))

    def made(self, choice: ModelChoice) -> ChatModel:
        """The model itself, bound to its address and key. Raises BadArguments where there is no key for it."""
        if choice.name == PRACTICE:
            from anima.agent.practice import practice_model

            return practice_model()
        key, (kind, _, name) = self._key(choice), choice.name.partition(":")
        if kind == "anthropic":
            from anthropic import AsyncAnthropic
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            asked = AnthropicProvider(base_url=choice.url, api_key=key)
            _without_proxy(asked, choice.url)
            client = asked.client
            assert isinstance(client, AsyncAnthropic)
            client.auth_token, client._custom_headers = None, OUR_HEADERS
            # Without this a paragraph that is not ours would stand before the prompt.
            return AnthropicModel(name, provider=asked, profile={"supports_inline_system_prompts": True})
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        provider = OpenAIProvider(base_url=choice.url, api_key=key)
        _without_proxy(provider, choice.url)
        provider.client.organization = provider.client.project = None
        provider.client._custom_headers = OUR_HEADERS
        return (OpenAIResponsesModel if kind == "openai" else OpenAIChatModel)(name, provider=provider)

    def _key(self, choice: ModelChoice) -> str:
        held = self._kept().keys.get(choice.url) or {}
        key = self._env.get(held["env"], "") if "env" in held else held.get("key", "")
        if key or is_local(choice.url):
            return key or NO_KEY
        name, (_, variable) = choice.name, _service(choice.name)
        found = f" {variable} is set, and it is used once you say so." if self._env.get(variable) else ""
        raise BadArguments(f"there is no key for {name} at {choice.url}.{found}", hint=f"anima model {quote(name)}")

    def _kept(self) -> _Kept:
        try:
            found = json.loads(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return _Kept()
        except (OSError, ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise Damaged("your list of models (models.json) cannot be read", hint="mend it, or move it away")
        refuse_newer("your list of models", found.get("format", 0), FORMAT)
        keys = found["keys"] if isinstance(found.get("keys"), dict) else {}
        addresses = {url: _texts(held) for url, held in keys.items()}
        return _Kept(use=str(found.get("use") or PRACTICE), models=_texts(found.get("models")), keys=addresses)

    def _keep(self, kept: _Kept) -> None:
        body = {"format": FORMAT, "use": kept.use, "models": kept.models, "keys": kept.keys}
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with written_file(self.file, only_new=False) as file:
                file.write(json.dumps(body, indent=1).encode())
        except OSError as error:
            raise Damaged(f"your list of models cannot be written ({os.strerror(error.errno or 0)})") from None


@dataclass(slots=True)
class _Kept:
    """The file: which model is used, where each is asked, and the key of each address (itself, or its variable)."""

    use: str = PRACTICE
    models: dict[str, str] = field(default_factory=dict)
    keys: dict[str, dict[str, str]] = field(default_factory=dict)


def _texts(held: object) -> dict[str, str]:
    return {str(key): str(value) for key, value in held.items()} if isinstance(held, dict) else {}


def _service(name: str) -> tuple[str, str]:
    kind, colon, model = name.partition(":")
    if not colon or not model or kind not in SERVICES:
        known = ", ".join(f"{each}:NAME" for each in SERVICES)
        raise BadArguments(
            f"there is no model {name!r}; there are {PRACTICE}, {known}",
            hint="any server that speaks as OpenAI does: anima model openai-chat:NAME --url http://127.0.0.1:8080/v1",
        )
    return SERVICES[kind]


def is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _without_proxy(provider: Provider[Any], url: str) -> None:
    """A server on this machine is asked directly: a proxy of the environment's would read key and prompt on the way."""
    import httpx2
    from pydantic_ai.models import create_async_httpx2_client

    if is_local(url):

        def made() -> httpx2.AsyncClient:
            return create_async_httpx2_client(transport=httpx2.AsyncHTTPTransport())

        provider._http_client_factory, provider._own_http_client = made, made()
        provider._set_http_client(provider._own_http_client)


def _plain(key: str) -> str:
    key = key.strip()
    if not key or not (key.isascii() and key.isprintable()) or " " in key:
        raise BadArguments("this is no key: keys are letters, digits and signs without blanks")
    return key
