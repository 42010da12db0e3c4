"""Labels: whose are shown, and where."""

from contextmesh.investigation.scene import Light
from tests.widgets.graph3d.browser import QUARTER, click, hit, turn
from tests.widgets.graph3d.scenes import cloud, cross


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
