"""The 3D view without a browser: what travels to it, what a click there means here, and that nothing stays behind."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import comm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipywidgets.widgets.widget import _instances

from contextmesh.errors import UsageError
from contextmesh.investigation.scene import Light, Scene
from contextmesh.widgets.graph3d import Canvas
from contextmesh.widgets.graph3d import canvas as module
from contextmesh.widgets.graph3d.camera import ABOVE, BELOW, LEFT, RIGHT, Camera, labels_beside
from contextmesh.widgets.graph3d.parts import CHANGED, CHOSEN, FOUND, GREYED, USUAL

QUARTER = (0.0, 0.5**0.5, 0.0, 0.5**0.5)  # a quarter turn around the upright axis, as a quaternion
FRONT = Camera(position=(0.0, 0.0, 29.0), width=900, height=520)
# Seven objects in a cross: the first in the middle, and one right behind it.
PLACES = [[0, 0, 0], [4, 0, 0], [-4, 0, 0], [0, 3, 0], [0, -3, 0], [0, 0, -4], [6, 3, 0]]
KINDS = ("Entity", "Entity", "Evidence", "Memory", "Task", "Entity", "Evidence")


def cross(n: int = 7, shift: float = 0.0) -> Scene:
    return Scene(
        ids=tuple(f"n{at}" for at in range(n)),
        kinds=KINDS[:n],
        labels=tuple(f"Number {at}" for at in range(n)),
        texts=tuple(f"<i>what</i> is known of {at}" for at in range(n)),
        relation_ids=tuple(f"r{at}" for at in range(1, n)),
        relation_types=("AFFECTS",) * (n - 1),
        ends=np.array([(0, at) for at in range(1, n)], np.int32).reshape(-1, 2),
        positions=np.array(PLACES[:n], np.float32) + np.float32(shift),
        sizes=np.full(n, 0.8, np.float32),
    )


def cloud(n: int, m: int) -> Scene:
    """As many objects and relations as one likes, anywhere."""
    chance = np.random.default_rng(5)
    return Scene(
        ids=tuple(f"n{at:05}" for at in range(n)),
        kinds=tuple(KINDS[at % 7] for at in range(n)),
        labels=tuple(f"Number {at}" for at in range(n)),
        texts=("",) * n,
        relation_ids=tuple(f"r{at:05}" for at in range(m)),
        relation_types=("AFFECTS",) * m,
        ends=chance.integers(0, n, (m, 2), np.int32),
        positions=chance.normal(0, 4, (n, 3)).astype(np.float32),
        sizes=np.full(n, 0.3, np.float32),
    )


@pytest.fixture
def shown() -> Iterator[Callable[..., Canvas]]:
    """Make canvases, and close them after the test."""
    made: list[Canvas] = []

    def make(scene: Scene, light: Light | None = None, **settings: Any) -> Canvas:
        made.append(Canvas(scene, light or Light(), **({"on_pick": lambda _: None} | settings)))
        return made[-1]

    yield make
    for canvas in made:
        canvas.close()


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any, int]]:
    """What travels to the browser: (kind of message, content, bytes)."""
    sent: list[tuple[str, Any, int]] = []

    def record(_self: Any, kind: str, data: Any = None, _metadata: Any = None, buffers: Any = None, **_: Any) -> None:
        size = len(json.dumps(data)) + sum(memoryview(part).nbytes for part in buffers or ())
        sent.append((kind, data, size))

    monkeypatch.setattr(comm.DummyComm, "publish_msg", record)
    return sent


def hit(scene: Scene, index: int, *, off: tuple[float, float, float] = (0, 0, 0)) -> dict[str, Any]:
    """What a browser says of a point near the pointer: which one, and where the pointer's ray passes it."""
    return {"index": index, "point": [*(scene.positions[index] + np.float32(off)).tolist()], "distance": 20.0}


def click(picker: Any, *hits: dict[str, Any], point: tuple[float, float, float] = (1.0, 2.0, 3.0)) -> None:
    picker.set_state({"picked": list(hits), "point": list(point)})


def turn(canvas: Canvas, quaternion: tuple[float, ...]) -> None:
    canvas.camera.set_state({"quaternion": list(quaternion)})


# the camera


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


# what travels to the browser


def arrays(canvas: Canvas) -> dict[str, Any]:
    """The numbers that the browser has, taken apart by what they mean."""
    attributes, lines = canvas._nodes.mesh.geometry.attributes, canvas._lines.mesh.geometry.attributes
    scale = canvas._nodes.mesh.scale[0]
    return {
        "positions": attributes["position"].array.array[::3] * scale,
        "colors": attributes["paint"].array.array[::3, :3],
        "marks": attributes["paint"].array.array[::3, 3].tolist(),
        "sizes": attributes["diameter"].array.array[::3],
        "targets": canvas._nodes.targets.geometry.attributes["position"].array.array * scale,
        "ends": lines["position"].array.array * canvas._lines.mesh.scale[0],
        "edge_colors": lines["paint"].array.array[::2, :3],
        "strengths": lines["paint"].array.array[::2, 3].tolist(),
    }


def test_the_browser_gets_the_scene(shown):
    scene = cross()
    sent = arrays(shown(scene))
    np.testing.assert_allclose(sent["positions"][:7], PLACES, atol=0.001)
    np.testing.assert_allclose(sent["targets"][:7], PLACES, atol=0.001)
    np.testing.assert_allclose(sent["ends"][:4], [PLACES[0], PLACES[1], PLACES[0], PLACES[2]], atol=0.001)
    np.testing.assert_allclose(sent["sizes"][:7], 0.8)
    assert not sent["sizes"][7:].any()
    np.testing.assert_array_equal(sent["colors"][:7], scene.node_colors())
    np.testing.assert_array_equal(sent["edge_colors"][:6], scene.edge_colors())
    assert set(sent["marks"][:7]) == {USUAL}
    assert len(set(sent["strengths"][:6])) == 1
    assert not any(sent["strengths"][6:])


def test_every_corner_of_a_node_knows_the_node(shown):
    attributes = shown(cross())._nodes.mesh.geometry.attributes
    for name in ("position", "paint", "diameter"):
        rows = attributes[name].array.array
        np.testing.assert_array_equal(rows[0::3], rows[1::3])
        np.testing.assert_array_equal(rows[0::3], rows[2::3])


def test_what_is_selected_and_found_stands_out_and_the_rest_steps_back(shown):
    canvas = shown(cross(), Light(selection="n1", hits=frozenset({"n3"})))
    sent = arrays(canvas)
    assert sent["marks"][:7] == [USUAL, CHOSEN, GREYED, FOUND, GREYED, GREYED, GREYED]
    assert sent["strengths"][0] > 2 * sent["strengths"][1] > 0
    canvas.light(Light())
    assert set(arrays(canvas)["marks"][:7]) == {USUAL}


def test_a_change_has_a_sign_beside_its_colour(shown):
    sent = arrays(shown(cross(), Light(changes={"n1": "added", "n2": "removed", "n3": "changed"})))
    assert sent["marks"][1:4] == [CHANGED["added"], CHANGED["removed"], CHANGED["changed"]]
    assert len({*CHANGED.values(), GREYED, USUAL, FOUND, CHOSEN}) == 7


def test_what_is_hidden_has_no_size_and_no_strength(shown):
    sent = arrays(shown(cross(), Light(hidden_kinds=frozenset({"Memory"}))))
    assert sent["sizes"][:7].tolist() == pytest.approx([0.8, 0.8, 0.8, 0.0, 0.8, 0.8, 0.8])
    assert [strength > 0 for strength in sent["strengths"][:6]] == [True, True, False, True, True, True]


def test_the_paper_follows_the_theme(shown):
    canvas = shown(cross())
    assert canvas.view.scene.background == "#ffffff"
    canvas.light(Light(theme="dark"))
    assert canvas.view.scene.background == "#111111"


def test_ten_thousand_objects_take_under_a_megabyte(shown, wire):
    canvas = shown(cloud(10_000, 20_000))
    assert sum(size for _, _, size in wire) < 800_000
    wire.clear()
    canvas.light(Light(selection="n00005"))
    assert sum(size for _, _, size in wire) < 150_000


def test_the_same_light_again_sends_nothing(shown, wire):
    canvas = shown(cross(), Light(selection="n1"))
    wire.clear()
    canvas.light(Light(selection="n1"))
    canvas.fit()
    assert wire == []


def test_the_thirtieth_light_costs_what_the_second_cost(shown, wire):
    canvas = shown(cloud(20, 30))
    sent = []
    for at in range(30):
        wire.clear()
        canvas.light(Light(selection=canvas.scene.ids[at % 2]))
        sent.append(len(wire))
    assert sent[2:4] * 14 == sent[2:]


def test_another_light_sends_neither_positions_nor_parts(shown, wire):
    canvas = shown(cross())
    places = canvas._nodes.mesh.geometry.attributes["position"].array.comm.comm_id
    opened = len(_instances)
    wire.clear()
    canvas.light(Light(selection="n1"))
    assert {kind for kind, _, _ in wire} == {"comm_msg"}
    assert places not in json.dumps([data for _, data, _ in wire])
    assert len(_instances) == opened


def test_the_same_scene_gives_the_same_picture(shown):
    one, other = arrays(shown(cloud(300, 500))), arrays(shown(cloud(300, 500)))
    for name, numbers in one.items():
        np.testing.assert_array_equal(numbers, other[name])


# another scene in place of this one


def test_some_more_objects_need_nothing_new(shown):
    canvas = shown(cross(6))
    parts, eye = (canvas.view, canvas._nodes, canvas._lines), canvas.eye
    opened = len(_instances)
    canvas.show(cross(7))
    assert parts == (canvas.view, canvas._nodes, canvas._lines)
    assert len(_instances) <= opened + 3  # the one label more
    np.testing.assert_allclose(arrays(canvas)["positions"][:7], PLACES, atol=0.001)
    assert canvas.eye == eye
    assert repr(canvas) == "<Canvas: 7 objects, 6 relations>"


def test_many_more_objects_replace_what_is_too_small_in_the_same_view(shown):
    canvas = shown(cross())
    view, old = canvas.view, [*canvas._nodes.drawn, *canvas._lines.drawn]
    big = cloud(500, 800)
    canvas.show(big)
    assert canvas.view is view
    assert all(mesh.comm is None and mesh.geometry.comm is None for mesh in old)
    assert all(mesh.comm is not None for mesh in view.scene.children)
    assert {picker.controlling for picker in view.controls[1:]} == {canvas._nodes.targets}
    np.testing.assert_allclose(arrays(canvas)["positions"][:500], big.positions, atol=0.001)


def test_a_scene_elsewhere_is_looked_at_anew(shown):
    canvas = shown(cross())
    canvas.fly_to("n6")
    near = canvas.eye
    canvas.show(cross(6))
    assert canvas.eye == near
    canvas.show(cross(7, shift=5.0))
    assert canvas.eye.target == (0.0, 0.0, 0.0)
    canvas.fly_to("n6")
    canvas.show(Scene())
    assert canvas.eye.target == (0.0, 0.0, 0.0)


def test_an_empty_scene_is_a_scene(shown):
    canvas = shown(Scene())
    click(canvas.picker, {"index": 3, "point": [0, 0, 0]})
    canvas.fit()
    canvas.fly_to("n1")
    canvas.show(cross())
    canvas.show(Scene(), Light(selection="n1"))
    assert repr(canvas) == "<Canvas: 0 objects, 0 relations>"


# what the pointer does


def test_a_click_selects(shown):
    picks: list[str] = []
    scene = cross()
    canvas = shown(scene, on_pick=picks.append)
    for index in range(7):
        click(canvas.picker, hit(scene, index), point=(index, 1, 1))
    assert picks == list(scene.ids)
    canvas.picked(2)
    assert picks[7:] == ["n2"]


def test_a_click_on_the_very_same_pixel_is_a_click_again(shown):
    picks: list[str] = []
    scene = cross()
    canvas = shown(scene, on_pick=picks.append)
    for _ in range(2):
        click(canvas.picker, hit(scene, 1))
        assert canvas.picker.point == (0, 0, 0)
        assert canvas.picker.picked == []
    assert picks == ["n1", "n1"]


def test_a_click_means_the_foremost_disc_under_it(shown):
    picks: list[str] = []
    scene = cross()
    canvas = shown(scene, on_pick=picks.append)
    click(canvas.picker, hit(scene, 5, off=(0.1, 0, 0)), hit(scene, 0, off=(0.3, 0, 0)))
    assert picks == ["n0"]


def test_a_click_beside_a_disc_means_the_nearest_one(shown):
    picks: list[str] = []
    scene = cross()
    canvas = shown(scene, on_pick=picks.append)
    pixel = canvas.eye.distance / canvas.eye.focal
    near, further, far = ((0.4 + px * pixel, 0, 0) for px in (3, 4, 9))
    click(canvas.picker, hit(scene, 1, off=further), hit(scene, 2, off=near))
    assert picks == ["n2"]
    click(canvas.picker, hit(scene, 1, off=far))
    assert picks == ["n2"]


def test_what_is_painted_behind_is_clicked_behind(shown):
    picks: list[str] = []
    scene = cross()
    canvas = shown(scene, Light(selection="n5"), on_pick=picks.append)
    canvas.light(Light(hits=frozenset({"n5"})))  # n0 is in front of it, but greyed
    click(canvas.picker, hit(scene, 0), hit(scene, 5))
    assert picks == ["n5"]


def test_a_miss_and_what_is_not_drawn_select_nothing(shown):
    picks: list[str] = []
    scene = cross()
    canvas = shown(scene, Light(hidden_kinds=frozenset({"Memory"})), on_pick=picks.append)
    click(canvas.picker)
    click(canvas.picker, {"index": None, "point": [0, 0, 0]}, point=(0, 0, 1))
    click(canvas.picker, hit(scene, 3))
    click(canvas.picker, {"index": 7, "point": [0, 0, 0]}, {"index": 40, "point": [0, 0, 0]})
    assert picks == []
    assert canvas.status.text == ""


def test_the_end_of_a_drag_selects_nothing(shown):
    picks: list[str] = []
    scene = cross()
    canvas = shown(scene, on_pick=picks.append)
    assert canvas._presser.event == "mousedown"
    canvas._presser.set_state({"modifiers": [False] * 4})  # a press beside everything says no more than that
    click(canvas.picker, hit(scene, 1))
    click(canvas._presser, hit(scene, 2))
    click(canvas.picker, hit(scene, 1))
    assert picks == []
    click(canvas._presser, hit(scene, 1), point=(4, 4, 4))
    click(canvas.picker, hit(scene, 1))
    assert picks == ["n1"]


def test_the_same_object_may_be_pressed_and_clicked_in_two_scenes(shown):
    picks: list[str] = []
    canvas = shown(cross(6), on_pick=picks.append)
    click(canvas._presser, hit(canvas.scene, 1))
    canvas.show(cross(7))
    click(canvas.picker, hit(canvas.scene, 1))
    assert picks == ["n1"]


def test_a_double_click_opens(shown):
    opened: list[str] = []
    scene = cross()
    canvas = shown(scene, on_open=opened.append)
    assert canvas._opener.event == "dblclick"
    click(canvas._opener, hit(scene, 4))
    click(canvas._opener, hit(scene, 4))
    assert opened == ["n4", "n4"]
    click(shown(scene)._opener, hit(scene, 4))  # which nobody asked to hear of
    assert opened == ["n4", "n4"]


def test_what_the_pointer_is_on_is_told_literally(shown):
    told: list[str | None] = []
    scene = cross()
    canvas = shown(scene, on_hover=told.append)
    click(canvas._hoverer, hit(scene, 4))
    click(canvas._hoverer, hit(scene, 4), point=(1.5, 2, 3))
    assert "Number 4" in canvas._told.value
    assert "&lt;i&gt;what&lt;/i&gt; is known of 4" in canvas._told.value
    assert "<i>" not in canvas._told.value
    click(canvas._hoverer, point=(0, 0, 0))
    assert "Drag to turn" in canvas._told.value
    assert told == ["n4", None]


def test_an_error_in_a_callback_is_said(shown):
    scene = cross()

    def fail(_object_id: str) -> None:
        raise UsageError("nothing to select <here>")

    canvas = shown(scene, on_pick=fail)
    click(canvas.picker, hit(scene, 1))
    assert canvas.status.text == "selecting failed: nothing to select <here>"
    assert "&lt;here&gt;" in canvas.status.value


def test_what_is_said_may_be_said_elsewhere(shown):
    status = module.StatusLine()
    canvas = shown(cross(), status=status)
    assert canvas.status is status
    assert status not in canvas.children
    canvas.close()
    assert status.comm is not None
    status.close()


# labels


def test_the_selection_and_its_neighbours_have_labels(shown):
    canvas = shown(cloud(200, 150), Light(selection="n00005"))
    wanted = {"n00005", *(canvas.scene.ids[at] for at in canvas.scene.neighbours("n00005"))}
    assert "n00005" in canvas._labels.shown()
    assert len(wanted & set(canvas._labels.shown())) >= min(2, len(wanted))
    assert len(canvas._labels.shown()) <= 12


def test_few_objects_all_have_labels(shown):
    assert shown(cross(5))._labels.shown() == ["n0", "n1", "n2", "n3", "n4"]


def test_labels_can_be_chosen(shown):
    canvas = shown(cloud(200, 150))
    canvas.labels([7])
    assert canvas._labels.shown() == ["n00007"]
    canvas.labels([])
    assert canvas._labels.shown() == []


def test_what_the_pointer_is_on_has_a_label_over_the_others(shown):
    scene = cloud(200, 150)
    canvas = shown(scene)
    canvas.labels([7])
    tip = canvas._labels._tip
    click(canvas._hoverer, hit(scene, 7))
    assert not tip.is_shown
    click(canvas._hoverer, hit(scene, 8), point=(2, 2, 2))
    assert (tip.is_shown, tip.object_id, tip.texture.string) == (True, "n00008", "Number 8")
    assert tip.mesh.renderOrder > canvas._labels._usual[0].mesh.renderOrder


def test_labels_find_new_places_when_the_eye_has_moved(shown):
    canvas = shown(cloud(200, 150))
    before = canvas._labels.shown()
    turn(canvas, QUARTER)
    canvas.camera.set_state({"position": [canvas.eye.distance, 0.0, 0.0]})
    assert canvas._labels.shown() != before


def test_a_texture_is_the_last_that_a_label_tells_its_program(shown):
    canvas = shown(cross(), Light(selection="n1"))
    for label in (*canvas._labels._usual, canvas._labels._tip):
        assert list(label.material.uniforms)[-1] == "map"
        assert {"anchor", "lift", "side", "shown", "view", "least", "paper", "ink"} < set(label.material.uniforms)


# where the eye is


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


# nothing stays behind


def test_closing_frees_all_lines_to_the_browser():
    before = set(_instances)
    canvas = Canvas(cross(), on_pick=print)
    click(canvas.picker, {"index": None, "point": [0, 0, 0]})
    canvas.picker.set_state({"object": f"IPY_MODEL_{canvas._nodes.targets.model_id}"})
    canvas.show(cloud(500, 800))
    canvas.show(cross())
    assert len(set(_instances) - before) > 30
    canvas.close()
    canvas.close()
    assert set(_instances) - before == set()


def test_two_canvases_do_not_share_anything(shown):
    picks: dict[str, list[str]] = {"one": [], "other": []}
    scene = cross()
    one, other = (shown(scene, on_pick=picks[name].append) for name in picks)
    click(one.picker, hit(scene, 1))
    one.light(Light(selection="n1"))
    one.close()
    click(other.picker, hit(scene, 2))
    assert picks == {"one": ["n1"], "other": ["n2"]}
    assert set(arrays(other)["marks"][:7]) == {USUAL}
