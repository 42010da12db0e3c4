"""What the pointer does: a click, a double click, a drag, a rest; and what is said of an error in it."""

from contextmesh.errors import UsageError
from contextmesh.investigation.scene import Light
from contextmesh.widgets.graph3d import canvas as module
from tests.widgets.graph3d.browser import click, hit
from tests.widgets.graph3d.scenes import cross


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
