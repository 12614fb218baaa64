"""Vectors from an OpenAI-style endpoint: OpenAI, NEAR AI, Ollama, vLLM, LM Studio, and any other `/embeddings`.

Promise: a key goes to the address it is for and nowhere else: a setting that names another one gets none, no redirect is
followed, no proxy or netrc is read, and neither key nor text stands in an error or a repr. An answer is read to a bound
and taken only when every vector in it is one.
Not here: batches, patience and prefixes (`client`), caching vectors, and what a search does when there are none.
"""

from __future__ import annotations

import hashlib
import importlib.util
import ipaddress
import json
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from anima.errors import BadConfig, MissingExtra
from anima.search.embed.client import MAX_DIMENSION, Client, Clock, Failure, Limits, prefixes_for

if TYPE_CHECKING:
    import httpx2
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

ANSWER_BYTES: Final = 16 * 1024 * 1024
_ERROR_BYTES: Final = 8_192
_LASTING: Final = {401: "the key was not accepted", 403: "the key may not do this", 404: "no such address or model"}
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_TOO_MUCH: Final = frozenset({400, 413, 422})
_CODE: Final = re.compile(r"[a-z][a-z_]{2,39}")


class _Host(NamedTuple):
    """A provider: its address and model, and the variables that name others; `key` is the variable with its key."""

    title: str
    url: str
    model: str
    url_variable: str
    model_variable: str
    key: str


HOSTS: Final = {
    "openai": _Host(
        "OpenAI",
        "https://api.openai.com/v1",
        "text-embedding-3-small",
        "OPENAI_BASE_URL",
        "EMBEDDING_MODEL",
        "OPENAI_API_KEY",
    ),
    "near": _Host(
        "NEAR AI",
        "https://cloud-api.near.ai/v1",
        "text-embedding-3-small",
        "",
        "EMBEDDING_MODEL",
        "NEAR_EMBEDDING_API_KEY",
    ),
    "ollama": _Host(
        "Ollama", "http://localhost:11434", "nomic-embed-text", "OLLAMA_BASE_URL", "OLLAMA_EMBEDDING_MODEL", ""
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where vectors come from. Checks itself; the key is in no repr.

    `url` is the base that ends in `/v1`, or the full `/embeddings` address.
    """

    provider: str = "openai"
    url: str
    model: str
    api_key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _check_url(self.url, has_key=self.api_key is not None)
        if not self.model.strip():
            raise BadConfig("an embedding model needs a name")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise BadConfig("the API key holds characters that no key has")

    @property
    def address(self) -> str:
        """The address that is asked: `/v1` is added to a bare host, `/embeddings` where it is missing."""
        base = self.url.rstrip("/")
        if not urlsplit(base).path:
            base += "/v1"
        return base if base.endswith("/embeddings") else base + "/embeddings"

    @property
    def label(self) -> str:
        """The name vectors are stored under: whatever changes a document's vector changes it."""
        name, prefix = f"{self.provider}:{self.model}", prefixes_for(self.model).document
        return f"{name}+{hashlib.sha256(prefix.encode()).hexdigest()[:8]}" if prefix else name


def provider_in(env: Mapping[str, str]) -> str:
    """The provider that EMBEDDING_PROVIDER names; "" when it names none.

    A key alone chooses nothing: memory leaves the machine only when somebody said so.
    """
    named = _variable(env, "EMBEDDING_PROVIDER").casefold()
    provider = "near" if named == "nearai" else named
    if provider not in ("", "mock", "static", "none", *HOSTS):
        raise BadConfig(
            "there is no such embedding provider",
            where="EMBEDDING_PROVIDER",
            hint="openai, ollama, near, static, mock or none",
        )
    return provider


def endpoint_in(provider: str, env: Mapping[str, str]) -> Endpoint:
    """The endpoint that the environment asks for. Raises BadConfig with the variable's name."""
    host = HOSTS[provider]
    url = _variable(env, host.url_variable)
    return endpoint_for(provider, url=url, model=_variable(env, host.model_variable), env=env)


def endpoint_for(provider: str, *, url: str, model: str, env: Mapping[str, str]) -> Endpoint:
    """The endpoint at this address, or at the provider's own. The environment alone has keys, and one goes along only
    where it is for that very address. Raises BadConfig."""
    host = HOSTS[provider]
    key = _key_for(url or host.url, env)
    if host.key and not url and key is None:
        raise BadConfig(f"{host.title} needs a key", where=host.key)
    return Endpoint(provider=provider, url=url or host.url, model=model or host.model, api_key=key)


def _key_for(url: str, env: Mapping[str, str]) -> str | None:
    """The key that is for this address, if there is one: OpenAI's is for OPENAI_BASE_URL where the same environment
    names it, else for OpenAI's own address."""
    keys = {
        _origin((host.url_variable and _variable(env, host.url_variable)) or host.url): _variable(env, host.key)
        for host in HOSTS.values()
        if host.key
    }
    return keys.get(_origin(url)) or None


def _origin(url: str) -> tuple[str, str, int | None]:
    """Which server an address names; that it is one we can ask is checked elsewhere."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return "", "", None


def _variable(env: Mapping[str, str], name: str) -> str:
    return env.get(name, "").strip()


def _check_url(url: str, *, has_key: bool) -> None:
    # The address is never repeated in a message: people put passwords into addresses.
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise BadConfig("the embedding server's address cannot be read") from None
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        raise BadConfig("the embedding server's address must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise BadConfig("the embedding server's address holds no name, password, query or fragment")
    if has_key and parts.scheme == "http" and not _is_loopback(host):
        raise BadConfig(
            "a key is not sent over plain http to another machine",
            hint="use https, a tunnel to this machine, or a server without a key",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def remote_embedder(
    endpoint: Endpoint,
    *,
    clock: Clock,
    dice: random.Random,
    sleep: Callable[[float], None] = time.sleep,
    limits: Limits | None = None,
) -> Client:
    """A client of an endpoint. Checks that the HTTP library is installed (MissingExtra) and connects to nothing."""
    if importlib.util.find_spec("httpx2") is None:
        raise MissingExtra("http", "an embedding server")
    source = _Server(endpoint, clock)
    return Client(source, prefixes_for(endpoint.model), clock=clock, dice=dice, sleep=sleep, limits=limits)


class _Server:
    """One endpoint, asked over connections that are kept open."""

    hint = "check the key, the address and the model of the embedder"
    is_remote = True

    def __init__(self, endpoint: Endpoint, clock: Clock) -> None:
        self._endpoint, self._clock = endpoint, clock
        self.provider, self.label = endpoint.provider, endpoint.label
        self._client: httpx2.Client | None = None
        self._lock = threading.Lock()

    def rows(self, texts: list[str], *, timeout: float) -> Matrix:
        asked = {"model": self._endpoint.model, "input": texts, "encoding_format": "float"}
        answer = self._post(json.dumps(asked, ensure_ascii=False).encode("utf-8"), timeout)
        return _decode(answer, count=len(texts))

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _post(self, body: bytes, timeout: float) -> bytes:
        import httpx2

        limits = httpx2.Timeout(timeout, connect=min(timeout, 10.0))
        try:
            with self._connected().stream("POST", self._endpoint.address, content=body, timeout=limits) as response:
                return self._read(response, timeout)
        except httpx2.TimeoutException:
            raise Failure("it did not answer in time", again=True, slow=True) from None
        except (httpx2.InvalidURL, UnicodeError):  # UnicodeError: a host that no name server could be asked for
            raise Failure("its address cannot be used", lasting=True) from None
        except httpx2.ConnectError:
            raise Failure("it cannot be reached", again=True) from None
        except (httpx2.HTTPError, httpx2.StreamError):
            raise Failure("its answer broke off", again=True) from None

    def _read(self, response: httpx2.Response, timeout: float) -> bytes:
        status, started = response.status_code, self._clock()
        limit = ANSWER_BYTES if status == 200 else _ERROR_BYTES
        if response.headers.get("content-encoding", "identity") != "identity":
            raise Failure("its answer is compressed, which was not asked for", lasting=True)
        body = bytearray()
        for part in response.iter_raw():
            body += part
            if len(body) > limit:
                break
            if (self._clock() - started).total_seconds() > timeout:
                raise Failure("it did not answer in time", again=True, slow=True)
        if status != 200:
            raise self._refusal(status, response.headers, bytes(body))
        if len(body) > limit:
            raise Failure("its answer is too large", lasting=True)
        return bytes(body)

    def _refusal(self, status: int, headers: httpx2.Headers, body: bytes) -> Failure:
        code = _error_code(body)
        if status in _LASTING or code == "insufficient_quota":
            return Failure(_LASTING.get(status, "the quota is used up"), lasting=True)
        why = f"it answered {status}" + (f" ({code})" if code else "")
        if status in _TOO_MUCH:
            return Failure(why, too_much=True)
        if 300 <= status < 400:
            return Failure("it redirects elsewhere, which is not followed", lasting=True)
        asked = _retry_after(headers.get("retry-after"), self._clock)
        return Failure(why, again=status in _PASSING, asked=asked if status in (429, 503) else None)

    def _connected(self) -> httpx2.Client:
        import httpx2

        headers = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json"}
        if self._endpoint.api_key is not None:
            headers["authorization"] = f"Bearer {self._endpoint.api_key}"
        is_tls = self._endpoint.address.startswith("https:")
        with self._lock:
            if self._client is None:
                # Reading the certificates costs a tenth of a second, and plain http never becomes https here.
                self._client = httpx2.Client(headers=headers, follow_redirects=False, trust_env=False, verify=is_tls)
            return self._client


def _decode(raw: bytes, *, count: int) -> Matrix:
    """The rows of an answer, in the order that was asked. Raises Failure with what is wrong with it."""
    import numpy as np

    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):  # not JSON, not UTF-8, a number of a million digits, or nested without end
        raise Failure("its answer is not JSON", again=True) from None
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise Failure("its answer holds no vectors")
    if len(items) != count:
        raise Failure(f"it gave {len(items)} vectors for {count} texts")
    rows = [_row(item.get("embedding")) for item in _ordered(items)]
    if len({row.shape for row in rows}) != 1:
        raise Failure("its vectors differ in length")
    return np.stack(rows)


def _ordered(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items by their `index`; as they stand when a server leaves it out. A wrong one leaves a hole, seen later."""
    if all("index" not in item for item in items):
        return items
    placed: list[dict[str, Any]] = [{} for _ in items]
    for item in items:
        index = item.get("index")
        if type(index) is int and 0 <= index < len(items):
            placed[index] = item
    return placed


def _row(value: object) -> Matrix:
    import numpy as np

    try:
        with np.errstate(over="ignore"):
            found = np.asarray(value if isinstance(value, list) else [])
            row = found.astype(np.float32) if found.ndim == 1 and found.dtype.kind in "fi" else np.zeros(0, np.float32)
    except (ValueError, OverflowError, TypeError):  # ragged, or too large a number
        row = np.zeros(0, np.float32)
    if not 1 <= row.size <= MAX_DIMENSION or not np.isfinite(row).all():
        raise Failure("its answer holds something that is not a vector of numbers")
    return row


def _error_code(body: bytes) -> str | None:
    """The provider's own word for what is wrong, if it is one of ours in shape. Its sentences may quote our text."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    error = answer.get("error") if isinstance(answer, dict) else None
    words = (error.get("code"), error.get("type")) if isinstance(error, dict) else ()
    return next((word for word in words if isinstance(word, str) and _CODE.fullmatch(word)), None)


def _retry_after(value: str | None, clock: Clock) -> float | None:
    """Seconds, from a number or a date. Nonsense counts as nothing said."""
    if value is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", value.strip(), re.ASCII):
        return float(value)
    try:
        when = parsedate_to_datetime(value)
        return max(0.0, (when - clock()).total_seconds())
    except (ValueError, TypeError, OverflowError, IndexError):  # TypeError: a date without a zone
        return None
