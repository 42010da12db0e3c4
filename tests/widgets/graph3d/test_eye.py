"""Where the eye is: in front at first, flown to what is chosen, nearer and further."""

import asyncio
from typing import Any

import numpy as np
import pytest

from contextmesh.errors import UsageError
from contextmesh.widgets.graph3d import canvas as module
from tests.widgets.graph3d.browser import QUARTER, turn
from tests.widgets.graph3d.scenes import cross


def test_the_eye_begins_in_front_and_returns_there(shown):
    canvas = shown(cross())
    front = canvas.eye
    assert front.position == pytest.approx((0, 0, 2.9 * canvas.scene.radius))
    turn(canvas, QUARTER)
    canvas.camera.set_state({"position": [5.0, 0.0, 0.0]})
    assert canvas.eye.position == (5.0, 0.0, 0.0)
    canvas.fit()
    assert canvas.eye == front


def test_flying_brings_an_object_and_its_neighbours_into_view(shown):
    canvas = shown(cross())
    turn(canvas, QUARTER)
    canvas.fly_to("n6")
    eye = canvas.eye
    assert eye.quaternion == pytest.approx(QUARTER)
    seen = eye.seen(canvas.scene.positions[[6, 0]])
    np.testing.assert_allclose(seen[0, :2], 0, atol=1e-3)
    assert np.abs(seen[1, :2]).max() < 260
    canvas.fly_to("nobody")
    assert canvas.eye == eye


def test_flying_takes_steps_while_a_loop_runs(shown):
    canvas = shown(cross())
    seen: list[tuple[float, ...]] = []
    there = asyncio.Event()

    def follow(change: Any) -> None:
        seen.append(change.new)
        if change.new == (6.0, 3.0, 0.0):
            there.set()

    canvas.controls.observe(follow, "target")

    async def fly() -> None:
        canvas.fly_to("n1")
        canvas.fly_to("n6")  # the second flight takes the place of the first
        await asyncio.wait_for(there.wait(), 20)

    asyncio.run(fly())
    assert len(seen) == module.FLIGHT_STEPS
    assert [target[1] for target in seen] == sorted(target[1] for target in seen)
    assert canvas._labels.shown()


def test_zooming_goes_nearer_and_back(shown):
    canvas = shown(cross())
    begin = canvas.eye.distance
    canvas.zoom(2)
    assert canvas.eye.distance == pytest.approx(begin / 2)
    canvas.zoom(0.5)
    assert canvas.eye.distance == pytest.approx(begin)
    with pytest.raises(UsageError, match="expected a number over 0"):
        canvas.zoom(0)


def test_another_size_is_another_aspect(shown):
    canvas = shown(cross())
    canvas.resize(600, 400)
    assert (canvas.view.width, canvas.view.height, canvas.camera.aspect) == (600, 400, 1.5)
    assert canvas._nodes.material.uniforms["view"]["value"] == [600.0, 400.0]
    assert (canvas.eye.width, canvas.eye.height) == (600, 400)
