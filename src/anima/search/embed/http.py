"""Vectors from an OpenAI-style endpoint: OpenAI, NEAR AI, Ollama, vLLM, LM Studio, and any other `/embeddings`.

Promise: rows come back in the order of the texts, L2-normalised, of one dimension for the embedder's whole life, or
`EmbedderDown` is raised. The key goes to the configured address and nowhere else: no redirect is followed, no proxy
or netrc is read from the environment, and neither key nor text stands in an error or a repr.
Not here: choosing an embedder, caching vectors, and what a search does when there are none.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import ipaddress
import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from anima.errors import BadArguments, BadConfig, MissingExtra
from anima.search.embed import Purpose
from anima.search.embed.guard import (
    DOCUMENT_PATIENCE,
    NO_PREFIXES,
    QUERY_PATIENCE,
    Breaker,
    Clock,
    EmbedderDown,
    Patience,
    Prefixes,
    normalised,
    prefixes_for,
)

if TYPE_CHECKING:
    import httpx2
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

__all__ = ["EmbedderDown", "EnvironmentChoice", "HttpEmbedder", "HttpSettings", "from_environment"]

OPENAI_URL: Final = "https://api.openai.com/v1"
NEAR_URL: Final = "https://cloud-api.near.ai/v1"
OLLAMA_URL: Final = "http://localhost:11434"
OPENAI_MODEL: Final = "text-embedding-3-small"
OLLAMA_MODEL: Final = "nomic-embed-text"

MAX_DIMENSION: Final = 65_536
_ERROR_BYTES: Final = 8_192
_SHORTEST_CUT: Final = 1_000  # a text refused at this length is not refused for its length
_LASTING: Final = {401: "the key was not accepted", 403: "the key may not do this", 404: "no such address or model"}
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_TOO_MUCH: Final = frozenset({400, 413, 422})
_CODE: Final = re.compile(r"[a-z][a-z_]{2,39}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """Where vectors come from and how they are asked for. Checks itself; the key is in no repr.

    `url` is the base that ends in `/v1`, or the full `/embeddings` address. `dimension`, when given, must be what the
    answers have; `ask_dimension` also sends it, for models that can shorten their vectors.
    """

    provider: str = "openai"
    url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    prefixes: Prefixes = NO_PREFIXES
    encoding: Literal["float", "base64"] = "float"
    dimension: int | None = None
    ask_dimension: bool = False
    batch_texts: int = 64
    batch_chars: int = 200_000
    text_chars: int = 24_000
    answer_bytes: int = 16 * 1024 * 1024
    documents: Patience = DOCUMENT_PATIENCE
    queries: Patience = QUERY_PATIENCE
    breaker_failures: int = 5
    breaker_rest: float = 30.0

    def __post_init__(self) -> None:
        _check_url(self.url, has_key=self.api_key is not None)
        if not self.model.strip():
            raise BadConfig("an embedding model needs a name")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise BadConfig("the API key holds characters that no key has")
        if self.dimension is not None and not 1 <= self.dimension <= MAX_DIMENSION:
            raise BadConfig(f"a dimension is between 1 and {MAX_DIMENSION}")
        if self.ask_dimension and self.dimension is None:
            raise BadConfig("asking for a dimension needs one")
        if min(self.batch_texts, self.batch_chars, self.text_chars, self.answer_bytes) < 1:
            raise BadConfig("the limits of an embedder are at least 1")

    @property
    def endpoint(self) -> str:
        """The address that is asked: `/v1` is added to a bare host, `/embeddings` where it is missing."""
        base = self.url.rstrip("/")
        if not urlsplit(base).path:
            base += "/v1"
        return base if base.endswith("/embeddings") else base + "/embeddings"

    @property
    def label(self) -> str:
        """The name vectors are stored under: whatever changes a document's vector changes it."""
        name = f"{self.provider}:{self.model}"
        if not self.prefixes.document:
            return name
        return name + "+" + hashlib.sha256(self.prefixes.document.encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentChoice:
    """What the environment asks for. `http` is None where no server is needed (mock, static, none)."""

    provider: Literal["openai", "ollama", "near", "mock", "static", "none"]
    http: HttpSettings | None = None


def from_environment(env: Mapping[str, str]) -> EnvironmentChoice | None:
    """The embedder that EMBEDDING_PROVIDER names, or None when it names none.

    A key alone chooses nothing: memory leaves the machine only when somebody said so. Raises BadConfig with the
    variable's name.
    """
    provider = _variable(env, "EMBEDDING_PROVIDER").casefold()
    match provider:
        case "":
            return None
        case "openai":
            return EnvironmentChoice(provider="openai", http=_openai(env))
        case "ollama":
            return EnvironmentChoice(provider="ollama", http=_ollama(env))
        case "near" | "nearai":
            return EnvironmentChoice(provider="near", http=_near(env))
        case "mock" | "static" | "none":
            return EnvironmentChoice(provider=provider)
    raise BadConfig(
        "there is no such embedding provider",
        where="EMBEDDING_PROVIDER",
        hint="openai, ollama, near, static, mock or none",
    )


def _openai(env: Mapping[str, str]) -> HttpSettings:
    url, key = _variable(env, "OPENAI_BASE_URL"), _variable(env, "OPENAI_API_KEY")
    if not url and not key:
        raise BadConfig("OpenAI needs a key", where="OPENAI_API_KEY")
    model = _variable(env, "EMBEDDING_MODEL") or OPENAI_MODEL
    return HttpSettings(
        url=url or OPENAI_URL,
        model=model,
        api_key=key or None,
        prefixes=prefixes_for(model),
        encoding="float" if url else "base64",
    )


def _near(env: Mapping[str, str]) -> HttpSettings:
    key = _variable(env, "NEAR_EMBEDDING_API_KEY")
    if not key:
        raise BadConfig("NEAR AI needs a key", where="NEAR_EMBEDDING_API_KEY")
    model = _variable(env, "EMBEDDING_MODEL") or OPENAI_MODEL
    return HttpSettings(provider="near", url=NEAR_URL, model=model, api_key=key, prefixes=prefixes_for(model))


def _ollama(env: Mapping[str, str]) -> HttpSettings:
    model = _variable(env, "OLLAMA_EMBEDDING_MODEL") or OLLAMA_MODEL
    url = _variable(env, "OLLAMA_BASE_URL") or OLLAMA_URL
    return HttpSettings(provider="ollama", url=url, model=model, prefixes=prefixes_for(model))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """Why one request gave nothing. `lasting` opens the breaker; `too_much` is about these texts, not the provider."""

    why: str
    again: bool = False
    slow: bool = False
    lasting: bool = False
    too_much: bool = False
    asked: float | None = None


class HttpEmbedder:
    """Asks the endpoint. It lives as long as its home, may be used from several threads, and is closed with it.

    Making one checks that the client is installed (MissingExtra) and connects to nothing. Texts longer than
    `text_chars` are cut; blank ones get a row of zeros and are not sent.
    """

    def __init__(
        self,
        settings: HttpSettings,
        *,
        clock: Clock,
        dice: random.Random,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if importlib.util.find_spec("httpx2") is None:
            raise MissingExtra("http", "an embedding server")
        self.name = settings.label
        self._settings, self._clock, self._dice, self._sleep = settings, clock, dice, sleep
        self._breaker = Breaker(clock=clock, failures=settings.breaker_failures, rest=settings.breaker_rest)
        self._dimension = settings.dimension
        self._last = _Failure(why="it is left alone for a while")  # what to say while the breaker is open
        self._client: httpx2.Client | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"HttpEmbedder({self.name!r}, dimension={self._dimension})"

    @property
    def dimension(self) -> int | None:
        """None until the first answer pins it, unless the settings say it."""
        return self._dimension

    def embed(self, texts: Sequence[str], *, kind: Purpose) -> Matrix:
        """One normalised row per text, in order. Raises EmbedderDown when the provider gives none, for whatever reason.

        Batches are all or nothing: a failure in the middle raises. A query waits little and is repeated once.
        """
        import numpy as np

        sent = self._sendable(texts, kind)
        patience = self._settings.queries if kind == "query" else self._settings.documents
        rows: dict[int, Matrix] = {}
        for batch in _batches(sent, texts=self._settings.batch_texts, chars=self._settings.batch_chars):
            rows.update(self._batch(batch, patience))
        if len(texts) and self._dimension is None:
            self._batch([(0, ".")], patience)  # only blank texts so far: the rows still need a width
        matrix = np.zeros((len(texts), self._dimension or 0), dtype=np.float32)
        for position, row in rows.items():
            matrix[position] = row
        return matrix

    def close(self) -> None:
        """Close the connections. Closing twice is fine; embedding again opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _sendable(self, texts: Sequence[str], kind: str) -> list[tuple[int, str]]:
        if isinstance(texts, str):
            raise BadArguments("embed takes a list of texts, not one text")
        if kind not in ("document", "query"):
            raise BadArguments("a text to embed is a document or a query")
        prefix = self._settings.prefixes.query if kind == "query" else self._settings.prefixes.document
        limit = self._settings.text_chars
        return [(at, prefix + text[:limit]) for at, text in enumerate(texts) if text.strip()]

    def _batch(self, batch: list[tuple[int, str]], patience: Patience) -> dict[int, Matrix]:
        """The rows of one batch. What a server calls too much is halved: first the batch, then the text.

        The first text that is refused even when it is short ends it, so a server that refuses everything is asked a
        dozen times and no more.
        """
        waiting = [batch]
        rows: dict[int, Matrix] = {}
        while waiting:
            part = waiting.pop()
            answer = self._ask([text for _, text in part], patience)
            if not isinstance(answer, _Failure):
                rows.update((position, row) for (position, _), row in zip(part, answer, strict=True))
                continue
            halves = _halves(part)
            if not halves:
                raise self._down(answer)
            waiting.extend(halves)
        return rows

    def _ask(self, texts: list[str], patience: Patience) -> Matrix | _Failure:
        """Rows, or a failure that is about these texts. Any other failure is repeated with patience, then raised."""
        waited, failure = 0.0, self._last
        for attempt in range(patience.attempts):
            if not self._breaker.admit():
                break
            answer = self._attempt(texts, patience)
            if not isinstance(answer, _Failure):
                self._breaker.succeeded()
                return answer
            failure = self._last = answer
            if failure.too_much:
                self._breaker.succeeded()  # it is there and answers
                return failure
            pause = patience.pause(attempt, dice=self._dice, asked=failure.asked)
            is_last = attempt + 1 == patience.attempts or waited + pause > patience.total_pause
            self._report(failure, is_last=is_last)
            if is_last or not failure.again or (failure.slow and not patience.repeats_slow):
                break
            self._sleep(pause)
            waited += pause
        raise self._down(failure)

    def _report(self, failure: _Failure, *, is_last: bool) -> None:
        if failure.lasting:
            self._breaker.open()
        elif failure.asked is not None and is_last:
            self._breaker.open(failure.asked)  # we do not wait for it, but neither do we ask before then
        else:
            self._breaker.failed()

    def _down(self, failure: _Failure) -> EmbedderDown:
        hint = "check the key, the address and the model of the embedder" if failure.lasting else None
        return EmbedderDown(self._settings.provider, failure.why, lasting=failure.lasting, hint=hint)

    def _attempt(self, texts: list[str], patience: Patience) -> Matrix | _Failure:
        asked: dict[str, object] = {
            "model": self._settings.model,
            "input": texts,
            "encoding_format": self._settings.encoding,
        }
        if self._settings.ask_dimension:
            asked["dimensions"] = self._dimension
        # Lone surrogates are no text; a server would refuse the whole batch for one of them.
        body = json.dumps(asked, ensure_ascii=False).encode("utf-8", "replace")
        answer = self._post(body, patience.timeout)
        if isinstance(answer, _Failure):
            return answer
        matrix = _decode(answer, count=len(texts))
        return matrix if isinstance(matrix, _Failure) else self._pinned(matrix)

    def _pinned(self, matrix: Matrix) -> Matrix | _Failure:
        with self._lock:
            if self._dimension is None:
                self._dimension = int(matrix.shape[1])
        if matrix.shape[1] == self._dimension:
            return matrix
        why = f"its vectors have {matrix.shape[1]} dimensions instead of {self._dimension}"
        return _Failure(why=why, lasting=True)

    def _post(self, body: bytes, timeout: float) -> bytes | _Failure:
        import httpx2

        limits = httpx2.Timeout(timeout, connect=min(timeout, 10.0))
        try:
            with self._connected().stream("POST", self._settings.endpoint, content=body, timeout=limits) as response:
                return self._read(response, timeout)
        except httpx2.TimeoutException:
            return _Failure(why="it did not answer in time", again=True, slow=True)
        except (httpx2.InvalidURL, UnicodeError):  # UnicodeError: a host that no name server could be asked for
            return _Failure(why="its address cannot be used", lasting=True)
        except httpx2.ConnectError:
            return _Failure(why="it cannot be reached", again=True)
        except (httpx2.HTTPError, httpx2.StreamError):
            return _Failure(why="its answer broke off", again=True)

    def _read(self, response: httpx2.Response, timeout: float) -> bytes | _Failure:
        status = response.status_code
        started = self._clock()
        limit = self._settings.answer_bytes if status == 200 else _ERROR_BYTES
        if response.headers.get("content-encoding", "identity") != "identity":
            return _Failure(why="its answer is compressed, which was not asked for", lasting=True)
        parts, size = [], 0
        for part in response.iter_raw():
            size += len(part)
            parts.append(part)
            if size > limit:
                break
            if (self._clock() - started).total_seconds() > timeout:
                return _Failure(why="it did not answer in time", again=True, slow=True)
        if status == 200 and size > limit:
            return _Failure(why="its answer is too large", lasting=True)
        body = b"".join(parts)
        return body if status == 200 else self._refusal(status, response.headers, body)

    def _refusal(self, status: int, headers: httpx2.Headers, body: bytes) -> _Failure:
        code = _error_code(body)
        if status in _LASTING or code == "insufficient_quota":
            return _Failure(why=_LASTING.get(status, "the quota is used up"), lasting=True)
        why = f"it answered {status}" + (f" ({code})" if code else "")
        if status in _TOO_MUCH:
            return _Failure(why=why, too_much=True)
        if 300 <= status < 400:
            return _Failure(why="it redirects elsewhere, which is not followed", lasting=True)
        asked = _retry_after(headers.get("retry-after"), self._clock)
        return _Failure(why=why, again=status in _PASSING, asked=asked if status in (429, 503) else None)

    def _connected(self) -> httpx2.Client:
        import httpx2

        headers = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json"}
        if self._settings.api_key is not None:
            headers["authorization"] = f"Bearer {self._settings.api_key}"
        is_tls = self._settings.endpoint.startswith("https:")
        with self._lock:
            if self._client is None:
                # Reading the certificates costs a tenth of a second, and plain http never becomes https here.
                self._client = httpx2.Client(headers=headers, follow_redirects=False, trust_env=False, verify=is_tls)
            return self._client


def _batches(sent: list[tuple[int, str]], *, texts: int, chars: int) -> Iterator[list[tuple[int, str]]]:
    batch: list[tuple[int, str]] = []
    size = 0
    for position, text in sent:
        if batch and (len(batch) == texts or size + len(text) > chars):
            yield batch
            batch, size = [], 0
        batch.append((position, text))
        size += len(text)
    if batch:
        yield batch


def _halves(part: list[tuple[int, str]]) -> list[list[tuple[int, str]]]:
    middle = len(part) // 2
    if middle:
        return [part[:middle], part[middle:]]
    position, text = part[0]
    return [[(position, text[: len(text) // 2])]] if len(text) > _SHORTEST_CUT else []


def _decode(raw: bytes, *, count: int) -> Matrix | _Failure:
    """The rows of an answer, in the order that was asked, or what is wrong with it."""
    import numpy as np

    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):  # not JSON, not UTF-8, a number of a million digits, or nested without end
        return _Failure(why="its answer is not JSON", again=True)
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return _Failure(why="its answer holds no vectors")
    if len(items) != count:
        return _Failure(why=f"it gave {len(items)} vectors for {count} texts")
    rows = [_row(item.get("embedding")) for item in _ordered(items)]
    found = [row for row in rows if row is not None]
    if len(found) != count:
        return _Failure(why="its answer holds something that is not a vector of numbers")
    if len({row.shape for row in found}) != 1:
        return _Failure(why="its vectors differ in length")
    return normalised(np.stack(found))


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


def _row(value: object) -> Matrix | None:
    import numpy as np

    try:
        with np.errstate(over="ignore"):
            row = _unpacked(value) if isinstance(value, str) else _listed(value)
    except (ValueError, OverflowError, TypeError):  # ragged, too large a number, or not base64
        return None
    if row is None or not 1 <= row.size <= MAX_DIMENSION or not np.isfinite(row).all():
        return None
    return row


def _unpacked(text: str) -> Matrix:
    import numpy as np

    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float32)


def _listed(value: object) -> Matrix | None:
    import numpy as np

    if not isinstance(value, list):
        return None
    row = np.asarray(value)
    return row.astype(np.float32) if row.ndim == 1 and row.dtype.kind in "fi" else None


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
