"""Pictures, tables and pages: what they show, that no fact becomes markup, and that nothing is fetched or run."""

import math
import re
import xml.etree.ElementTree as ET
from html import escape
from html.parser import HTMLParser
from itertools import combinations

import pytest

from contextmesh.core.model import Object, Relation
from contextmesh.errors import UsageError
from contextmesh.investigation.picture import Camera, to_page, to_svg, to_table
from contextmesh.investigation.scene import Light, Scene, scene_of
from contextmesh.investigation.words import cut, one_line, width_of

SVG = "{http://www.w3.org/2000/svg}"
NARROWEST = 5.0  # pixels of an average character at 12 pixels, in any sans-serif font in use
HARD = [
    "<script>alert(1)</script>",
    "</title></svg><img src=x onerror=alert(1)>",
    "\"quoted\" & 'so' &amp; ]]>",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd (v2)",
    "\u202eturned\u202c and \u2067isolated\u2069",
    "\U0001f469\u200d\U0001f692 fire \U0001f525\U0001f525",
    "averylongword" * 40,
    "line\nbreak\ttab\x00nul\x1b[31m",
    "\u6f22\u5b57\u304b\u306a\u4ea4\u3058\u308a\u6587\u306e\u9577\u3044\u30e9\u30d9\u30eb\u306f\u3069\u3046\u306a\u308b",
    "\ufffe and \uffff",
    "e\u0301\u0301\u0301 combining",
    "   ",
]


def fact(key: str, label: str, kind: str = "Entity", **data: object) -> Object:
    return Object(id=key, type=kind, data={"label": label, **data})


def line(source: str, type_: str, target: str, number: int = 0) -> Relation:
    return Relation(id=f"{source}>{type_}>{target}.{number}", source=source, target=target, type=type_)


def hard() -> Scene:
    rows = [fact(f"h{n}", text, text=text) for n, text in enumerate(HARD)]
    return scene_of(
        [*rows, fact("<b>&\"'", "x")], [line(f"h{n}", "AFFECTS", f"h{n // 2}") for n in range(1, len(rows))]
    )


def crowd(n: int) -> Scene:
    rows = [fact(f"f{at:05}", f"A fact of some length, {at}", "Memory" if at % 3 else "Entity") for at in range(n)]
    return scene_of(rows, [line(f"f{at:05}", "RELATES_TO", f"f{at // 9:05}") for at in range(1, n)])


SMALL = scene_of(
    [fact("api", "Checkout API"), fact("maya", "Maya Chen", entity_type="person"), fact("note", "A note", "Memory")],
    [line("api", "OWNED_BY", "maya"), line("note", "MENTIONS", "api")],
    total=(10, 20),
)


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 - what was just written


def dots(svg: str) -> dict[str, dict[str, str]]:
    """The objects of a picture by what they tell on hover."""
    return {
        dot.findtext(f"{SVG}title"): dot.attrib
        for dot in parsed(svg).iter(f"{SVG}circle")
        if dot.find(f"{SVG}title") is not None
    }


def texts(svg: str) -> list[str]:
    return [text.text or "" for text in parsed(svg).iter(f"{SVG}text")]


def labels(svg: str) -> list[tuple[str, float, float]]:
    """The labels of objects, which alone have a halo, with where they begin, taken as narrow as they can be."""
    found = []
    for text in parsed(svg).iter(f"{SVG}text"):
        if "cm-halo" in text.attrib["class"]:
            name, x = text.text or "", float(text.attrib["x"])
            ends = ("direction" in text.attrib) != ("text-anchor" in text.attrib)
            found.append((name, x - NARROWEST * len(name) if ends else x, float(text.attrib["y"])))
    return found


class Page(HTMLParser):
    """What a browser would make of a page: its tags with their attributes, and its table."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self._cell = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self._cell = self._cell or tag in ("td", "th")

    def handle_endtag(self, tag):
        self._cell = self._cell and tag not in ("td", "th")

    def handle_data(self, data):
        if self._cell:
            self.rows[-1][-1] += data


# the picture


def test_a_picture_names_and_describes_itself():
    root = parsed(to_svg(SMALL, title="Who owns it", description="At length."))
    title, text = root[0], root[1]
    assert (root.attrib["role"], title.tag, title.text) == ("img", f"{SVG}title", "Who owns it")
    assert (text.tag, text.text) == (f"{SVG}desc", "At length.")
    assert root.attrib["aria-labelledby"].split() == [title.attrib["id"], text.attrib["id"]]


def test_by_default_it_says_what_it_shows_and_what_it_leaves_out():
    svg = to_svg(SMALL)
    assert parsed(svg)[0].text == "3 facts and 2 relations"
    assert parsed(svg)[1].text == (
        "Facts by kind: 2 Entity, 1 Memory. Relations by type: 1 MENTIONS, 1 OWNED_BY. "
        "Labelled first: Checkout API, Maya Chen, A note. Not drawn: 7 of 10 facts, 18 of 20 relations. "
        "The arrangement is visual: no distance and no size is a relevance score."
    )
    shown = texts(svg)
    assert {"Entity 2", "Memory 1", "OWNED_BY 1", "MENTIONS 1"} <= set(shown)
    assert "Not drawn: 7 of 10 facts, 18 of 20 relations." in shown
    assert "The arrangement is visual: no distance and no size is a relevance score." in shown


def test_the_same_scene_is_the_same_picture():
    assert to_svg(crowd(50)) == to_svg(crowd(50))


def test_dots_tell_what_they_are():
    assert set(dots(to_svg(SMALL))) == {"Checkout API (Entity)", "Maya Chen (Entity): person", "A note (Memory)"}


def test_the_camera_is_that_of_the_3d_view():
    """A point at depth d and height y lies y / (d tan 22.5°) of half the height above the middle."""
    scene = scene_of([fact("a", "a"), fact("b", "b")], [])
    near = scene.positions.copy()
    near[:] = [(0, 0, 0), (2, 1, 3)]
    placed = Scene(
        ids=scene.ids, kinds=scene.kinds, labels=scene.labels, texts=scene.texts, positions=near, sizes=scene.sizes
    )
    seen = dots(to_svg(placed, camera=Camera(position=(0, 0, 10))))
    (x0, y0), (x1, y1) = ((float(seen[f"{key} (Entity)"]["cx"]), float(seen[f"{key} (Entity)"]["cy"])) for key in "ab")
    assert x0 == 450
    assert (x1 - x0) / (y0 - y1) == pytest.approx(2, abs=0.01)
    r0, r1 = (float(seen[f"{key} (Entity)"]["r"]) for key in "ab")
    assert r1 / r0 == pytest.approx(10 / 7, abs=0.02)
    tall = dots(to_svg(placed, camera=Camera(position=(0, 0, 10)), height=1040))
    assert float(tall["b (Entity)"]["r"]) > 1.9 * r1
    half = (y0 - y1) * 7 * math.tan(math.radians(22.5))
    assert y0 - half == pytest.approx(34, abs=1)  # the top of what is drawn, below the title


def test_what_is_behind_the_camera_is_not_drawn():
    scene = scene_of([fact("a", "a"), fact("b", "b")], [line("a", "AFFECTS", "b")])
    first, second = (tuple(float(part) for part in row) for row in scene.positions)
    beyond = tuple(2 * b - a for a, b in zip(first, second, strict=True))
    assert dots(to_svg(scene, camera=Camera(position=second, target=beyond))) == {}


def test_a_camera_straight_above_sees_all():
    assert len(dots(to_svg(SMALL, camera=Camera(position=(0, 40, 0))))) == 3


@pytest.mark.parametrize("light", [Light(), Light(selection="f00003")])
@pytest.mark.parametrize("n", [10, 40, 400])
def test_labels_lie_over_no_other_and_inside(n, light):
    found = labels(to_svg(crowd(n), light))
    assert len(found) >= (2 if light.selection else 5)
    boxes = [(x, y - 9, x + len(text) * NARROWEST, y) for text, x, y in found]
    for one, other in combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    assert all(left >= 0 and right <= 900 and top >= 0 and bottom <= 520 for left, top, right, bottom in boxes)


def test_large_scenes_have_few_labels_and_small_ones_many():
    assert len(labels(to_svg(crowd(400)))) <= 12
    assert len(labels(to_svg(SMALL))) == 3


def test_everything_drawn_is_inside():
    for dot in dots(to_svg(crowd(300))).values():
        assert 0 < float(dot["cx"]) < 900
        assert 0 < float(dot["cy"]) < 480


def test_a_selection_is_ringed_and_the_rest_is_faded():
    svg = to_svg(SMALL, Light(selection="maya"))
    assert svg.count('class="cm-ring"') == 1
    seen = dots(svg)
    assert "fill-opacity" in seen["A note (Memory)"]
    assert "fill-opacity" not in seen["Checkout API (Entity)"]


def test_changes_are_told_by_signs_too():
    svg = to_svg(SMALL, Light(changes={"api": "changed", "maya": "removed", "note": "added", "elsewhere": "added"}))
    assert set(dots(svg)) == {
        "Checkout API (Entity, changed)",
        "Maya Chen (Entity, removed): person",
        "A note (Memory, added)",
    }
    assert {"+", "~", "\u2212", "+ added 1", "~ changed 1", "\u2212 removed 1"} <= set(texts(svg))


def test_what_is_hidden_is_not_drawn_and_the_legend_says_so():
    svg = to_svg(SMALL, Light(hidden_kinds=frozenset({"Memory"}), hidden_relations=frozenset({"OWNED_BY"})))
    assert set(dots(svg)) == {"Checkout API (Entity)", "Maya Chen (Entity): person"}
    assert {"Memory 1 (hidden)", "OWNED_BY 1 (hidden)"} <= set(texts(svg))
    assert not any(path.attrib.get("stroke-opacity") for path in parsed(svg).iter(f"{SVG}path"))


def test_relations_of_the_same_ends_and_loops_are_all_seen():
    relations = [line("a", "AFFECTS", "b", n) for n in range(3)] + [
        line("b", "AFFECTS", "a"),
        line("a", "AFFECTS", "a"),
    ]
    svg = to_svg(scene_of([fact("a", "a"), fact("b", "b")], relations))
    (path,) = [path.attrib["d"] for path in parsed(svg).iter(f"{SVG}path") if "stroke-opacity" in path.attrib]
    ways = re.findall(r"M[^M]+", path)
    assert len(ways) == 5
    bends = {way.split("Q")[1].split(" ")[0] for way in ways if "Q" in way}
    assert len(bends) == 4


def test_of_very_many_the_largest_are_drawn_and_the_picture_says_so():
    svg = to_svg(crowd(3000))
    assert len(dots(svg)) == 1000
    assert "This picture draws the largest 1,000 of these 3,000 facts." in texts(svg)
    assert len(svg) < 300_000


def test_an_empty_scene_says_that_there_is_nothing():
    svg = to_svg(scene_of([], []))
    assert "Nothing to draw." in texts(svg)
    assert dots(svg) == {}


@pytest.mark.parametrize(("name", "value"), [("width", 199), ("height", 8001), ("width", 900.0), ("height", True)])
def test_sizes_out_of_range_are_refused(name, value):
    with pytest.raises(UsageError, match=f"{name} is {value}; expected a whole number of pixels from 200 to 8,000"):
        to_svg(SMALL, **{name: value})


def test_a_picture_follows_the_notebook_or_the_system_unless_told():
    auto = to_svg(SMALL)
    assert 'class="cm-svg cm-auto"' in auto
    assert "@media (prefers-color-scheme:dark)" in auto
    assert "var(--jp-layout-color0,#111111)" in auto
    assert 'class="cm-svg cm-dark"' in to_svg(SMALL, theme="dark")


# the table and the page


def test_a_table_has_what_the_picture_shows():
    page = Page(to_table(SMALL))
    assert page.rows == [
        ["Label", "Kind", "Text", "Relations", "Id"],
        ["Checkout API", "Entity", "", "OWNED_BY → Maya ChenMENTIONS ← A note", "api"],
        ["Maya Chen", "Entity", "person", "OWNED_BY ← Checkout API", "maya"],
        ["A note", "Memory", "", "MENTIONS → Checkout API", "note"],
    ]
    scopes = [attrs.get("scope") for tag, attrs in page.tags if tag == "th"]
    assert scopes == ["col"] * 5 + ["row"] * 3
    assert "Not drawn: 7 of 10 facts, 18 of 20 relations." in to_table(SMALL)


def test_facts_stand_before_the_records_of_the_machinery():
    scene = scene_of([fact("a", "A", "Agent"), fact("z", "Z", "Memory"), fact("b", "B", "Run")], [])
    assert [row[0] for row in Page(to_table(scene)).rows[1:]] == ["Z", "A", "B"]


def test_a_long_table_is_cut_and_says_so():
    html = to_table(crowd(600))
    assert len(Page(html).rows) == 501
    assert "and 100 more" in html
    assert "and 4 more" in html  # the second fact has ten relations, and shows six of them


def test_a_page_fetches_nothing_and_runs_nothing():
    html = to_page(hard(), title="An incident")
    page = Page(html)
    names = {tag for tag, _ in page.tags}
    assert {"svg", "table", "h1", "figure"} <= names
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "image", "use"}
    assert not any(
        key in ("src", "href", "xlink:href", "data", "action") or key.startswith("on")
        for _, a in page.tags
        for key in a
    )
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg\")", html)
    (policy,) = [a["content"] for tag, a in page.tags if tag == "meta" and "content" in a and "http-equiv" in a]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert html.startswith('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">')


# texts from anywhere


def test_hard_texts_are_shown_and_become_no_markup():
    svg = to_svg(hard(), title=HARD[0], description=HARD[1])
    names = {element.tag.removeprefix(SVG) for element in parsed(svg).iter()}
    assert names <= {"svg", "title", "desc", "style", "rect", "path", "g", "circle", "text"}
    told = set(dots(svg))
    assert f"{HARD[0]} (Entity): {HARD[0]}" in told
    assert f"{HARD[1]} (Entity): {HARD[1]}" in told
    assert parsed(svg)[0].text == HARD[0]
    rows = {row[4]: row for row in Page(to_table(hard())).rows[1:]}
    assert rows["h0"][:3] == [HARD[0], "Entity", HARD[0]]
    assert rows["<b>&\"'"][0] == "x"
    assert rows["h11"][0] == "h11"  # blanks are no label


def test_no_text_turns_the_direction_of_another():
    svg, html = to_svg(hard()), to_page(hard())
    assert not set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069") & {*svg, *html}
    assert html.count("<bdi>") > len(HARD)
    turned = [text for text in parsed(svg).iter(f"{SVG}text") if text.attrib.get("direction") == "rtl"]
    assert [text.text for text in turned] == [HARD[3]]
    assert all("text-anchor" not in text.attrib or text.attrib["text-anchor"] == "end" for text in turned)


def test_a_right_to_left_text_lies_where_a_left_to_right_one_would():
    """In such a text the start is on the right, so that only its end is on the left."""
    one, other = (to_svg(SMALL, title=title) for title in ("abc", "\u05d0\u05d1\u05d2"))
    heading, turned = (
        next(row for row in parsed(svg).iter(f"{SVG}text") if row.get("font-weight")) for svg in (one, other)
    )
    assert heading.attrib["x"] == turned.attrib["x"]
    assert ("text-anchor" in heading.attrib, turned.attrib["text-anchor"]) == (False, "end")


def test_long_labels_are_cut():
    longest = max((text for text, _, _ in labels(to_svg(hard()))), key=len)
    assert len(longest) < 40
    assert longest.endswith("…")


@pytest.mark.parametrize("text", HARD)
def test_a_line_is_one_line_that_xml_can_carry(text):
    made = one_line(text, 50)
    assert len(made) <= 50
    assert made == " ".join(made.split())
    assert (ET.fromstring(f"<a>{escape(made)}</a>").text or "") == made  # noqa: S314


def test_a_cut_never_parts_what_a_reader_sees_as_one():
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    for most in range(1, 12):
        kept = one_line(f"ab {family} e\u0301 {family}", most).removesuffix("…")
        assert not kept.endswith(("\u200d", "\U0001f468", "\U0001f469", "e"))


def test_a_cut_line_fits():
    for text in HARD:
        for width in (20, 60, 200):
            assert width_of(cut(one_line(text, 500), width, 12), 12) <= width
    assert cut("short", 200, 12) == "short"
