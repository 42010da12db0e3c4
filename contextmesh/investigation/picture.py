"""A scene as a still picture, as a table and as a page: SVG and HTML that need no kernel, no network and no script."""

from collections.abc import Iterator
from html import escape
from typing import Literal

from contextmesh.core.display import counted
from contextmesh.errors import UsageError
from contextmesh.investigation.drawing import FONT, MARGIN, NOTE, Camera, Drawing, text_at
from contextmesh.investigation.facts import digest
from contextmesh.investigation.light import Light
from contextmesh.investigation.palette import INK, PAPER, SOFT
from contextmesh.investigation.scene import MACHINERY, Scene
from contextmesh.investigation.words import cut, one_line

__all__ = ["Camera", "described", "headline", "to_page", "to_svg", "to_table"]

MAX_ROWS = 500  # of a table, so that a notebook that keeps it stays small
MAX_RELATIONS = 6  # of one object in a table
SMALLEST, LARGEST = 200, 8000  # pixels
COLUMNS = {"Label": 20, "Kind": 9, "Text": 28, "Relations": 28, "Id": 15}  # and how wide they are, in percent
TYPEFACE = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"
Theme = Literal["auto", "light", "dark"]
PLAIN = Light()


def to_svg(
    scene: Scene,
    light: Light = PLAIN,
    *,
    width: int = 900,
    height: int = 520,
    camera: Camera | None = None,
    title: str | None = None,
    description: str | None = None,
    theme: Theme = "auto",
) -> str:
    """Return a scene as an SVG picture with a legend; every text in it is escaped.

    Args:
        scene: what to draw; of more than 1,000 objects the largest, and the picture says so.
        light: what is lit up and what is hidden; its theme does not count here.
        width: in pixels, 200 to 8,000.
        height: in pixels, 200 to 8,000, the legend included.
        camera: from where it is seen; by default from straight ahead, everything in view.
        title: what the picture is of, in a few words, which stand above it; by default how much it shows.
        description: the same at length, for readers who do not see it; by default what it shows the most of.
        theme: `auto` follows the notebook, or the reader's system; `light` and `dark` stay.

    Raises:
        UsageError: a width or height outside its range.
    """
    title = one_line(headline(scene) if title is None else title, 120)
    description = one_line(described(scene, light) if description is None else description, 2000)
    heading = text_at(cut(title, width - 2 * MARGIN, FONT), MARGIN, MARGIN + FONT - 2, bold=True)
    drawing = _drawing(scene, light, camera, width=width, height=height, top=MARGIN + FONT + 8)
    return _svg(drawing, (width, height), title, description, theme, heading=heading)


def _drawing(scene: Scene, light: Light, camera: Camera | None, *, width: int, height: int, top: float) -> Drawing:
    for name, value in (("width", width), ("height", height)):
        if type(value) is not int or not SMALLEST <= value <= LARGEST:
            msg = f"{name} is {value!r}; expected a whole number of pixels from {SMALLEST} to {LARGEST:,}"
            raise UsageError(msg)
    return Drawing(scene, light, camera or Camera(), width=width, height=height, top=top)


def _svg(
    drawing: Drawing, size: tuple[int, int], title: str, description: str, theme: Theme, *, heading: str = ""
) -> str:
    width, height = size
    name = f"cm-{digest(title, description, length=10)}"
    root = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="cm-svg cm-{theme}" role="img" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" aria-labelledby="{name}-title {name}-text" '
        f'font-family="{TYPEFACE}" font-size="{FONT}" style="max-width: 100%; height: auto">'
    )
    parts = (
        root,
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-text">{escape(description)}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="cm-paper" width="100%" height="100%" fill="{PAPER["light"]}"/>',
        *drawing.edges(),
        *drawing.nodes(),
        heading,
        *drawing.labels(),
        *drawing.legend(),
        "</svg>",
    )
    return "\n".join(part for part in parts if part)


def headline(scene: Scene) -> str:
    """Say how much a scene shows."""
    return f"{counted(len(scene.ids), 'facts')} and {counted(len(scene.relation_ids), 'relations')}"


def described(scene: Scene, light: Light = PLAIN) -> str:
    """Say what a scene shows: how many of each kind and type, what is labelled first, what is left out."""
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in scene.kind_counts().items())
    types = ", ".join(f"{n:,} {name}" for name, n in scene.relation_counts().items())
    first = ", ".join(scene.labels[at] for at in scene.labelled(light, 5))
    told = (
        f"Facts by kind: {kinds}" if kinds else "Nothing to draw",
        f"Relations by type: {types}" if types else "",
        f"Labelled first: {first}" if first else "",
        scene.left_out,
        NOTE if kinds else "",
    )
    return " ".join(f"{part.rstrip('.')}." for part in told if part)


def to_table(scene: Scene, *, most: int = MAX_ROWS) -> str:
    """Return what a scene shows as an HTML table: label, kind, text, relations, id; every text is escaped.

    Args:
        scene: what to list: facts before the machinery's records, then by kind, label and id.
        most: rows at most; how many are missing is said below.
    """
    keys = [
        (kind in MACHINERY, kind, *names) for kind, *names in zip(scene.kinds, scene.labels, scene.ids, strict=True)
    ]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    lines = _relations_in_words(scene)
    head = "".join(f'<th scope="col" style="width: {width}%">{name}</th>' for name, width in COLUMNS.items())
    body = "".join(_row(scene, at, lines.get(at, [])) for at in order[:most])
    more = f"<p>and {len(order) - most:,} more</p>" if len(order) > most else ""
    grid = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>" if order else ""
    said = "".join(f"<p>{escape(text)}</p>" for text in ([f"{scene.left_out}."] if scene.left_out else []))
    caption = f"<caption>{escape(headline(scene))}</caption>"
    return f'<style>{TABLE_STYLE}</style><div class="cm-table"><table>{caption}{grid}</table>{more}{said}</div>'


def _row(scene: Scene, at: int, lines: list[str]) -> str:
    more = [f"and {len(lines) - MAX_RELATIONS:,} more"] if len(lines) > MAX_RELATIONS else []
    relations = "<br>".join(f"<bdi>{escape(line)}</bdi>" for line in [*lines[:MAX_RELATIONS], *more])
    cells = "".join(f"<td><bdi>{escape(text)}</bdi></td>" for text in (scene.kinds[at], scene.texts[at]))
    label, key = (f"<bdi>{escape(text)}</bdi>" for text in (scene.labels[at], one_line(scene.ids[at], 200)))
    return f'<tr><th scope="row">{label}</th>{cells}<td>{relations}</td><td>{key}</td></tr>'


def _relations_in_words(scene: Scene) -> dict[int, list[str]]:
    """Return the relations of each object as its row tells them, those that lead from it first."""
    out: dict[int, list[str]] = {}
    into: dict[int, list[str]] = {}
    for (source, target), name in zip(scene.ends.tolist(), scene.relation_types, strict=True):
        out.setdefault(source, []).append(f"{name} → {scene.labels[target]}")
        into.setdefault(target, []).append(f"{name} ← {scene.labels[source]}")
    return {at: sorted(out.get(at, [])) + sorted(into.get(at, [])) for at in {*out, *into}}


def to_page(
    scene: Scene,
    light: Light = PLAIN,
    *,
    width: int = 900,
    height: int = 520,
    camera: Camera | None = None,
    title: str | None = None,
    description: str | None = None,
    theme: Theme = "auto",
) -> str:
    """Return one HTML file with the picture and the table, which asks the network for nothing and runs no script.

    The arguments are those of `to_svg`.
    """
    title = one_line(headline(scene) if title is None else title, 120)
    description = one_line(described(scene, light) if description is None else description, 2000)
    drawing = _drawing(scene, light, camera, width=width, height=height, top=MARGIN)
    return PAGE.format(
        title=escape(title),
        theme=f"cm-{theme}",
        style=f"{STYLE}{PAGE_STYLE}",
        svg=_svg(drawing, (width, height), title, description, theme),
        table=to_table(scene),
    )


def _style() -> Iterator[str]:
    """Yield the colours of paper and ink: the notebook's own where there are any, else the theme's."""
    names = (
        ("paper", PAPER, "layout-color0"),
        ("ink", INK, "content-font-color1"),
        ("soft", SOFT, "content-font-color2"),
    )
    fixed, auto = (
        {
            theme: "".join(f"--cm-{name}:{form.format(jp=jp, color=colors[theme])};" for name, colors, jp in names)
            for theme in PAPER
        }
        for form in ("{color}", "var(--jp-{jp},{color})")
    )
    yield from (f".cm-{theme}{{{rules}}}" for theme, rules in fixed.items())
    yield f".cm-auto{{{auto['light']}}}@media (prefers-color-scheme:dark){{.cm-auto{{{auto['dark']}}}}}"
    yield from (f".cm-svg .cm-{name}{{fill:var(--cm-{name})}}" for name, _, _ in names)
    yield ".cm-svg .cm-halo{stroke:var(--cm-paper)}.cm-svg .cm-ring{stroke:var(--cm-ink)}"


STYLE = "".join(_style())
TABLE_STYLE = """
.cm-table {font-size: 13px; line-height: 1.45; color: var(--jp-content-font-color1, inherit);}
.cm-table table {border-collapse: collapse; width: 100%; table-layout: fixed; background: transparent;}
.cm-table caption {caption-side: top; text-align: left; padding: 4px 0; font-weight: 600;}
.cm-table th, .cm-table td {text-align: left !important; vertical-align: top; padding: 4px 14px 4px 0;
  overflow-wrap: anywhere; white-space: normal; max-width: none; font-weight: normal;
  border-bottom: 1px solid var(--jp-border-color2, rgba(127, 127, 127, 0.35));}
.cm-table thead th {font-weight: 600;}
.cm-table p {margin: 6px 0;}
"""
PAGE_STYLE = """
body.cm-page {margin: 0 auto; padding: 24px; max-width: 1100px; background: var(--cm-paper); color: var(--cm-ink);
  font: 14px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif;}
.cm-page h1 {font-size: 20px; margin: 0 0 12px; overflow-wrap: anywhere; unicode-bidi: plaintext;}
.cm-page figure {margin: 0 0 16px;}
"""
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body class="cm-page {theme}">
<h1>{title}</h1>
<figure>
{svg}
</figure>
{table}
</body>
</html>
"""
