"""The labels of a 3D view: few, of what matters most, and none on another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pythreejs as three

from contextmesh.investigation.scene import Scene
from contextmesh.investigation.words import cut, width_of
from contextmesh.widgets.graph3d import shaders
from contextmesh.widgets.graph3d.camera import ABOVE, Camera, Spot, labels_beside
from contextmesh.widgets.graph3d.parts import Uniforms, material_of

LABELS, MAX_LABELS = 12, 30
LABEL_PX, WIDTH_PX, TIP_WIDTH_PX = 13, 200, 320
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', Arial, sans-serif"
NO_BREAK = "\u00a0"  # a text of one letter is no wider than it is high, and needs the room of more
SHOWN, PLATED = 1.0, 2.0
HIDDEN: Uniforms = {"shown": {"value": 0.0}}
NOWHERE: Uniforms = {"anchor": {"value": [0.0, 0.0, 0.0]}, "lift": {"value": 0.0}, "side": {"value": [0.0, 1.0]}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What labels are written in: a scene as it is painted at the moment.

    Args:
        scene: what is drawn.
        eye: from where.
        sizes: diameters of the objects, in the units of their positions.
        least_px: radius of an object, however far away it is.
        uniforms: what all programs of the graphics card are told.
    """

    scene: Scene
    eye: Camera
    sizes: npt.NDArray[np.float32]
    least_px: float
    uniforms: Uniforms

    @property
    def radii_px(self) -> npt.NDArray[np.float64]:
        """Radii of the objects as they are painted; what is hidden has none."""
        depth = np.maximum(self.eye.seen(self.scene.positions)[:, 2], 1e-9)
        return np.where(self.sizes > 0, np.maximum(self.least_px, self.sizes / 2 * self.eye.focal / depth), 0.0)

    def beside(self, at: int, spot: Spot, shown: float) -> Uniforms:
        """Return where a label is, as its program is told."""
        place, lift = self.scene.positions[at].tolist(), float(self.sizes[at]) / 2
        own = {"shown": shown, "anchor": place, "lift": lift, "side": [float(part) for part in spot]}
        return self.uniforms | {name: {"value": value} for name, value in own.items()}


class Labels:
    """Twelve labels, all of them where there are no more than thirty objects, and one for what the pointer is on."""

    def __init__(self, scene: Scene, uniforms: Uniforms) -> None:
        self._plane = three.PlaneBufferGeometry(width=1, height=1)
        self._tip = Label(self._plane, uniforms, over=True)
        self._usual: list[Label] = []
        self.make_room(scene, uniforms)

    @property
    def drawn(self) -> list[Any]:
        """What is to be put into the space."""
        return [label.mesh for label in (*self._usual, self._tip)]

    def make_room(self, scene: Scene, uniforms: Uniforms) -> bool:
        """Make as many labels as a scene needs; say whether there are new ones."""
        more = range(len(self._usual), _most(scene))
        self._usual += [Label(self._plane, uniforms) for _ in more]
        return bool(more)

    def place(self, named: Sequence[int], sight: Sight) -> None:
        """Label those of these objects whose label finds room, the most important first."""
        scene = sight.scene
        texts = {at: cut(scene.labels[at], WIDTH_PX, LABEL_PX) for at in named}
        boxes = [(width_of(text, LABEL_PX) + 2, LABEL_PX + 1) for text in texts.values()]
        most = min(len(self._usual), _most(scene))
        placed = labels_beside(sight.eye, scene.positions, sight.radii_px, boxes, named, most)
        kept = {label.object_id: label for label in self._usual if label.object_id is not None}
        taken = {at: label for at in placed if (label := kept.get(scene.ids[at]))}
        idle = [label for label in self._usual if label not in taken.values()]
        for at, spot in placed.items():  # one that has its text already keeps it: a new texture takes the longest
            label = taken.get(at) or idle.pop()
            label.write(scene.ids[at], texts[at], sight.beside(at, spot, SHOWN))
        for label in idle:
            label.hide()

    def point(self, at: int | None, sight: Sight) -> None:
        """Label what the pointer is on, on a plate that lies over the other labels, unless it has a label already."""
        if at is None or sight.scene.ids[at] in self.shown():
            self._tip.hide()
            return
        text = cut(sight.scene.labels[at], TIP_WIDTH_PX, LABEL_PX)
        box = [(width_of(text, LABEL_PX) + 6, LABEL_PX + 6)]
        spots = labels_beside(sight.eye, sight.scene.positions, sight.radii_px, box, [at], 1)
        self._tip.write(sight.scene.ids[at], text, sight.beside(at, spots.get(at, ABOVE), PLATED))

    def shown(self) -> list[str]:
        """Return the ids of the objects that have a label, in order."""
        return sorted(label.object_id for label in self._usual if label.object_id is not None and label.is_shown)


class Label:
    """A text beside a node, always the same size on the screen.

    Its texture is the last of its uniforms: pythreejs 2.4.2 gives a texture the name of whichever comes last.
    """

    def __init__(self, plane: Any, uniforms: Uniforms, *, over: bool = False) -> None:
        self.object_id: str | None = None
        self.texture = three.TextTexture(
            string="", size=2 * LABEL_PX, color="#000000", fontFace=FONT, squareTexture=True, minFilter="LinearFilter"
        )
        self._map: Uniforms = {"map": {"value": self.texture}}
        self._uniforms = uniforms | NOWHERE | HIDDEN | self._map
        self.material = material_of(
            shaders.LABEL_VERTEX, shaders.LABEL_FRAGMENT, self._uniforms, depthTest=False, depthWrite=False
        )
        self.mesh = three.Mesh(plane, self.material, frustumCulled=False, renderOrder=3 if over else 2)

    @property
    def is_shown(self) -> bool:
        """Whether there is anything to read."""
        return bool(self._uniforms["shown"]["value"])

    def write(self, object_id: str, text: str, uniforms: Uniforms) -> None:
        """Show a text; what is the same as before does not travel."""
        self.object_id, self.texture.string = object_id, text.center(3, NO_BREAK)
        self._send(uniforms)

    def hide(self) -> None:
        """Show nothing; the text stays, for the next time."""
        self._send(HIDDEN)

    def _send(self, uniforms: Uniforms) -> None:
        changed = {name: part for name, part in self._uniforms.items() if name != "map"} | uniforms | self._map
        if changed != self._uniforms:
            self._uniforms = self.material.uniforms = changed


def _most(scene: Scene) -> int:
    return LABELS if len(scene.ids) > MAX_LABELS else len(scene.ids)
