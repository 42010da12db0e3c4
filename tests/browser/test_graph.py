"""The graph in a browser: what is clicked is selected, time changes the picture, and keys reach everything."""

import numpy as np

from tests.browser.lab import Lab
from tests.browser.test_explorer import LIVE, MADE

NODES, CLICKS = 1000, 30
# A thousand objects in memory, and thirty of them that nothing lies in front of.
THOUSAND = f"""import numpy as np
from contextmesh import Graph
from contextmesh.widgets import GraphView
chance = np.random.default_rng(4)
graph = Graph()
with graph.batch():
    for n in range({NODES}):
        graph.add_object(("Entity", "Evidence", "Memory")[n % 3], {{"label": f"node {{n}}"}}, id=f"n{{n}}")
    for n in range(10, {NODES}):
        graph.add_relation(f"n{{n}}", f"n{{chance.integers(n // 3 + 1)}}", "RELATES_TO")
view = GraphView(graph, most={NODES})
view"""
KNOWN = f"""seen = view.canvas.eye.seen(view.scene.positions)
radii = view.canvas.eye.focal * view.scene.sizes / 2 / seen[:, 2]
known = []
for at in np.argsort(seen[:, 2]):
    apart = np.hypot(*(seen[:, :2] - seen[at, :2]).T)
    apart[at] = np.inf
    inside = (np.abs(seen[at, :2]) < [280, 210]).all()
    if inside and (apart > radii + radii[at] + 1).all() and len(known) < {CLICKS}:
        known.append((view.scene.ids[at], float(seen[at, 0]), float(seen[at, 1])))"""
HOSTILE = (
    "<img src=x onerror=\"document.title = 'taken over'\">",
    "<script>document.title = 'taken over'</script>",
    "pneumono" * 20,
    "👩🏽‍🚒 \u202eright to left\u202c עברית",
    "two\nlines",
)


def focus(lab: Lab, name: str) -> None:
    """Go to a button by its name."""
    lab.page.locator(f"{LIVE} button:visible", has_text=name).first.focus()


def press(lab: Lab, *keys: str) -> None:
    for key in keys:
        lab.page.keyboard.press(key)
    lab.wait_for_idle()


def test_thirty_clicks_on_known_nodes_of_a_thousand_select_those_thirty(
    lab: Lab, errors_of_an_empty_notebook: set[str]
) -> None:
    lab.run_cells([THOUSAND])
    lab.wait_for_canvas()
    assert lab.canvas_pixels() > 0.02
    lab.python(KNOWN)
    known = lab.value("known")
    assert len(known) == CLICKS
    width, height = (lab.canvas().bounding_box() or {})["width"], (lab.canvas().bounding_box() or {})["height"]
    selected = []
    for _, right, above in known:
        lab.click_canvas(width / 2 + right, height / 2 - above)
        selected.append(lab.value("view.selection"))
    assert selected == [object_id for object_id, *_ in known]
    assert set(lab.errors) <= errors_of_an_empty_notebook


def test_the_time_slider_changes_the_picture_and_comes_back(lab: Lab) -> None:
    lab.run_cells([MADE, "view = inv.view()\nview"])
    lab.wait_for_canvas()
    now = lab.canvas_image()
    handle = lab.page.locator(".cm-timebar .noUi-handle")
    handle.focus()
    press(lab, "Home")
    assert lab.value("view.state.position") == 0
    assert lab.value("len(view.scene.ids)") == 0
    assert (lab.canvas_image() != now).any(axis=2).mean() > 0.01
    handle.focus()
    press(lab, "ArrowRight", "ArrowRight")
    assert lab.value("view.state.position") == 2
    focus(lab, "Newest")
    press(lab, "Enter")
    assert lab.value("view.state.position") is None
    focus(lab, "Refresh")  # what is new since the last position is no longer lit up
    press(lab, "Enter")
    assert (np.abs(lab.canvas_image().astype(int) - now).max(axis=2) > 8).mean() < 0.02


def test_keys_alone_search_select_sort_step_and_revise(lab: Lab) -> None:
    later = "later = ws.session('Class').investigate('Who owns the checkout?', run=False)"
    shown = (
        "view = cm.widgets.GraphView(ws)\nview",
        f"{later}\npipeline = cm.widgets.Pipeline(later)\npipeline",
        "notes = cm.widgets.MemoryPanel(ws, session='Monday night')\nnotes",
    )
    lab.run_cells([MADE, *shown])
    page = lab.page
    page.locator(".cm-finder input").focus()
    page.keyboard.type("maya")
    press(lab, "Enter")
    assert lab.value("view.selection") == "maya-chen"
    focus(lab, "label")  # the button that sorts by it
    press(lab, "Enter")
    labels = lab.value("[row['label'] for row in view.table.rows]")
    assert labels == sorted(labels, key=str.casefold)
    focus(lab, "Step")
    press(lab, "Enter")
    assert "1 of 4 stages done" in lab.value("repr(pipeline)")
    panel = page.locator(LIVE).last
    panel.locator("button:visible", has_text="1").first.focus()
    press(lab, "Enter")
    panel.locator("textarea:visible").last.focus()
    page.keyboard.press("Control+End")
    page.keyboard.type(" Corrected.")
    panel.locator("button:visible", has_text="Save the revision").focus()
    press(lab, "Enter")
    assert lab.value("ws.graph.get_object(note.id).data['text']").endswith("Corrected.")


def test_two_explorers_on_one_page_do_not_fight(lab: Lab) -> None:
    lab.run_cells([MADE, "one = ws.explore()\none", "two = ws.explore()\ntwo"])
    lab.wait_for_canvas(0)
    lab.wait_for_canvas(1)
    finders = lab.page.locator(".cm-finder input")
    finders.nth(0).fill("maya")
    press(lab, "Enter")
    finders.nth(1).fill("redis")
    press(lab, "Enter")
    assert lab.value("one.selection") == "maya-chen"
    assert lab.value("two.selection") != "maya-chen"
    lab.python("one.close()")
    lab.wait_for_idle()
    assert lab.page.locator(".cm-finder").count() == 1
    finders.nth(0).fill("maya")
    press(lab, "Enter")
    assert lab.value("two.selection") == "maya-chen"


def test_hostile_facts_show_literally_and_break_no_layout(lab: Lab) -> None:
    notes = "\n".join(f"ws.session('Class').note({text!r})" for text in HOSTILE)
    lab.run_cells([MADE, f"{notes}\nview = cm.widgets.GraphView(ws)\nview"])
    lab.wait_for_canvas()
    title = lab.page.title()
    for at in range(len(HOSTILE)):
        lab.python(f"view.state.selection = ws.session('Class').note({HOSTILE[at]!r}).id")
        lab.wait_for_idle()
        shown = lab.page.locator(LIVE).last.inner_text().split()
        words = [word for word in HOSTILE[at].split() if word.isprintable()]  # marks that turn the direction are named
        assert set(words) <= set(shown)
        assert lab.overlapping_texts(LIVE) == []
    lab.screenshot("graph-hostile", LIVE)
    assert lab.page.locator(f"{LIVE} img, {LIVE} script").count() == 0
    assert lab.page.title() == title
