"""The embedder client: texts in, rows of length one out, over a model on this machine or a server with `/v1/embeddings`.

Promise: one row a text in the texts' order, of one dimension for the client's whole life, or `EmbedderDown`; zeros for a
blank text. A failure that may pass is repeated with patience, and a model that keeps failing is left alone for a while,
so that a search pays for it once. A key goes to the address it is for and nowhere else: no redirect is followed, no proxy
or netrc is read, and neither key nor text stands in an error or a repr; an answer is read to a bound.
Not here: which embedder is asked, running a model (`embed`), and what a search does without vectors.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import random
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from anima.errors import BadArguments, BadConfig, HomeError, MissingExtra
from anima.model import Purpose
from anima.text import read_table

if TYPE_CHECKING:
    import httpx2

Matrix = NDArray[np.float32]
Clock = Callable[[], datetime]

LONGEST_REST: Final = 3600.0
MAX_DIMENSION: Final = 65_536
_SHORTEST_CUT: Final = 1_000  # a text refused at this length is not refused for its length
ANSWER_BYTES: Final = 16 * 1024 * 1024
_ERROR_BYTES: Final = 8_192
_LASTING: Final = {401: "the key was not accepted", 403: "the key may not do this", 404: "no such address or model"}
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_TOO_MUCH: Final = frozenset({400, 413, 422})
_NO_VECTOR: Final = "its answer holds something that is not a vector of numbers, or of another length than the rest"
_LATE: Final = "it did not answer in time"


class EmbedderDown(HomeError):
    """No vectors this time. Search goes on with words and says `why`; `lasting` means that waiting will not help. The message
    names the provider and a reason of ours: never a key, an address, or text that was to be embedded."""

    def __init__(self, provider: str, why: str, *, lasting: bool = False, hint: str | None = None) -> None:
        self.provider, self.why, self.lasting = provider, why, lasting
        super().__init__(f"the embedder {provider} gave no vectors: {why}", hint=hint)


@dataclass(eq=False)
class Failure(Exception):
    """Why one request gave nothing, in words of ours."""

    why: str
    again: bool = False  # repeating may help
    slow: bool = False  # the timeout passed
    lasting: bool = False  # neither waiting nor repeating helps
    too_much: bool = False  # these texts were refused, and others may pass
    asked: float | None = None  # for how many seconds the source wants to be left alone


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one request may take and how often it is repeated; times in seconds."""

    attempts: int
    timeout: float
    first_pause: float
    longest_pause: float
    total_pause: float
    repeats_slow: bool  # whether a request that ran into its timeout is made again

    def pause(self, attempt: int, *, dice: random.Random, asked: float | None) -> float:
        """How long to wait after an attempt (from 0): jittered, and never less than the provider asked for."""
        if asked is None:
            return min(self.longest_pause, self.first_pause * 2.0 ** min(attempt, 30)) * dice.uniform(0.5, 1.0)
        return asked + self.first_pause * dice.uniform(0.0, 0.5)


DOCUMENT_PATIENCE: Final = Patience(5, 60.0, 0.5, 8.0, 60.0, repeats_slow=True)
# Somebody waits for a search, and words alone answer it well.
QUERY_PATIENCE: Final = Patience(2, 3.0, 0.1, 0.2, 0.5, repeats_slow=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """How much is sent at once and how patiently."""

    batch_texts: int = 64
    batch_chars: int = 200_000
    text_chars: int = 24_000
    documents: Patience = DOCUMENT_PATIENCE
    queries: Patience = QUERY_PATIENCE
    failures: int = 5  # in a row, until the source is left alone
    rest: float = 30.0  # seconds for which it is


class Breaker:
    """Opens after `failures` in a row; then lets one caller try per `rest` seconds, until one succeeds. Safe to share by
    threads. A caller that was let in and never reports back costs one rest, no more, and a clock that jumps back cannot keep
    a breaker open for longer than that."""

    def __init__(self, *, clock: Clock, failures: int, rest: float) -> None:
        self._clock, self._limit, self._rest = clock, failures, rest
        self._failures = 0
        self._opened: tuple[datetime, float] | None = None  # since when, and for how many seconds
        self._lock = threading.Lock()

    def admit(self) -> bool:
        """Whether a request may be made now. While open, True is said to one caller per rest."""
        with self._lock:
            if self._opened is not None:
                since, rest = self._opened
                if 0 <= ((now := self._clock()) - since).total_seconds() < rest:
                    return False
                self._opened = now, self._rest
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._failures, self._opened = 0, None

    def failed(self, *, rest: float | None = None) -> None:
        """Counts one failure. The last of the row opens the breaker, a failed trial keeps it open, and `rest` opens it at
        once for at least so many seconds: the provider said so, or asking again cannot help."""
        with self._lock:
            self._failures += 1
            if rest is not None or self._failures >= self._limit or self._opened is not None:
                self._opened = self._clock(), max(self._rest, min(rest or 0.0, LONGEST_REST))


class Prefixes(NamedTuple):
    """What a model wants to read before a document and before a question."""

    document: str = ""
    query: str = ""


@cache
def prefixes_for(model: str) -> Prefixes:
    """The prefixes a well-known model was trained with; none for a model we do not know."""
    name = model.casefold()
    if "instruct" in name:  # these take a task description instead, which only their user can write
        return Prefixes()
    known = read_table("search/embed", "models")["prefixes"].items()
    return next((Prefixes(**row) for part, row in known if re.search(part, name)), Prefixes())


class Client(ABC):
    """Asks a source, which each kind of client is in its own way. A client lives as long as its home, may be used from
    several threads, and is closed with it. Making one connects to nothing and loads nothing. `name` changes whenever a
    document's vector would; `provider` and `hint` are for messages."""

    provider: str
    hint: str
    is_remote: bool

    def __init__(
        self,
        name: str,
        prefixes: Prefixes,
        *,
        clock: Clock,
        dice: random.Random,
        sleep: Callable[[float], None] = time.sleep,
        limits: ClientLimits | None = None,
    ) -> None:
        self.name, self._prefixes, self._limits = name, prefixes, limits or ClientLimits()
        self._clock, self._dice, self._sleep = clock, dice, sleep
        self._breaker = Breaker(clock=clock, failures=self._limits.failures, rest=self._limits.rest)
        self.dimension: int | None = None  # until the first answer pins it
        self._last = Failure("it is left alone for a while")  # what to say while the breaker is open
        self._lock = threading.Lock()

    @abstractmethod
    def rows(self, texts: list[str], timeout: float) -> Matrix:
        """One row a text, in order, of any length. Raises Failure alone."""

    @abstractmethod
    def close(self) -> None:
        """Lets connections and models go. Closing twice is fine; embedding again takes them up again."""

    def embed(self, texts: Sequence[str], *, kind: Purpose) -> Matrix:
        """One row of length one a text, in order. Raises EmbedderDown when there are none, for whatever reason: all or nothing. A query
        waits little and is repeated once. What a server calls too much is halved: first the batch, then the text. The first text that
        is refused even when it is short ends it, so a server that refuses everything is asked a dozen times and no more."""
        if isinstance(texts, str) or kind not in ("document", "query"):
            raise BadArguments("embed takes a list of texts, not one text, and what they are: a document or a query")
        patience = self._limits.queries if kind == "query" else self._limits.documents
        waiting = self._batches(texts, getattr(self._prefixes, kind))
        found: list[tuple[int, Matrix]] = []
        while waiting:
            part = waiting.pop()
            (place, text), middle = part[0], len(part) // 2
            answer = self._ask([text for _, text in part], patience)
            if not isinstance(answer, Failure):
                found += [(place, row) for (place, _), row in zip(part, answer, strict=True)]
            elif answer.too_much and middle:
                waiting += [part[:middle], part[middle:]]
            elif answer.too_much and len(text) > _SHORTEST_CUT:
                waiting.append([(place, text[: len(text) // 2])])
            else:
                hint = self.hint if answer.lasting else None
                raise EmbedderDown(self.provider, answer.why, lasting=answer.lasting, hint=hint)
        matrix = np.zeros((len(texts), self.dimension or 0), dtype=np.float32)
        for place, row in found:
            if place >= 0:
                matrix[place] = row
        return matrix

    def _batches(self, texts: Sequence[str], prefix: str) -> list[list[tuple[int, str]]]:
        """The texts that are not blank, with their places, the first batch last. Lone surrogates are no text; one would
        spoil a whole batch."""
        cut = [(place, text[: self._limits.text_chars]) for place, text in enumerate(texts) if text.strip()]
        if len(texts) and not cut and self.dimension is None:
            cut = [(-1, ".")]  # only blank texts so far: the rows still need a width
        batches, size = list[list[tuple[int, str]]](), 0
        for place, text in cut:
            sent = prefix + text.encode("utf-8", "replace").decode("utf-8")
            size += len(sent)
            if not batches or len(batches[-1]) == self._limits.batch_texts or size > self._limits.batch_chars:
                batches.append([])
                size = len(sent)
            batches[-1].append((place, sent))
        return batches[::-1]

    def _ask(self, texts: list[str], patience: Patience) -> Matrix | Failure:
        """The rows, or why there are none. A failure that is not about these texts is repeated with patience first."""
        waited, failure = 0.0, self._last
        for attempt in range(patience.attempts):
            if not self._breaker.admit():
                break
            try:
                rows = self._checked(self.rows(texts, patience.timeout), len(texts))
                self._breaker.succeeded()
                return rows
            except Failure as caught:
                failure = caught
                failure.__traceback__ = failure.__context__ = None  # they hold the texts, and we keep the failure
            if failure.too_much:
                self._breaker.succeeded()  # the source is there and answers
                break
            self._last = failure
            pause = patience.pause(attempt, dice=self._dice, asked=failure.asked)
            is_last = attempt + 1 == patience.attempts or waited + pause > patience.total_pause
            # Where the provider wants to be left alone for longer than we wait, we do not ask before then.
            self._breaker.failed(rest=0.0 if failure.lasting else failure.asked if is_last else None)
            if is_last or not failure.again or (failure.slow and not patience.repeats_slow):
                break
            self._sleep(pause)
            waited += pause
        return failure

    def _checked(self, rows: Matrix, count: int) -> Matrix:
        """The rows at length one, if they are rows: as many as texts, all numbers, of the dimension there has been."""
        has_shape = rows.ndim == 2 and len(rows) == count and 1 <= rows.shape[1] <= MAX_DIMENSION
        if not has_shape or not np.isfinite(rows).all():
            raise Failure(_NO_VECTOR)
        with self._lock:
            self.dimension = self.dimension or rows.shape[1]
        if rows.shape[1] != self.dimension:
            raise Failure(f"its vectors have {rows.shape[1]} dimensions instead of {self.dimension}", lasting=True)
        wide = rows.astype(np.float64)  # lengths are reckoned in doubles, so that no float32 overflows
        lengths = np.linalg.norm(wide, axis=1, keepdims=True)
        return np.asarray(wide / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where vectors come from: `url` is the base that ends in `/v1`, or the full `/embeddings` address. Checks itself; the key
    is in no repr."""

    provider: str = "openai"
    url: str
    model: str
    api_key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # The address is never repeated in a message: people put passwords into addresses.
        try:
            parts = urlsplit(self.url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise BadConfig("the embedding server's address cannot be read") from None
        if parts.scheme not in ("http", "https") or not host or not self.url.isprintable() or " " in self.url:
            raise BadConfig("the embedding server's address must begin with http:// or https:// and name a host")
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise BadConfig("the embedding server's address holds no name, password, query or fragment")
        if self.api_key is not None and parts.scheme == "http" and not _is_loopback(host):
            hint = "use https, a tunnel to this machine, or a server without a key"
            raise BadConfig("a key is not sent over plain http to another machine", hint=hint)
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


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class RemoteEmbedder(Client):
    """One endpoint, asked over connections that are kept open. Raises MissingExtra where the HTTP library is not there."""

    hint = "check the key, the address and the model of the embedder"
    is_remote = True

    def __init__(self, endpoint: Endpoint, **how: Any) -> None:
        if find_spec("httpx2") is None:
            raise MissingExtra("http", "an embedding server")
        super().__init__(endpoint.label, prefixes_for(endpoint.model), **how)
        self.provider, self._endpoint = endpoint.provider, endpoint
        self._http: httpx2.Client | None = None

    def close(self) -> None:
        with self._lock:
            http, self._http = self._http, None
        if http is not None:
            http.close()

    def rows(self, texts: list[str], timeout: float) -> Matrix:
        import httpx2

        asked = {"model": self._endpoint.model, "input": texts, "encoding_format": "float"}
        body = json.dumps(asked, ensure_ascii=False).encode("utf-8")
        limits = httpx2.Timeout(timeout, connect=min(timeout, 10.0))
        try:
            with self._connected().stream("POST", self._endpoint.address, content=body, timeout=limits) as response:
                return _decoded(self._read(response, timeout), len(texts))
        except httpx2.TimeoutException:
            raise Failure(_LATE, again=True, slow=True) from None
        except (httpx2.InvalidURL, UnicodeError):  # UnicodeError: a host that no name server could be asked for
            raise Failure("its address cannot be used", lasting=True) from None
        except httpx2.ConnectError:
            raise Failure("it cannot be reached", again=True) from None
        except (httpx2.HTTPError, httpx2.StreamError):
            raise Failure("its answer broke off", again=True) from None

    def _connected(self) -> httpx2.Client:
        import httpx2

        headers = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json"}
        if self._endpoint.api_key is not None:
            headers["authorization"] = f"Bearer {self._endpoint.api_key}"
        is_tls = self._endpoint.address.startswith("https:")
        with self._lock:
            if self._http is None:
                # Reading the certificates costs a tenth of a second, and plain http never becomes https here.
                self._http = httpx2.Client(headers=headers, follow_redirects=False, trust_env=False, verify=is_tls)
            return self._http

    def _read(self, response: httpx2.Response, timeout: float) -> bytes:
        """The body of a good answer, to its bound. Raises Failure for any other."""
        if response.headers.get("content-encoding", "identity") != "identity":
            raise Failure("its answer is compressed, which was not asked for", lasting=True)
        started, body = self._clock(), bytearray()
        limit = ANSWER_BYTES if response.status_code == 200 else _ERROR_BYTES
        for part in response.iter_raw():
            body += part
            if len(body) > limit:
                break
            if (self._clock() - started).total_seconds() > timeout:
                raise Failure(_LATE, again=True, slow=True)
        if response.status_code != 200:
            status, code = response.status_code, _error_code(bytes(body))
            if status in _LASTING or code == "insufficient_quota":
                raise Failure(_LASTING.get(status, "the quota is used up"), lasting=True)
            if 300 <= status < 400:
                raise Failure("it redirects elsewhere, which is not followed", lasting=True)
            later = response.headers.get("retry-after", "") if status in (429, 503) else None
            asked = None if later is None else _seconds(later, self._clock)
            why = f"it answered {status}" + (f" ({code})" if code else "")
            raise Failure(why, again=status in _PASSING, too_much=status in _TOO_MUCH, asked=asked)
        if len(body) > limit:
            raise Failure("its answer is too large", lasting=True)
        return bytes(body)


def _decoded(raw: bytes, count: int) -> Matrix:
    """The rows of an answer, in the order that was asked. Raises Failure with what is wrong with it."""
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):  # not JSON, not UTF-8, a number of a million digits, or nested without end
        raise Failure("its answer is not JSON", again=True) from None
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise Failure("its answer holds no vectors")
    if len(items) != count:
        raise Failure(f"it gave {len(items)} vectors for {count} texts")
    with suppress(LookupError, TypeError, ValueError, OverflowError):  # none, twice, ragged, or too large a number
        placed = {item.get("index", at): item["embedding"] for at, item in enumerate(items)}
        found = np.asarray([placed[at] for at in range(count)])
        if found.dtype.kind in "fi":
            with np.errstate(over="ignore"):
                return found.astype(np.float32)
    raise Failure(_NO_VECTOR)


def _error_code(body: bytes) -> str | None:
    """The provider's own word for what is wrong, if it is one of ours in shape. Its sentences may quote our text."""
    try:
        error = json.loads(body)["error"]
        words = error.get("code"), error.get("type")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None
    return next((word for word in words if isinstance(word, str) and re.fullmatch(r"[a-z][a-z_]{2,39}", word)), None)


def _seconds(retry_after: str, clock: Clock) -> float | None:
    """What a number or a date asks for. Nonsense counts as nothing said."""
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", retry_after.strip(), re.ASCII):
        return float(retry_after)
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - clock()).total_seconds())
    except (ValueError, TypeError, OverflowError, IndexError):  # TypeError: a date without a zone
        return None
