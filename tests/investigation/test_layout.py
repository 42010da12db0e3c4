"""The layout: repeatable, stable when a fact is added, and of some use to the eye."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextmesh.investigation.layout import RADIUS, layout, settle
from tests.investigation.making import told

FARTHEST = 1.35 * 1.3 * RADIUS  # what lies out there alone, along the longest axis
PROCESS = """
import json
from contextmesh.investigation.layout import layout
ids = [f"fact-{n}" for n in range(400)]
print(json.dumps(layout(ids, [(n, n // 3) for n in range(1, 400)], seed=3).tolist()))
"""


def incidents(n: int) -> tuple[list[str], list[tuple[int, int]]]:
    """Incidents with some twenty facts each, which share systems."""
    chance = random.Random(1)
    cores = n // 20
    ends = [(at, cores + chance.randrange(cores)) for at in range(cores) for _ in range(2)]
    ends += [(at, chance.randrange(cores)) for at in range(2 * cores, n)]
    return [f"fact-{at}" for at in range(n)], ends


def test_two_processes_arrange_alike():
    first, second = told(PROCESS), told(PROCESS)
    assert first == second
    ids = [f"fact-{n}" for n in range(400)]
    here = layout(ids, [(n, n // 3) for n in range(1, 400)], seed=3)
    assert np.array_equal(here, np.array(first, np.float32))


def test_another_seed_is_another_arrangement():
    ids, ends = incidents(100)
    assert not np.allclose(layout(ids, ends), layout(ids, ends, seed=1))


@pytest.mark.parametrize(("n", "at"), [(200, 0), (300, 7), (300, 299), (1000, 3)])
def test_one_more_fact_hardly_moves_the_others(n, at):
    ids, ends = incidents(n)
    before = layout(ids, ends)
    after = layout([*ids, "a-new-note"], [*ends, (n, at)])[:n]
    moved = np.linalg.norm(after - before, axis=1)
    assert np.median(moved) < 0.03 * RADIUS


def test_an_isolated_fact_hardly_moves_the_others():
    ids, ends = incidents(300)
    moved = np.linalg.norm(layout([*ids, "alone"], ends)[:300] - layout(ids, ends), axis=1)
    assert np.median(moved) < 0.03 * RADIUS


def test_the_order_of_the_ids_does_not_count():
    ids, ends = incidents(100)
    order = random.Random(2).sample(range(100), 100)
    places = {old: new for new, old in enumerate(order)}
    mixed = layout([ids[at] for at in order], [(places[a], places[b]) for a, b in ends])
    assert np.median(np.linalg.norm(mixed - layout(ids, ends)[order], axis=1)) < 0.01 * RADIUS


def test_relations_bring_their_ends_together():
    ids, ends = incidents(300)
    positions = layout(ids, ends)
    near = np.mean([np.linalg.norm(positions[a] - positions[b]) for a, b in ends])
    apart = np.mean([np.linalg.norm(positions[a] - positions[b]) for a, b in pairwise(range(300))])
    assert near < 0.5 * apart


def test_no_two_facts_are_in_one_place():
    ids, ends = incidents(300)
    positions = layout(ids, ends).astype(float)
    apart = np.linalg.norm(positions[:, None] - positions[None], axis=2) + np.eye(300)
    assert apart.min() > 0.001 * RADIUS


@given(
    st.integers(0, 40).flatmap(
        lambda n: st.tuples(
            st.just(n), st.lists(st.tuples(*[st.integers(0, max(0, n - 1))] * 2), max_size=60 * min(n, 1))
        )
    )
)
def test_any_graph_stays_near_the_middle(graph):
    n, ends = graph
    positions = layout([f"fact-{at}" for at in range(n)], ends)
    assert positions.shape == (n, 3)
    assert positions.dtype == np.float32
    assert np.isfinite(positions).all()
    assert not n or np.linalg.norm(positions, axis=1).max() <= FARTHEST


def test_ten_thousand_facts_have_room():
    ids, ends = incidents(10_000)
    positions = layout(ids, ends)
    assert np.isfinite(positions).all()
    assert (np.linalg.norm(positions, axis=1) > 0.1 * RADIUS).mean() > 0.95


def test_what_is_known_stays_and_the_rest_comes_beside_it():
    ids, ends = incidents(100)
    known = dict(zip(ids, layout(ids, ends), strict=True))
    more = [*ids, "beside-5", "beside-that", "alone"]
    positions = settle(more, [*ends, (100, 5), (101, 100)], known)
    assert np.array_equal(positions[:100], np.array([known[key] for key in ids]))
    assert 0 < np.linalg.norm(positions[100] - positions[5]) < 0.3 * RADIUS
    assert 0 < np.linalg.norm(positions[101] - positions[100]) < 0.3 * RADIUS
    assert np.linalg.norm(positions[102]) <= FARTHEST


def test_many_new_neighbours_get_more_room():
    leaves = [f"leaf-{n}" for n in range(200)]
    positions = settle(["hub", *leaves], [(0, n) for n in range(1, 201)], {"hub": (1.0, 2.0, 3.0), "gone": (0, 0, 0)})
    apart = np.linalg.norm(positions[1:, None].astype(float) - positions[None, 1:], axis=2) + np.eye(200)
    assert np.array_equal(positions[0], np.array((1, 2, 3), np.float32))
    assert apart.min() > 0.001 * RADIUS
