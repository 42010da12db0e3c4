"""Another scene in place of this one, and nothing that stays behind."""

import numpy as np
from ipywidgets.widgets.widget import _instances

from contextmesh.investigation.scene import Light, Scene
from contextmesh.widgets.graph3d import Canvas
from contextmesh.widgets.graph3d.parts import USUAL
from tests.widgets.graph3d.browser import arrays, click, hit
from tests.widgets.graph3d.scenes import PLACES, cloud, cross


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
