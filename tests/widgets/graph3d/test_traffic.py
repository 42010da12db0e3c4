"""What travels to the browser: the scene, its light, and no more than that."""

import json

import numpy as np
import pytest
from ipywidgets.widgets.widget import _instances

from contextmesh.investigation.scene import Light
from contextmesh.widgets.graph3d.parts import CHANGED, CHOSEN, FOUND, GREYED, USUAL
from tests.widgets.graph3d.browser import arrays
from tests.widgets.graph3d.scenes import PLACES, cloud, cross


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
