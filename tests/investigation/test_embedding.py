"""The dense part: any callable serves, vectors are made in batches and kept by text, and nothing needs it."""

import logging
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import platformdirs
import pytest

from contextmesh.core.graph import Graph
from contextmesh.errors import UsageError
from contextmesh.investigation import embedding
from contextmesh.investigation.embedding import (
    BATCH,
    MODEL,
    Semantics,
    download_model,
    local_embedder,
    space_of,
)
from contextmesh.investigation.retrieval import retrieve
from contextmesh.investigation.search import Search
from contextmesh.investigation.vocabulary import DEFAULT
from contextmesh.investigation.workspace import Workspace

MEANINGS = ({"pump", "compressor"}, {"invoice", "bill"}, {"login", "sign-in"})


class Meanings:
    """An embedder that knows three meanings, and counts what it is asked."""

    name = "meanings"

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def __call__(self, texts: Sequence[str], /) -> "np.ndarray[Any, Any]":
        self.batches.append(list(texts))
        said = [set(re.findall(r"[\w-]+", text.casefold())) for text in texts]
        rows = [[float(bool(words & known)) for words in MEANINGS] for known in said]
        return np.asarray([[*row, 0.05] for row in rows], dtype=np.float32)

    @property
    def texts(self) -> int:
        return sum(map(len, self.batches))


def test_a_question_finds_what_shares_no_word_with_it(opened: Callable[..., Workspace]) -> None:
    ws = opened(embedder=Meanings())
    key = ws.session("s").note("the compressor broke").id
    ws.session("t").note("the bill is wrong")
    assert ws.session("ask").investigate("pump?").evidence["id"].tolist()[0] == key
    assert "close in meaning" in ws.session("ask").investigate("pump?").evidence["reasons"][0]
    assert ws.search("pump")["id"].tolist()[0] == key


def test_without_an_embedder_it_finds_nothing(ws: Workspace) -> None:
    ws.session("s").note("the compressor broke")
    assert ws.session("ask").investigate("pump?").evidence.empty


def test_nothing_near_is_nothing_returned(opened: Callable[..., Workspace]) -> None:
    ws = opened(embedder=Meanings())
    ws.session("s").note("the compressor broke")
    found = retrieve(Search("whales?", ws.graph, DEFAULT, similar=lambda text, limit: {}))
    assert found.context == ()
    far = retrieve(
        Search(
            "whales?",
            ws.graph,
            DEFAULT,
            similar=lambda text, limit: {row.id: 0.29 for row in ws.graph.objects("Memory")},
        )
    )
    assert far.context == ()


def test_a_commit_makes_no_vector_and_a_question_makes_them_in_batches(opened: Callable[..., Workspace]) -> None:
    embedder = Meanings()
    ws = opened(embedder=embedder)
    with ws.graph.batch() as graph:
        for at in range(BATCH + 10):
            graph.add_object("Evidence", {"label": f"e{at}", "text": f"bill {at}"}, id=f"e{at}")
    assert embedder.batches == []
    ws.search("invoice")
    assert sorted(map(len, embedder.batches)) == [1, 10, BATCH]
    ws.search("invoice")
    assert embedder.texts == BATCH + 10 + 2  # the two questions besides


def test_a_text_that_was_embedded_is_not_embedded_again(opened: Callable[..., Workspace]) -> None:
    embedder = Meanings()
    ws = opened(embedder=embedder)
    note = ws.session("s").note("the compressor broke")
    ws.search("pump")
    ws.revise(note.id, "the bill is wrong")
    ws.search("pump")
    assert embedder.texts == 4
    ws.rebuild()
    assert ws.embed(embedder) == 1  # what it said before is history, which is no evidence
    assert embedder.texts == 4


def test_a_workspace_that_is_opened_again_has_its_vectors(opened: Callable[..., Workspace]) -> None:
    ws = opened()
    ws.session("s").note("the compressor broke")
    assert ws.embed(Meanings()) == 1
    embedder = Meanings()
    again = opened(ws.name, embedder=embedder)
    assert not again.search("pump").empty
    assert embedder.texts == 1


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda texts: np.zeros((len(texts) + 1, 3)), "the embedder made 2 x 3 numbers of 1 texts"),
        (lambda texts: np.zeros(3), "the embedder made 3 numbers of 1 texts"),
        (lambda texts: np.full((len(texts), 3), np.nan), "expected one finite row for each text"),
    ],
)
def test_what_is_no_row_a_text_is_refused(made: Any, message: str) -> None:
    graph = Graph()
    with pytest.raises(UsageError, match=message):
        Semantics(graph, made)("pump", 5)


def test_a_space_is_named_after_the_embedder() -> None:
    def mine(texts: Sequence[str]) -> Any:
        return np.zeros((len(texts), 1))

    assert space_of(Meanings()).startswith("meanings_")
    assert space_of(Meanings()) == space_of(Meanings()) != space_of(mine)
    assert space_of(mine).isidentifier()


def test_without_the_extra_it_is_said_once_and_no_error(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    embedding._say_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert ws.embed() == 0
        assert ws.embed() == 0
    said = [row.message for row in caplog.records]
    assert said == [embedding.NO_LIBRARY]
    assert ws.similar is None


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A library that has no model and reaches none; what it is asked for."""
    asked: list[dict[str, Any]] = []

    def refuse(model: str, **options: Any) -> None:
        asked.append({"model": model, **options})
        raise ValueError("not there")

    library = ModuleType("fastembed")
    library.TextEmbedding = refuse  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fastembed", library)
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", "/models")
    return asked


def test_a_model_that_is_not_on_disk_is_said_and_nothing_is_fetched(
    ws: Workspace, refusing: list[dict[str, Any]]
) -> None:
    with pytest.raises(UsageError, match=rf"'{MODEL}' is not on this disk, in /models \(not there\); with a network"):
        ws.embed()
    assert refusing == [{"model": MODEL, "cache_dir": "/models", "local_files_only": True}]
    with pytest.raises(UsageError, match=re.escape("download_model('x/y', folder='/mine')")):
        local_embedder("x/y", "/mine")


def test_what_cannot_be_fetched_is_said_with_the_way_out(
    refusing: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"could not be fetched \(not there\); check the network, or copy the folder"):
        download_model()
    assert refusing == [{"model": MODEL, "cache_dir": "/models"}]
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(UsageError, match="the library for embeddings is not installed"):
        download_model()


def test_models_are_kept_where_the_system_does_not_clear_them(
    refusing: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("FASTEMBED_CACHE_PATH")
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: str(tmp_path / name))
    with pytest.raises(UsageError, match="could not be fetched"):
        download_model()
    assert refusing[0]["cache_dir"] == str(tmp_path / "contextmesh" / "models")
