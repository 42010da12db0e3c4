"""What a graph keeps of its own writes, so that the next one need not read them."""

from collections.abc import Collection

import pytest

from contextmesh import Graph, InMemoryEventStore, InMemoryGraphStore, Object
from contextmesh.core.draft import MAX_KEPT, MAX_KEPT_BYTES, Kept


class Asked:
    """A store of objects that remembers what it was asked for."""

    def __init__(self, *rows: Object) -> None:
        self.rows = {row.id: row for row in rows}
        self.asked: list[list[str]] = []

    def __call__(self, ids: Collection[str]) -> dict[str, Object]:
        self.asked.append(sorted(ids))
        return {key: self.rows[key] for key in ids if key in self.rows}


def note(key: str, text: str = "x") -> Object:
    return Object(id=key, type="Memory", data={"text": text})


def test_an_answer_or_its_absence_is_asked_for_once_and_handed_out_as_a_copy() -> None:
    kept, ask = Kept(Object), Asked(note("a"))
    kept.recall(["a", "b"], ask)["a"].data["text"] = "edited"
    kept.recall(["b", "a"], ask)["a"].data["text"] = "edited again"
    assert kept.recall(["a", "b"], ask) == {"a": note("a")}
    assert ask.asked == [["a", "b"]]
    kept.clear()
    kept.recall(["a"], ask)
    assert ask.asked == [["a", "b"], ["a"]]


def test_old_rows_make_room_and_large_ones_are_not_kept() -> None:
    kept, ask = Kept(Object), Asked()
    for number in range(MAX_KEPT + 5):
        kept.put(f"n{number}", note(f"n{number}"))
    kept.recall([f"n{number}" for number in range(7)], ask)
    assert ask.asked == [["n0", "n1", "n2", "n3", "n4"]]
    kept.put("large", note("large", "x" * MAX_KEPT_BYTES))
    kept.recall(["large"], ask)
    assert ask.asked[-1] == ["large"]


def test_a_row_that_has_grown_too_large_does_not_leave_the_old_one_behind() -> None:
    kept, ask = Kept(Object), Asked(note("a", "x" * MAX_KEPT_BYTES))
    kept.put("a", note("a", "short"))
    kept.put("a", ask.rows["a"])
    assert kept.recall(["a"], ask) == ask.rows


def test_what_another_writer_changed_is_never_taken_for_what_it_was() -> None:
    log, store = InMemoryEventStore(), InMemoryGraphStore()
    mine, theirs = Graph(log, store), Graph(log, store)
    mine.add_object("Memory", {"n": 0}, id="a")
    for n in range(1, 4):
        for graph in (mine, theirs):
            before = graph.get_object("a")
            assert before
            assert graph.patch_object("a", {"n": n}, expected_version=before.version).status == "applied"
    assert [graph.get_object("a") for graph in (mine, theirs)] == [store.get_objects(["a"])["a"]] * 2
    assert store.get_objects(["a"])["a"].version == 7
    theirs.remove_object("a")
    assert mine.patch_object("a", {"n": 9}).status == "rejected"


@pytest.mark.parametrize("change", ["patch", "remove"])
def test_a_batch_that_is_given_up_leaves_nothing_behind(change: str) -> None:
    graph = Graph()
    graph.add_object("Memory", {"n": 0}, id="a")

    def give_up() -> None:
        with graph.batch():
            if change == "patch":
                graph.patch_object("a", {"n": 1})
            else:
                graph.remove_object("a")
            msg = "given up"
            raise RuntimeError(msg)

    with pytest.raises(RuntimeError, match="given up"):
        give_up()
    assert graph.patch_object("a", {"m": 2}).status == "applied"
    row = graph.get_object("a")
    assert row
    assert (row.data, row.version) == ({"n": 0, "m": 2}, 2)
