"""Embedders: what turns texts into vectors, by name.

Promise: an `Embedder` gives one row of length one for each text, float32, in the texts' order; its `name` changes
whenever its vectors would, so that vectors of two models are never mixed. Importing this module imports none of them.
Not here: the embedders themselves (`static`, `mock`, `http`, `local`), and where vectors are kept (`index`).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from anima.errors import BadConfig, MissingExtra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Purpose = Literal["document", "query"]


class Embedder(Protocol):
    """The seam. `dimension` may be None until the first vectors came. Raises `guard.EmbedderDown`, nothing else."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int | None: ...

    def embed(self, texts: Sequence[str], *, kind: Purpose) -> NDArray[np.float32]: ...

    def close(self) -> None: ...


@runtime_checkable
class WordEmbedder(Protocol):
    """An embedder whose vector of a text is the sum of its words', so that a query's words can be weighed."""

    def word_vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """One row for each word, not normalised."""
        ...


# Name: module, class, and the extra that brings what the module imports (None when the core has it).
EMBEDDERS: dict[str, tuple[str, str, str | None]] = {
    "static": ("anima.search.embed.static", "StaticEmbedder", "static"),
    "mock": ("anima.testing.embedder", "MockEmbedder", None),
    "openai": ("anima.search.embed.http", "HttpEmbedder", "http"),
    "onnx": ("anima.search.embed.local", "LocalEmbedder", "onnx"),
    "sentence-transformers": ("anima.search.embed.local", "LocalEmbedder", "sentence-transformers"),
}


def embedder_class(name: str) -> type[Any]:
    """The class behind a name. Raises BadConfig for an unknown one and MissingExtra for one that is not installed."""
    if name not in EMBEDDERS:
        raise BadConfig(f"there is no embedder {name!r}; there are none, {', '.join(EMBEDDERS)}")
    module, class_name, extra = EMBEDDERS[name]
    try:
        found: type[Any] = getattr(import_module(module), class_name)
    except ModuleNotFoundError as error:
        if extra is None or (error.name or "").startswith("anima"):
            raise  # our own bug, not a missing extra
        raise MissingExtra(extra, f"the embedder {name}") from error
    return found


def open_embedder(name: str) -> Embedder | None:
    """An embedder that needs no settings: `static`, `mock`, or None for `none`."""
    if name == "none":
        return None
    found: Embedder = embedder_class(name)()
    return found
