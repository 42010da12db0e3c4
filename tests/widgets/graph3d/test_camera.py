"""The camera as plain numbers: what it sees, and where labels fit into it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextmesh.widgets.graph3d.camera import ABOVE, BELOW, LEFT, RIGHT, Camera, labels_beside
from tests.widgets.graph3d.browser import QUARTER
from tests.widgets.graph3d.scenes import cloud

FRONT = Camera(position=(0.0, 0.0, 29.0), width=900, height=520)


def test_a_camera_sees_in_perspective():
    # At a distance of 26 a unit takes up 520 / 2 / tan(22.5 degrees) / 26 pixels.
    unit = 260 / (2**0.5 - 1) / 26
    seen = FRONT.seen([[0, 0, 3], [2, -1, 3], [0, 0, 40]])
    np.testing.assert_allclose(seen[:2], [[0, 0, 26], [2 * unit, -unit, 26]])
    assert seen[2, 2] < 0


def test_a_camera_that_is_turned_sees_what_is_beside_it():
    right = Camera(position=(10.0, 0.0, 0.0), quaternion=QUARTER, width=900, height=520)
    np.testing.assert_allclose(right.seen([[0, 0, 0], [0, 0, -1]])[:, 2], [10, 10])
    assert right.seen([[0, 0, -1]])[0, 0] > 0


def test_a_camera_moves_without_turning():
    moved = Camera(position=(10.0, 0.0, 0.0), quaternion=QUARTER, width=900, height=520).at((1.0, 2.0, 3.0), 5.0)
    np.testing.assert_allclose(moved.position, (6, 2, 3))
    assert moved.quaternion == QUARTER
    np.testing.assert_allclose(moved.seen([[1, 2, 3]]), [[0, 0, 5]], atol=1e-9)


@pytest.mark.parametrize(("width", "height"), [(900, 520), (620, 470), (300, 500)])
def test_all_of_a_scene_is_in_view_in_any_picture(width: int, height: int):
    scene = cloud(200, 10)
    seen = Camera.over(radius=scene.radius, width=width, height=height).seen(scene.positions)
    assert np.abs(seen[:, 0]).max() < width / 2
    assert np.abs(seen[:, 1]).max() < height / 2


@given(
    st.lists(
        st.tuples(st.floats(-9, 9), st.floats(-6, 6), st.floats(-5, 5), st.floats(5, 300)), min_size=1, max_size=25
    )
)
def test_no_label_lies_on_another_or_on_the_border(nodes: list[tuple[float, float, float, float]]):
    points, sizes = [node[:3] for node in nodes], [(node[3], 14.0) for node in nodes]
    placed = labels_beside(FRONT, points, [6.0] * len(nodes), sizes, range(len(nodes)), 12)
    assert len(placed) <= 12
    boxes = []
    for at, (across, up) in placed.items():
        x, y, _ = FRONT.seen([points[at]])[0]
        wide, high = sizes[at]
        middle = x + across * (6 + wide / 2 + 6), y + up * (6 + high / 2 + 6)
        assert abs(middle[0]) + wide / 2 <= 450
        assert abs(middle[1]) + high / 2 <= 260
        assert all(
            abs(middle[0] - other[0]) >= (wide + other[2]) / 2 or abs(middle[1] - other[1]) >= (high + other[3]) / 2
            for other in boxes
        )
        boxes.append((*middle, wide, high))


def test_labels_go_where_they_hide_least():
    middle, above = [0.0, 0.0, 0.0], [0.0, 0.7, 0.0]
    alone = labels_beside(FRONT, [middle], [6.0], [(60, 14)], [0], 12)
    crowded = labels_beside(FRONT, [middle, above], [6.0, 6.0], [(60, 14)], [0], 12)
    assert (alone, crowded) == ({0: ABOVE}, {0: BELOW})


def test_the_first_label_comes_first():
    points = [[0.0, 0.0, 0.0], [0.1, 0.0, 0.0]]
    placed = labels_beside(FRONT, points, [6.0, 6.0], [(60, 14), (60, 14)], [1, 0], 1)
    assert list(placed) == [1]
    assert placed[1] in (ABOVE, BELOW, RIGHT, LEFT)
