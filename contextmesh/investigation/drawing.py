"""The parts of a still picture: a scene as a camera sees it, its lines, dots and labels, and the legend below."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt

from contextmesh.investigation.light import Light
from contextmesh.investigation.palette import (
    CHANGE_COLORS,
    DASHES,
    INK,
    KIND_COLORS,
    PAPER,
    RELATION_COLORS,
    SOFT,
    color_of,
)
from contextmesh.investigation.scene import Scene
from contextmesh.investigation.words import cut, width_of

MAX_DRAWN = 1000  # objects in one still picture, so that a notebook that keeps it stays small; the largest are drawn
MAX_ARROWS = 250  # relations up to which each has an arrowhead
FEW, LABELS = 40, 12  # in a scene of few objects all that have room for it get a label, else this many
FONT, LABEL_WIDTH = 12, 190  # pixels
LINE, MARGIN = 20.0, 14.0
NEAREST = 0.05  # of the radius: what is nearer to the camera, or behind it, is not seen
RING = 4.5  # pixels around a dot for its ring
BOW = 16.0  # pixels between two relations of the same ends
STRONG, WEAK, FADED = 0.85, 0.3, 0.15  # how strong a line is; the more there are, the weaker
NOTE = "The arrangement is visual: no distance and no size is a relevance score."
SIGNS = {"added": "+", "changed": "~", "removed": "\u2212"}
Floats = npt.NDArray[np.float64]
Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True, slots=True, kw_only=True)
class Camera:
    """From where a scene is seen, as the 3D view's camera: in perspective, upright.

    Args:
        position: where it is; None for straight ahead, at a distance from which everything is seen.
        target: what it looks at.
        fov: vertical field of view in degrees.
    """

    position: tuple[float, float, float] | None = None
    target: tuple[float, float, float] = (0.0, 0.0, 0.0)
    fov: float = 45.0

    def seen(self, positions: npt.NDArray[np.floating], radius: float) -> Floats:
        """Return where positions are as the camera sees them: to the right, up, and away from it."""
        eye = np.array(self.position or (0.0, 0.0, 2.9 * radius), float)
        away = np.array(self.target, float) - eye
        away /= max(float(np.sqrt((away * away).sum())), 1e-9)
        right = np.cross(away, (0.0, 1.0, 0.0))
        length = float(np.sqrt((right * right).sum()))
        right = right / length if length > 1e-9 else np.array((1.0, 0.0, 0.0))  # noqa: PLR2004 - straight from above
        axes = np.stack([right, np.cross(right, away), away])
        return np.asarray((positions - eye) @ axes.T, float)


class Drawing:
    """One scene in one light on a sheet of paper; each part of it as SVG."""

    def __init__(self, scene: Scene, light: Light, camera: Camera, *, width: int, height: int, top: float) -> None:
        self._scene = scene
        self._light = light
        self._width = width
        self._keys = list(_flowed(_legend(scene, light), width))
        self._below = height - MARGIN - LINE * len(self._keys)
        self._top, self._bottom = top, self._below - MARGIN
        self._lit = scene.lit(light)
        self._focused = not bool(self._lit.all() and scene.lit_edges(light).all())
        self._project(camera)

    def _project(self, camera: Camera) -> None:
        seen = camera.seen(self._scene.positions, self._scene.radius)
        nearest = NEAREST * self._scene.radius
        depth = np.maximum(seen[:, 2], nearest)
        scale = max(1.0, self._bottom - self._top) / 2 / np.tan(np.radians(camera.fov / 2)) / depth
        middle = np.array([self._width / 2, (self._top + self._bottom) / 2])
        self._at: Floats = middle + seen[:, :2] * np.array([1.0, -1.0]) * scale[:, None]
        self._radii: Floats = np.maximum(1.5, self._scene.node_sizes(self._light) * scale / 2)
        self._depth = depth
        self._shown = _largest(self._scene, self._scene.visible(self._light) & (seen[:, 2] > nearest))

    # lines

    def edges(self) -> Iterator[str]:
        """Yield the relations, the faded ones first; all of one look are one path."""
        groups: dict[tuple[bool, str, str], tuple[list[str], list[str]]] = {}
        lit, colors = self._scene.lit_edges(self._light), RELATION_COLORS
        drawn = [at for at in np.flatnonzero(self._scene.visible_edges(self._light)).tolist() if self._is_drawn(at)]
        arrows = len(drawn) <= MAX_ARROWS
        strength = STRONG if self._focused else max(WEAK, min(STRONG, MAX_ARROWS / max(1, len(drawn))))
        for at, bow in self._bowed(drawn):
            change = self._light.changes.get(self._scene.relation_ids[at])
            type_ = self._scene.relation_types[at]
            color = CHANGE_COLORS[change] if change else color_of(type_, colors)
            dash = ("4 3" if change == "removed" else "") if change else DASHES.get(type_, "")
            lines, heads = groups.setdefault((bool(lit[at]), color, dash), ([], []))
            line, head = self._line(at, bow)
            lines.append(line)
            if arrows or (self._focused and lit[at]):
                heads.append(head)
        for (is_lit, color, dash), (lines, heads) in sorted(groups.items()):
            yield self._path(lines, heads, color, dash, strength if is_lit else FADED)

    def _is_drawn(self, edge: int) -> bool:
        return bool(self._shown[self._scene.ends[edge]].all())

    def _bowed(self, drawn: Sequence[int]) -> Iterator[tuple[int, float]]:
        """Yield each relation with how far it bows aside, so that none hides another of the same ends."""
        same: dict[tuple[int, ...], list[int]] = {}
        for at in drawn:
            same.setdefault(tuple(sorted(self._scene.ends[at].tolist())), []).append(at)
        for (low, _), group in same.items():
            for number, at in enumerate(group):
                aside = (number - (len(group) - 1) / 2) * BOW
                yield at, aside if self._scene.ends[at][0] == low else -aside

    def _line(self, edge: int, bow: float) -> tuple[str, str]:
        """Return one relation as path data, from rim to rim, and its arrowhead."""
        source, target = self._scene.ends[edge].tolist()
        begin, end = self._at[source], self._at[target]
        along = end - begin
        length = float(np.hypot(*along))
        if length < 1e-6:  # noqa: PLR2004 - in one place: a loop
            r = self._radii[source]
            return (
                f"M{begin[0] - r / 2:.1f},{begin[1] - r:.1f}c{-r:.1f},{-3 * r:.1f} {2 * r:.1f},{-3 * r:.1f} {r:.1f},0",
                "",
            )
        aside = np.array([-along[1], along[0]]) / length
        bend = (begin + end) / 2 + 2 * bow * aside
        first, last = _toward(begin, bend, self._radii[source]), _toward(end, bend, self._radii[target] + 1)
        path = f"M{first[0]:.1f},{first[1]:.1f}"
        curve = f"Q{bend[0]:.1f},{bend[1]:.1f} " if bow else "L"
        wings = [_toward(last, bend, 6) + side * 2.6 * aside for side in (1, -1)]
        head = "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in (wings[0], last, wings[1])) + "z"
        room = self._radii[source] + self._radii[target] + 8
        return f"{path}{curve}{last[0]:.1f},{last[1]:.1f}", head if length > room else ""

    def _path(self, lines: list[str], heads: list[str], color: str, dash: str, strength: float) -> str:
        width = 1.8 if self._focused and strength > FADED else 1.1
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        line = (
            f'<path d="{"".join(lines)}" fill="none" stroke="{color}" stroke-width="{width}" '
            f'stroke-opacity="{strength:.2f}"{dashes}/>'
        )
        points = "".join(heads)
        return line + (f'<path d="{points}" fill="{color}" fill-opacity="{strength:.2f}"/>' if points else "")

    # dots

    def nodes(self) -> Iterator[str]:
        """Yield the objects, the faded ones first, then far ones before near ones; each tells what it is."""
        order = sorted(
            np.flatnonzero(self._shown).tolist(), key=lambda at: (bool(self._lit[at]), -float(self._depth[at]), at)
        )
        yield f'<g class="cm-halo" stroke="{PAPER["light"]}" stroke-width="0.8">'
        for at in order:
            yield self._dot(at)
        yield "</g>"
        yield from (self._sign(at) for at in order if self._scene.ids[at] in self._light.changes)
        yield from map(self._ring, self._ringed())

    def _dot(self, at: int) -> str:
        scene, (x, y) = self._scene, self._at[at]
        change = self._light.changes.get(scene.ids[at])
        color = CHANGE_COLORS[change] if change else color_of(scene.kinds[at], KIND_COLORS)
        faded = "" if self._lit[at] else ' fill-opacity="0.28"'
        told = f"{scene.labels[at]} ({scene.kinds[at]}{f', {change}' if change else ''})"
        told = f"{told}: {scene.texts[at]}" if scene.texts[at] else told
        return (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{self._radii[at]:.1f}" fill="{color}"{faded}>'
            f"<title>{escape(told)}</title></circle>"
        )

    def _sign(self, at: int) -> str:
        """Return what tells a change to those who do not see its colour."""
        (x, y), size = self._at[at], max(9.0, 1.7 * float(self._radii[at]))
        sign = SIGNS[self._light.changes[self._scene.ids[at]]]
        inside = self._radii[at] >= size / 2.4
        place = x if inside else x - self._radii[at] - size / 2.4
        fill = 'fill="#ffffff"' if inside else f'class="cm-ink" fill="{INK["light"]}"'
        return (
            f'<text x="{place:.1f}" y="{y + size * 0.35:.1f}" font-size="{size:.0f}" font-weight="700" '
            f'text-anchor="middle" {fill}>{sign}</text>'
        )

    def _ringed(self) -> list[int]:
        """Return what has a ring around it: the selection and the hits of a search."""
        keys = {self._light.selection, *self._light.hits}
        return [at for at in np.flatnonzero(self._shown).tolist() if self._scene.ids[at] in keys]

    def _dot_box(self, at: int) -> Box:
        (x, y), reach = self._at[at].tolist(), float(self._radii[at]) + RING
        return x - reach, y - reach, x + reach, y + reach

    def _ring(self, at: int) -> str:
        (x, y), width = self._at[at], 2 if self._scene.ids[at] == self._light.selection else 1.2
        radius = self._radii[at] + RING - width
        return (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" class="cm-ring" fill="none" '
            f'stroke="{INK["light"]}" stroke-width="{width}"/>'
        )

    # labels

    def labels(self) -> Iterator[str]:
        """Yield the labels that have room, the most important first; none lies over another."""
        most = FEW if len(self._scene.ids) <= FEW else LABELS
        taken = [self._dot_box(at) for at in self._ringed()]
        for at in self._scene.labelled(self._light, most):
            if not self._shown[at]:
                continue
            text = cut(self._scene.labels[at], LABEL_WIDTH, FONT)
            box = self._free(at, text, taken)
            if box:
                taken.append(box)
                bold = self._scene.ids[at] == self._light.selection
                before = box[2] <= self._at[at][0]  # then it ends beside its dot
                yield text_at(text, (box[2] if before else box[0]), box[3] - 4, bold=bold, halo=True, ends=before)

    def _free(self, at: int, text: str, taken: list[Box]) -> Box | None:
        """Return where a label goes: where it lies over no other label, and over as few dots as can be."""
        boxes = [
            box
            for box in self._around(at, text)
            if self._fits(box) and not any(_overlap(box, other) for other in taken)
        ]
        return min(boxes, key=self._covered, default=None)

    def _around(self, at: int, text: str) -> Iterator[Box]:
        (x, y), gap = self._at[at].tolist(), float(self._radii[at]) + RING
        wide, high = width_of(text, FONT) + 4, FONT + 4.0
        yield from (
            (left, top, left + wide, top + high)
            for left, top in (
                (x + gap, y - high / 2),
                (x - gap - wide, y - high / 2),
                (x - wide / 2, y - gap - high),
                (x - wide / 2, y + gap),
                (x + gap * 0.7, y - gap * 0.7 - high),
                (x + gap * 0.7, y + gap * 0.7),
                (x - gap * 0.7 - wide, y - gap * 0.7 - high),
                (x - gap * 0.7 - wide, y + gap * 0.7),
            )
        )

    def _fits(self, box: Box) -> bool:
        inside = box[0] >= 0 and box[2] <= self._width
        return inside and self._top <= box[1] and box[3] <= self._bottom + MARGIN / 2

    def _covered(self, box: Box) -> int:
        across = np.clip(self._at[:, 0], box[0], box[2]) - self._at[:, 0]
        down = np.clip(self._at[:, 1], box[1], box[3]) - self._at[:, 1]
        return int(((across * across + down * down < self._radii * self._radii) & self._shown).sum())

    # legend

    def legend(self) -> Iterator[str]:
        """Yield what the colours mean, with counts, then what is not drawn and what the arrangement is not."""
        for number, row in enumerate(self._keys):
            y = self._below + LINE * number + FONT
            for x, key in row:
                yield key.mark.replace("X", f"{x + 6:.1f}").replace("Y", f"{y - 4:.1f}") if key.mark else ""
                text = cut(key.text, self._width - MARGIN - x - key.indent, FONT)
                yield text_at(text, x + key.indent, y, soft=key.is_soft)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    """One entry of a legend: a mark, drawn around (X, Y), and what it means."""

    text: str
    mark: str = ""
    is_soft: bool = False
    begins_row: bool = False

    @property
    def indent(self) -> float:
        return 18.0 if self.mark else 0.0

    @property
    def width(self) -> float:
        return self.indent + width_of(self.text, FONT) + 16


def _legend(scene: Scene, light: Light) -> Iterator[_Key]:
    for number, (kind, n) in enumerate(scene.kind_counts().items()):
        dot = f'<circle cx="X" cy="Y" r="5" fill="{color_of(kind, KIND_COLORS)}"/>'
        yield _key(kind, n, dot, hidden=kind in light.hidden_kinds, first=not number)
    for number, (name, n) in enumerate(scene.relation_counts().items()):
        dash = f' stroke-dasharray="{DASHES[name]}"' if name in DASHES else ""
        color = color_of(name, RELATION_COLORS)
        line = f'<path d="MX,Ym-6,0h14" stroke="{color}" stroke-width="2"{dash}/>'
        yield _key(name, n, line, hidden=name in light.hidden_relations, first=not number)
    drawn = {*scene.ids, *scene.relation_ids}
    found = [change for key, change in light.changes.items() if key in drawn]
    for number, change in enumerate(name for name in CHANGE_COLORS if name in found):
        dot = f'<circle cx="X" cy="Y" r="5" fill="{CHANGE_COLORS[change]}"/>'
        yield _key(f"{SIGNS[change]} {change}", found.count(change), dot, hidden=False, first=not number)
    yield from (_Key(text=text, is_soft=True, begins_row=True) for text in notes(scene))


def notes(scene: Scene) -> list[str]:
    """Return what a reader must know of a picture: what it leaves out, and what its arrangement does not mean."""
    n = len(scene.ids)
    largest = f"This picture draws the largest {MAX_DRAWN:,} of these {n:,} facts." if n > MAX_DRAWN else ""
    left_out = f"{scene.left_out}." if scene.left_out else ""
    return [text for text in (left_out, largest, NOTE if n else "Nothing to draw.") if text]


def _key(name: str, n: int, mark: str, *, hidden: bool, first: bool) -> _Key:
    return _Key(text=f"{name} {n:,}{' (hidden)' if hidden else ''}", mark=mark, is_soft=hidden, begins_row=first)


def _flowed(keys: Iterator[_Key], width: int) -> Iterator[list[tuple[float, _Key]]]:
    """Yield rows of entries with their places, as many in a row as fit."""
    row: list[tuple[float, _Key]] = []
    x = MARGIN
    for key in keys:
        if row and (key.begins_row or x + key.width > width):
            yield row
            row, x = [], MARGIN
        row.append((x, key))
        x += key.width
    if row:
        yield row


def text_at(
    text: str, x: float, y: float, *, bold: bool = False, soft: bool = False, halo: bool = False, ends: bool = False
) -> str:
    """Return one line of text that begins at `x`, or ends there, counted from the left whichever way it is written."""
    first = next((kind for char in text if (kind := unicodedata.bidirectional(char)) in ("L", "R", "AL")), "L")
    right_to_left = first != "L"
    turned = ' direction="rtl"' if right_to_left else ""
    anchor = ' text-anchor="end"' if right_to_left != ends else ""
    weight = ' font-weight="600"' if bold else ""
    kind, color = ("cm-soft", SOFT["light"]) if soft else ("cm-ink", INK["light"])
    around = f' stroke="{PAPER["light"]}" stroke-width="3" stroke-linejoin="round" paint-order="stroke"' if halo else ""
    classes, look = f"{kind} cm-halo" if halo else kind, f"{weight}{around}{turned}{anchor}"
    return f'<text class="{classes}" x="{x:.1f}" y="{y:.1f}" fill="{color}"{look}>{escape(text)}</text>'


def _toward(point: Floats, other: Floats, distance: float) -> Floats:
    apart = other - point
    return np.asarray(point + apart * (distance / max(float(np.hypot(*apart)), 1e-9)), float)


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _largest(scene: Scene, visible: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which objects are drawn: of those that are visible the largest, if there are too many."""
    order = sorted(np.flatnonzero(visible).tolist(), key=lambda at: (-float(scene.sizes[at]), scene.ids[at]))
    shown = np.zeros(len(visible), bool)
    shown[order[:MAX_DRAWN]] = True
    return shown
