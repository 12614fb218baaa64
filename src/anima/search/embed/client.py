"""The embedder client: texts in, rows of length one out, over a model on this machine or a server with `/v1/embeddings`.

Promise: one row a text in the texts' order, of one dimension for the client's whole life, or `EmbedderDown`; zeros for a
blank text. A failure that may pass is repeated with patience, and a model that keeps failing is left alone for a while,
so that a search pays for it once. A key goes to the address it is for and nowhere else: no redirect is followed, no proxy
or netrc is read, and neither key nor text stands in an error or a repr; an answer is read to a bound.
Not here: which embedder is asked (`embed`), running a model (`local`), and what a search does without vectors.
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from anima.errors import BadArguments, BadConfig, HomeError, MissingExtra
from anima.model import Purpose

if TYPE_CHECKING:
    import httpx2
    import numpy as np
    from numpy.typing import NDArray

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
_CODE: Final = re.compile(r"[a-z][a-z_]{2,39}")


class EmbedderDown(HomeError):
    """No vectors this time. Search goes on with words and says `why`; `lasting` means that waiting will not help.

    The message names the provider and a reason of ours: never a key, an address, or text that was to be embedded.
    """

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


class VectorSource(Protocol):
    """What a client asks. `provider` and `hint` are for messages; `label` changes whenever a document's vector would."""

    provider: str
    hint: str
    is_remote: bool

    @property
    def label(self) -> str: ...

    def rows(self, texts: list[str], *, timeout: float) -> Matrix:
        """One row a text, in order, of any length. Raises Failure alone."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long one request may take and how often it is repeated; times in seconds.

    `repeats_slow` says whether a request that ran into its timeout is made again.
    """

    attempts: int
    timeout: float
    repeats_slow: bool
    first_pause: float
    longest_pause: float
    total_pause: float

    def pause(self, attempt: int, *, dice: random.Random, asked: float | None) -> float:
        """How long to wait after an attempt (from 0): jittered, and never less than the provider asked for."""
        step = min(self.longest_pause, self.first_pause * 2.0 ** min(attempt, 30))
        if asked is None:
            return step * dice.uniform(0.5, 1.0)
        return asked + self.first_pause * dice.uniform(0.0, 0.5)


DOCUMENT_PATIENCE: Final = Patience(
    attempts=5, timeout=60.0, repeats_slow=True, first_pause=0.5, longest_pause=8.0, total_pause=60.0
)
# Somebody waits for a search, and words alone answer it well.
QUERY_PATIENCE: Final = Patience(
    attempts=2, timeout=3.0, repeats_slow=False, first_pause=0.1, longest_pause=0.2, total_pause=0.5
)


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
    """Opens after `failures` in a row; then lets one caller try per `rest` seconds, until one succeeds.

    Safe to share by threads. A caller that was let in and never reports back costs one rest, no more, and a clock that
    jumps back cannot keep a breaker open for longer than that.
    """

    def __init__(self, *, clock: Clock, failures: int = 5, rest: float = 30.0) -> None:
        self._clock, self._limit, self._rest = clock, failures, rest
        self._failures = 0
        self._until: datetime | None = None
        self._span = timedelta(0)
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        return self._until is not None

    def admit(self) -> bool:
        """Whether a request may be made now. While open, True is said to one caller per rest."""
        with self._lock:
            if self._until is None:
                return True
            if timedelta(0) < self._until - self._clock() <= self._span:
                return False
            self._shut(self._rest)
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._failures, self._until = 0, None

    def failed(self, *, rest: float | None = None) -> None:
        """Counts one failure. The last of the row opens the breaker, a failed trial keeps it open, and `rest` opens it at
        once for at least so many seconds: the provider said so, or asking again cannot help."""
        with self._lock:
            self._failures += 1
            if rest is not None or self._failures >= self._limit or self._until is not None:
                self._shut(max(self._rest, min(rest or 0.0, LONGEST_REST)))

    def _shut(self, rest: float) -> None:
        self._span = timedelta(seconds=rest)
        self._until = self._clock() + self._span


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """What a model wants to read before a document and before a question."""

    document: str = ""
    query: str = ""


_PASSAGES: Final = Prefixes(query="Represent this sentence for searching relevant passages: ")
_E5: Final = Prefixes(document="passage: ", query="query: ")
_WANTED: Final[tuple[tuple[str, Prefixes], ...]] = (
    ("nomic-embed-text", Prefixes(document="search_document: ", query="search_query: ")),
    ("embeddinggemma", Prefixes(document="title: none | text: ", query="task: search result | query: ")),
    *((name, _PASSAGES) for name in ("mxbai-embed-large", "bge-small-en", "bge-base-en", "bge-large-en")),
    *((f"multilingual-e5-{size}", _E5) for size in ("small", "base", "large")),
    *((f"e5-{size}-v2", _E5) for size in ("small", "base", "large")),
)


def prefixes_for(model: str) -> Prefixes:
    """The prefixes a well-known model was trained with; none for a model we do not know."""
    name = model.casefold()
    if "instruct" in name:  # these take a task description instead, which only their user can write
        return Prefixes()
    return next((prefixes for part, prefixes in _WANTED if part in name), Prefixes())


class Client:
    """Asks a source. A client lives as long as its home, may be used from several threads, and is closed with it.

    Making one connects to nothing and loads nothing.
    """

    def __init__(
        self,
        source: VectorSource,
        prefixes: Prefixes,
        *,
        clock: Clock,
        dice: random.Random,
        sleep: Callable[[float], None] = time.sleep,
        limits: ClientLimits | None = None,
    ) -> None:
        self._source, self._prefixes, self._limits = source, prefixes, limits or ClientLimits()
        self.name, self.is_remote = source.label, source.is_remote
        self._dice, self._sleep = dice, sleep
        self._breaker = Breaker(clock=clock, failures=self._limits.failures, rest=self._limits.rest)
        self._dimension: int | None = None
        self._last = Failure("it is left alone for a while")  # what to say while the breaker is open
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Client({self.name!r}, dimension={self._dimension})"

    @property
    def dimension(self) -> int | None:
        """None until the first answer pins it."""
        return self._dimension

    def embed(self, texts: Sequence[str], *, kind: Purpose) -> Matrix:
        """One row of length one a text, in order. Raises EmbedderDown when there are none, for whatever reason.

        Batches are all or nothing: a failure in the middle raises. A query waits little and is repeated once.
        """
        import numpy as np

        sent = self._sendable(texts, kind)
        if len(texts) and not sent and self._dimension is None:
            sent = [(-1, ".")]  # only blank texts so far: the rows still need a width
        patience = self._limits.queries if kind == "query" else self._limits.documents
        rows: dict[int, Matrix] = {}
        for batch in self._batches(sent):
            rows.update(self._embed_batch(batch, patience))
        matrix = np.zeros((len(texts), self._dimension or 0), dtype=np.float32)
        for position, row in rows.items():
            if position >= 0:
                matrix[position] = row
        return matrix

    def close(self) -> None:
        """Lets connections and models go. Closing twice is fine; embedding again takes them up again."""
        self._source.close()

    def _sendable(self, texts: Sequence[str], kind: str) -> list[tuple[int, str]]:
        """The texts that are not blank, with their places. Lone surrogates are no text; one would spoil a whole batch."""
        if isinstance(texts, str):
            raise BadArguments("embed takes a list of texts, not one text")
        if kind not in ("document", "query"):
            raise BadArguments("a text to embed is a document or a query")
        prefix = self._prefixes.query if kind == "query" else self._prefixes.document
        cut = ((at, text[: self._limits.text_chars]) for at, text in enumerate(texts) if text.strip())
        return [(at, prefix + text.encode("utf-8", "replace").decode("utf-8")) for at, text in cut]

    def _batches(self, sent: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
        batch: list[tuple[int, str]] = []
        size = 0
        for position, text in sent:
            if batch and (len(batch) == self._limits.batch_texts or size + len(text) > self._limits.batch_chars):
                yield batch
                batch, size = [], 0
            batch.append((position, text))
            size += len(text)
        if batch:
            yield batch

    def _embed_batch(self, batch: list[tuple[int, str]], patience: Patience) -> dict[int, Matrix]:
        """The rows of one batch. What a server calls too much is halved: first the batch, then the text.

        The first text that is refused even when it is short ends it, so a server that refuses everything is asked a
        dozen times and no more.
        """
        waiting = [batch]
        rows: dict[int, Matrix] = {}
        while waiting:
            part = waiting.pop()
            answer = self._ask([text for _, text in part], patience)
            if not isinstance(answer, Failure):
                rows.update((position, row) for (position, _), row in zip(part, answer, strict=True))
            elif halves := _halves(part):
                waiting.extend(halves)
            else:
                raise self._down(answer)
        return rows

    def _ask(self, texts: list[str], patience: Patience) -> Matrix | Failure:
        """Rows, or a failure that is about these texts. Any other failure is repeated with patience, then raised."""
        waited, failure = 0.0, self._last
        for attempt in range(patience.attempts):
            if not self._breaker.admit():
                break
            try:
                rows = self._checked(self._source.rows(texts, timeout=patience.timeout), len(texts))
                self._breaker.succeeded()
                return rows
            except Failure as caught:
                caught.__traceback__ = caught.__context__ = None  # they hold the texts, and we keep the failure
                failure = self._last = caught
            if failure.too_much:
                self._breaker.succeeded()  # the source is there and answers
                return failure
            pause = patience.pause(attempt, dice=self._dice, asked=failure.asked)
            is_last = attempt + 1 == patience.attempts or waited + pause > patience.total_pause
            # Where the provider wants to be left alone for longer than we wait, we do not ask before then.
            self._breaker.failed(rest=0.0 if failure.lasting else failure.asked if is_last else None)
            if is_last or not failure.again or (failure.slow and not patience.repeats_slow):
                break
            self._sleep(pause)
            waited += pause
        raise self._down(failure)

    def _down(self, failure: Failure) -> EmbedderDown:
        hint = self._source.hint if failure.lasting else None
        return EmbedderDown(self._source.provider, failure.why, lasting=failure.lasting, hint=hint)

    def _checked(self, rows: Matrix, count: int) -> Matrix:
        """The rows at length one, if they are rows: as many as texts, all numbers, of the dimension there has been."""
        import numpy as np

        if rows.ndim != 2 or len(rows) != count or not 1 <= rows.shape[1] <= MAX_DIMENSION:
            raise Failure("its answer holds something that is not a vector of numbers")
        if not np.isfinite(rows).all():
            raise Failure("it gave numbers that are none")
        with self._lock:
            if self._dimension is None:
                self._dimension = int(rows.shape[1])
        if rows.shape[1] != self._dimension:
            raise Failure(f"its vectors have {rows.shape[1]} dimensions instead of {self._dimension}", lasting=True)
        return unit_rows(rows)


def _halves(part: list[tuple[int, str]]) -> list[list[tuple[int, str]]]:
    middle = len(part) // 2
    if middle:
        return [part[:middle], part[middle:]]
    position, text = part[0]
    return [[(position, text[: len(text) // 2])]] if len(text) > _SHORTEST_CUT else []


def unit_rows(matrix: Matrix) -> Matrix:
    """Rows of length 1; a row of zeros stays. Lengths are reckoned in doubles, so that no float32 overflows."""
    import numpy as np

    wide = matrix.astype(np.float64)
    lengths = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    lengths[lengths == 0.0] = 1.0
    return np.asarray(wide / lengths, dtype=np.float32)


# -- a server -------------------------------------------------------------------------------------------------------------


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
    limits: ClientLimits | None = None,
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
