"""What notes pass on to those around them, and how the next best are spread over the sessions."""

import pytest

from contextmesh.core.graph import Graph
from contextmesh.core.model import Object
from contextmesh.investigation.surroundings import (
    asks,
    named_people,
    passed_on,
    read_members,
    scaled,
    spread,
    without_names,
)


def test_a_note_passes_on_half_as_much_to_each_further_one_and_nothing_beyond_four() -> None:
    members = [f"n{at}" for at in range(12)]
    found = {to: share for to, part, share, _ in passed_on(members, {"n5": 0.8}, ()) if part == "beside"}
    assert found == {
        "n4": 0.8,
        "n3": 0.4,
        "n2": 0.2,
        "n1": 0.1,
        "n6": 0.8,
        "n7": 0.4,
        "n8": 0.2,
        "n9": 0.1,
    }


def test_only_the_next_note_replies_to_one_that_asks() -> None:
    found = [row for row in passed_on(["a", "b", "c"], {"a": 0.5, "b": 1.0}, {"a"}) if row[1] == "reply"]
    assert found == [("b", "reply", 0.5, "a")]
    assert [row for row in passed_on(["a"], {"a": 0.5}, {"a"}) if row[1] == "reply"] == []


@pytest.mark.parametrize(
    ("text", "asking"),
    [
        ("Why?", True),
        ('He said "why?"', True),
        ("Why? 🤔", True),
        ("なぜ？", True),
        ("لماذا؟", True),
        ("Why? No idea.", False),
        ("why", False),
        ("", False),
    ],
)
def test_a_note_that_ends_with_a_question_asks(text: str, *, asking: bool) -> None:
    assert asks(Object(id="n", type="Memory", data={"text": text})) is asking


def test_the_first_are_taken_as_they_stand_and_the_next_best_spread_over_the_sessions() -> None:
    scores = [1.0, 0.9, 0.8, 0.79, 0.5]
    sessions = ["s", "s", "s", "t", "t"]
    # after two of s, a third counts 0.8 x 0.97 x 0.97 = 0.753, below the first of t
    assert spread(scores, sessions, 2, 4) == [0, 1, 3, 2]
    assert spread(scores, sessions, 3, 4) == [0, 1, 2, 3]
    assert spread(scores, sessions, 2, 9) == [0, 1, 3, 2, 4]


def test_what_is_in_no_session_counts_in_full() -> None:
    assert spread([1.0, 0.9, 0.8], [None, None, None], 1, 3) == [0, 1, 2]
    assert spread([1.0, 1.0, 1.0], ["s", "s", None], 1, 3) == [0, 2, 1]
    assert spread([], [], 12, 20) == []
    assert spread([1.0, 0.9], ["s", "s"], 12, 1) == [0]


def test_a_question_names_people_by_any_word_of_their_name() -> None:
    rows = {
        key: Object(id=key, type="Memory", data={"text": "x", "author": author})
        for key, author in (("a", "Ana Ruiz"), ("b", "Bo Lind"), ("c", None))
    }
    assert named_people(rows, "What did Ana say?") == {"Ana Ruiz": ["ana"]}
    assert named_people(rows, "Lind or Ruiz?") == {"Ana Ruiz": ["ruiz"], "Bo Lind": ["lind"]}
    assert without_names("What was Ana's pump, Ana?", {"ana"}) == "What was pump,"


def test_the_notes_of_a_session_are_read_in_the_order_in_which_they_were_taken() -> None:
    graph = Graph()
    graph.add_object("Session", {"label": "s"}, id="s")
    for key in ("z", "a", "m"):
        graph.add_object("Memory", {"text": "x"}, id=key)
        graph.add_relation("s", key, "HAS_MEMORY")
    assert read_members(graph, ["s"]) == {"s": ["z", "a", "m"]}


def test_scaled_scores_reach_from_zero_to_one() -> None:
    assert scaled({"a": 2.0, "b": 4.0, "c": 3.0}) == {"a": 0.0, "b": 1.0, "c": 0.5}
    assert scaled({"a": 2.0}) == {"a": 0.0}
    assert scaled({}) == {}
