"""What the other tests here rely on: a check that finds nothing must be one that would have found something."""

from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, Error, Page

from tests.browser.lab import Lab, painted, without_ids
from tests.browser.looks import faint_texts, overlapping_texts

# One red square of 80 pixels in the middle of a white canvas of 200, which says where it was clicked.
SCENE = """
import ipywidgets, pythreejs as three
square = three.Mesh(three.PlaneBufferGeometry(80, 80), three.MeshBasicMaterial(color='#ff0000'))
camera = three.OrthographicCamera(-100, 100, 100, -100, .1, 10, position=[0, 0, 5])
picker = three.Picker(controlling=square, event='click')
points = []
picker.observe(lambda change: points.append(change.new), 'point')
three.Renderer(camera=camera, scene=three.Scene(children=[square, camera], background='#ffffff'),
               controls=[picker], width=200, height=200)
"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    yield page
    page.close()


def test_without_webgl_there_is_none_and_the_notebook_still_works(lab_without_webgl: Lab) -> None:
    lab_without_webgl.run_cells(["print(6 * 7)"])
    assert not lab_without_webgl.has_webgl()
    assert lab_without_webgl.outputs()[0][0]["text"] == "42\n"


def test_the_canvas_is_seen_and_can_be_clicked(lab: Lab, errors_of_an_empty_notebook: set[str]) -> None:
    lab.run_cells([SCENE])
    assert lab.has_webgl()
    lab.wait_for_canvas()
    assert lab.canvas_pixels() == pytest.approx(80 * 80 / 200**2, abs=0.01)
    lab.click_canvas(100 + 30, 100 - 20)
    assert lab.value("points[-1]") == pytest.approx([30, 20, 0], abs=1)
    assert set(lab.errors) <= errors_of_an_empty_notebook
    assert sum(lab.received) > 1000
    assert lab.requests_elsewhere == []


def test_an_error_in_a_cell_is_an_error_here(lab: Lab) -> None:
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        lab.run_cells(["1 / 0"])
    with pytest.raises(AssertionError, match="NameError"):
        lab.python("nowhere")


def test_console_errors_are_seen(lab: Lab, errors_of_an_empty_notebook: set[str]) -> None:
    lab.run_cells(["from IPython.display import Javascript, display\ndisplay(Javascript('console.error(\"seen\")'))"])
    assert set(lab.errors) - errors_of_an_empty_notebook == {"seen"}


ONE_LINE = "width: 30px; white-space: nowrap; overflow:"


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<p>first</p><p>second</p>", []),
        ("<p style='margin: 0'>first</p><p style='margin: -12px 0 0'>second</p>", ['"first" overlaps "second"']),
        ("<div style='position: absolute'>under</div><div>on top</div>", ['"under" overlaps "on top"']),
        ("<svg height='30'><text y='20'>one</text><text y='20' x='5'>two</text></svg>", ['"one" overlaps "two"']),
        ("<svg width='20' height='30'><text y='20'>too long</text></svg>", ['"too long" is cut off by svg']),
        (f"<div class='a' style='{ONE_LINE} hidden'>too long</div>", ['"too long" is cut off by div.a']),
        ("<div style='height: 9px; overflow: hidden'>too high</div>", ['"too high" is cut off by div']),
        (f"<div style='{ONE_LINE} auto'>can be scrolled to</div>", []),
        ("<div style='display: none'>hidden</div><div style='visibility: hidden'>hidden</div>", []),
        ("<div style='position: absolute; width: 1px; height: 1px; overflow: hidden'>for screen readers</div>", []),
    ],
)
def test_texts_that_overlap_or_are_cut_off_are_found(page: Page, html: str, found: list[str]) -> None:
    page.set_content(html)
    assert overlapping_texts(page, "body") == found


def test_an_ellipsis_is_fair_where_a_title_has_the_text_but_not_in_a_button(page: Page) -> None:
    style = "width: 50px; overflow: hidden; white-space: nowrap; text-overflow: ellipsis; display: block"
    page.set_content(
        f"<div style='{style}' title='a long text'>a long text</div><div style='{style}'>another long text</div>"
        f"<button style='{style}' title='a long button'>a long button</button>"
    )
    assert overlapping_texts(page, "body") == [
        '"another long text" is cut off by div',
        '"a long button" is cut off by button',
    ]


def test_a_check_of_nothing_is_an_error(page: Page) -> None:
    with pytest.raises(Error, match=r"nothing on the page matches \.missing"):
        overlapping_texts(page, ".missing")


def test_contrasts_are_those_of_the_standard(page: Page) -> None:
    # Ratios from WCAG's definition: #767676 on white is 4.54, #777777 is 4.48, black on white 21.
    page.set_content(
        "<p style='color: #767676'>enough</p><p style='color: #777'>faint</p>"
        "<p style='color: rgb(0 0 0 / 0.4)'>thin</p>"
        "<div style='background: #000'><p style='color: #222'>dark</p><button disabled>disabled</button></div>"
    )
    assert faint_texts(page, "body") == [
        '"faint" has a contrast of 4.5, below 4.5',
        '"thin" has a contrast of 2.8, below 4.5',
        '"dark" has a contrast of 1.3, below 4.5',
    ]


def test_painted_counts_what_is_not_background() -> None:
    image = np.full((10, 10, 3), 255, dtype=np.uint8)
    image[:2, :5] = (200, 0, 0)
    image[9, 9] = (250, 250, 250)  # too little to be noticed
    assert painted(image) == 0.1


def test_console_lines_are_compared_without_what_differs() -> None:
    line = "GET http://127.0.0.1:4711/api/kernels/0b7c1a52-77aa-4bc1-9f0e-aa11bb22cc33 failed"
    assert without_ids(line) == "GET URL failed"
    assert without_ids("model 0b7c1a5277aa4bc1 not found") == "model ID not found"
