"""The optional dense part: facts and questions as vectors, so that what shares no word can be found. Home of fastembed.

Vectors are made in batches when a question needs them or `Workspace.embed` is called, never in a commit. They are kept
by the digest of their text, and live in the graph store's vector index.
"""

import hashlib
import logging
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import platformdirs

from contextmesh.core.graph import Graph
from contextmesh.core.model import Object
from contextmesh.core.projection import Progress
from contextmesh.core.stores import GraphStore
from contextmesh.errors import UsageError
from contextmesh.investigation.vocabulary import EVIDENCE_KINDS, HISTORY

if TYPE_CHECKING:
    import numpy as np

MODEL = "sentence-transformers/all-MiniLM-L6-v2"  # Apache-2.0, 90 MB, 384 numbers a text
BATCH = 256
MAX_TEXT = 2000  # characters of a fact that are embedded
NO_LIBRARY = "the library for embeddings is not installed, so only words count; pip install 'contextmesh[semantic]'"

_logger = logging.getLogger(__name__)


class Embedder(Protocol):
    """Whatever makes vectors of texts: any callable does.

    A `name` that it may have tells its vectors from another embedder's; by default that is its class's or function's.
    """

    def __call__(self, texts: Sequence[str], /) -> "np.ndarray[Any, Any]":
        """Return a float32 array of shape (len(texts), d), the same rows for the same texts."""
        ...


class Semantics:
    """Finds the facts of a graph that are close to a question in meaning.

    Args:
        graph: whose facts are embedded.
        embedder: makes the vectors.
    """

    def __init__(self, graph: Graph, embedder: Embedder) -> None:
        self._graph = graph
        self._embedder = embedder
        self.space = space_of(embedder)
        self._placed_at = -1  # the position up to which every fact has its vector

    def __call__(self, question: str, limit: int) -> Mapping[str, float]:
        """Return about the `limit` facts nearest to a text, id -> cosine, nearest first."""
        self.catch_up()
        vector = self._embed([question])[0]
        return self._graph.near(self.space, vector, EVIDENCE_KINDS, HISTORY, limit)

    def catch_up(self, progress: Progress | None = None) -> int:
        """Give a vector to every fact that has none, in batches, and return how many there were.

        A connection that may only read uses those that are there.
        """
        graph = self._graph
        position = graph.position
        if graph.read_only or position == self._placed_at:
            return 0
        tried: set[str] = set()
        while rows := graph.store.unplaced(self.space, EVIDENCE_KINDS, HISTORY, BATCH):
            if tried >= rows.keys():
                break  # others keep changing these; the next question tries again
            vectors = self._vectors(graph.store, {key: _text(row) for key, row in rows.items()})
            graph.store.place(self.space, {key: (rows[key].version, vector) for key, vector in vectors.items()})
            tried |= rows.keys()
            if progress:
                progress(len(tried), len(tried))
        self._placed_at = position
        return len(tried)

    def _vectors(self, store: GraphStore, texts: Mapping[str, str]) -> dict[str, list[float]]:
        digests = {
            key: hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for key, text in texts.items()
        }
        known = store.known_vectors(self.space, digests.values())
        missing = {digests[key]: text for key, text in texts.items() if digests[key] not in known}
        if missing:
            made = dict(zip(missing, self._embed(list(missing.values())), strict=True))
            store.remember_vectors(self.space, made)
            known |= made
        return {key: known[digest] for key, digest in digests.items()}

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        import numpy as np  # noqa: PLC0415 - importing contextmesh must stay light

        rows = np.asarray(self._embedder(texts), dtype=np.float32)
        if rows.ndim != 2 or len(rows) != len(texts) or not rows.shape[1] or not np.isfinite(rows).all():  # noqa: PLR2004 - a table
            shape = " x ".join(map(str, rows.shape))
            msg = f"the embedder made {shape} numbers of {len(texts)} texts; expected one finite row for each text"
            raise UsageError(msg)
        vectors: list[list[float]] = rows.tolist()
        return vectors


def space_of(embedder: Embedder) -> str:
    """Return the name under which an embedder's vectors are kept: an identifier."""
    kind = type(embedder)
    name = getattr(embedder, "name", None) or getattr(embedder, "__qualname__", None) or kind.__qualname__
    plain = re.sub(r"\W+", "_", str(name), flags=re.ASCII).strip("_")[:40]
    return f"{plain}_{hashlib.sha256(str(name).encode()).hexdigest()[:8]}" if plain[:1].isalpha() else f"v_{plain}"


def local_embedder(model: str = MODEL, folder: str | Path | None = None) -> Embedder | None:
    """Return the embedder of the `semantic` extra, from a model on this disk; None, said once, without the extra.

    Nothing is downloaded here; `download_model` does that.

    Args:
        model: a name that fastembed knows.
        folder: where `download_model` has put it; by default as there.

    Raises:
        UsageError: the model is not on this disk, or cannot be loaded from it.
    """
    try:
        import fastembed  # noqa: PLC0415 - an extra
    except ImportError:
        _say_once(NO_LIBRARY)
        return None
    try:
        loaded = fastembed.TextEmbedding(model, cache_dir=_folder(folder), local_files_only=True)
    except Exception as error:
        given = [*([repr(model)] if model != MODEL else []), *([f"folder={str(folder)!r}"] if folder else [])]
        msg = (
            f"the embedding model {model!r} is not on this disk, in {_folder(folder)} ({error}); with a network, run "
            f'once: python -c "from {__name__} import download_model; download_model({", ".join(given)})"'
        )
        raise UsageError(msg) from error
    return _Local(loaded, model)


def download_model(model: str = MODEL, folder: str | Path | None = None) -> None:
    """Fetch an embedding model once, about 90 MB; afterwards no network is needed.

    Args:
        model: as in `local_embedder`.
        folder: where to put it; by default what FASTEMBED_CACHE_PATH names, else the user's cache folder.

    Raises:
        UsageError: the extra is not installed, or the model could not be fetched, which takes up to a minute to say.
    """
    try:
        import fastembed  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UsageError(NO_LIBRARY) from error
    try:
        fastembed.TextEmbedding(model, cache_dir=_folder(folder))
    except Exception as error:
        msg = (
            f"the embedding model {model!r} could not be fetched ({error}); check the network, or copy the folder of a "
            "machine that has it, and name it by FASTEMBED_CACHE_PATH"
        )
        raise UsageError(msg) from error


class _Local:
    """A model of fastembed as an `Embedder`."""

    def __init__(self, loaded: Any, name: str) -> None:
        self._loaded = loaded
        self.name = name

    def __call__(self, texts: Sequence[str], /) -> "np.ndarray[Any, Any]":
        import numpy as np  # noqa: PLC0415 - importing contextmesh must stay light

        return np.stack(list(self._loaded.embed(list(texts))))


def _folder(folder: str | Path | None) -> str:
    """Return where models are kept; left to itself, fastembed would use a folder that the system clears."""
    chosen = (
        folder or os.environ.get("FASTEMBED_CACHE_PATH") or Path(platformdirs.user_cache_dir("contextmesh"), "models")
    )
    return str(chosen)


@cache
def _say_once(text: str) -> None:
    _logger.warning(text)


def _text(row: Object) -> str:
    """Return what a fact says; a note says its text, anything else is called something, too."""
    label, text = (str(row.data.get(name) or "") for name in ("label", "text"))
    repeated = text.startswith(label.removesuffix("…").rstrip())
    return (text if repeated else f"{label}: {text}")[:MAX_TEXT] or row.id
