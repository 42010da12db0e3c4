"""What a 3D view consists of: the objects and the relations, each as few things for the graphics card."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pythreejs as three
from ipydatawidgets import NDArrayWidget

from contextmesh.investigation.scene import Light, Scene
from contextmesh.widgets.graph3d import shaders

Uniforms = dict[str, dict[str, Any]]
GRID = 32_000  # steps from the middle to the border, in which positions travel: 2 bytes each
# How a node stands out, sent as the fourth part of its colour; the shaders know the same numbers, as parts of 255.
GREYED, USUAL, FOUND, CHOSEN = 60, 160, 220, 255
CHANGED = {"added": 174, "changed": 184, "removed": 194}


class Nodes:
    """The objects: a triangle each to paint a disc in, and a point each, which is not drawn, for the pointer to hit."""

    def __init__(self, scene: Scene, uniforms: Uniforms) -> None:
        self.capacity, self.extent = _room(len(scene.ids)), _extent(scene)
        self._corners = _buffer(self._corners_of(scene))
        self._paint = _buffer(np.zeros((3 * self.capacity, 4), np.uint8), normalized=True)
        self._diameters = _buffer(np.zeros(3 * self.capacity, np.float32))
        self._targets = _buffer(self._targets_of(scene))
        self.material = material_of(shaders.NODE_VERTEX, shaders.NODE_FRAGMENT, uniforms)
        attributes = {"position": self._corners, "paint": self._paint, "diameter": self._diameters}
        scale = _scale(self.extent)
        self.mesh = three.Mesh(_geometry(attributes), self.material, scale=scale, frustumCulled=False, renderOrder=1)
        unseen = three.PointsMaterial(visible=False)
        self.targets = three.Points(_geometry({"position": self._targets}), unseen, scale=scale)

    @property
    def drawn(self) -> list[Any]:
        """What is to be put into the space."""
        return [self.mesh, self.targets]

    def holds(self, scene: Scene) -> bool:
        """Whether there is room for a scene."""
        return len(scene.ids) <= self.capacity and _reaches(scene) <= self.extent

    def move(self, scene: Scene) -> None:
        """Send where the objects are."""
        self._corners.array.array = self._corners_of(scene)
        self._targets.array.array = self._targets_of(scene)

    def _corners_of(self, scene: Scene) -> npt.NDArray[np.int16]:
        return _padded(np.repeat(_steps(scene.positions, self.extent), 3, axis=0), 3 * self.capacity)

    def _targets_of(self, scene: Scene) -> npt.NDArray[np.int16]:
        """Return the points to hit; two more span all there is, since a browser works out only once how far they go."""
        targets = _padded(_steps(scene.positions, self.extent), self.capacity + 2)
        targets[-2:] = [[-GRID], [GRID]]
        return targets

    def paint(self, scene: Scene, light: Light) -> None:
        """Send colours and sizes."""
        focus = scene.lit(light)
        marks = np.where(focus, USUAL, GREYED).astype(np.uint8)
        signs = {key: CHANGED[change] for key, change in light.changes.items()} | dict.fromkeys(light.hits, FOUND)
        for key, mark in (signs | {light.selection: CHOSEN}).items():
            if (at := scene.index(key)) is not None:
                marks[at] = mark
        paint = np.column_stack((scene.node_colors(light), marks))
        self._paint.array.array = _padded(np.repeat(paint, 3, axis=0), 3 * self.capacity)
        self._diameters.array.array = _padded(np.repeat(scene.node_sizes(light), 3), 3 * self.capacity)


class Lines:
    """The relations: all of them in one object, each of its two ends with a colour."""

    def __init__(self, scene: Scene, uniforms: Uniforms) -> None:
        self.capacity, self.extent = _room(len(scene.ends)), _extent(scene)
        self._ends = _buffer(self._ends_of(scene))
        self._paint = _buffer(np.zeros((2 * self.capacity, 4), np.uint8), normalized=True)
        self.material = material_of(shaders.LINE_VERTEX, shaders.LINE_FRAGMENT, uniforms, depthWrite=False)
        attributes = {"position": self._ends, "paint": self._paint}
        scale = _scale(self.extent)
        self.mesh = three.LineSegments(_geometry(attributes), self.material, scale=scale, frustumCulled=False)

    @property
    def drawn(self) -> list[Any]:
        """What is to be put into the space."""
        return [self.mesh]

    def holds(self, scene: Scene) -> bool:
        """Whether there is room for a scene."""
        return len(scene.ends) <= self.capacity and _reaches(scene) <= self.extent

    def move(self, scene: Scene) -> None:
        """Send where the relations begin and end."""
        self._ends.array.array = self._ends_of(scene)

    def _ends_of(self, scene: Scene) -> npt.NDArray[np.int16]:
        return _padded(_steps(scene.positions[scene.ends].reshape(-1, 3), self.extent), 2 * self.capacity)

    def paint(self, scene: Scene, light: Light) -> None:
        """Send colours: many lines are fainter each, those that are lit up are not, and the rest steps back."""
        alone = 0.8 if light.theme == "dark" else 0.6
        base = alone * min(1.0, (300 / max(1, len(scene.ends))) ** 0.35)
        lit = scene.lit_edges(light)
        strength = np.full(len(lit), base) if lit.all() else np.where(lit, 0.9, 0.5 * base)
        alpha = np.rint(255 * strength * scene.visible_edges(light)).astype(np.uint8)
        paint = np.column_stack((scene.edge_colors(light), alpha))
        self._paint.array.array = _padded(np.repeat(paint, 2, axis=0), 2 * self.capacity)


def _buffer(array: npt.NDArray[Any], *, normalized: bool = False) -> Any:
    """Return numbers for the graphics card, which are packed on their way to the browser."""
    numbers = NDArrayWidget(array, compression_level=1)
    made = three.BufferAttribute(array=numbers, normalized=normalized)
    numbers.unobserve_all("array")  # what the attribute observes there doubles with every change: 14 take minutes
    return made


def _geometry(attributes: dict[str, Any]) -> Any:
    return three.BufferGeometry(attributes=attributes)


def material_of(vertex: str, fragment: str, uniforms: Uniforms, **settings: Any) -> Any:
    """Return what paints with these programs, and with these numbers."""
    return three.ShaderMaterial(
        vertexShader=vertex, fragmentShader=fragment, uniforms=uniforms, transparent=True, **settings
    )


def _room(n: int) -> int:
    """Return for how many to make room, so that some more need nothing new."""
    return n + max(32, n // 8)


def _reaches(scene: Scene) -> float:
    return float(np.abs(scene.positions).max()) if len(scene.positions) else 0.0


def _extent(scene: Scene) -> float:
    return max(1e-3, 2.0 * _reaches(scene))


def _scale(extent: float) -> list[float]:
    return [extent / GRID] * 3


def _steps(positions: npt.NDArray[np.float32], extent: float) -> npt.NDArray[np.int16]:
    return np.rint(positions * (GRID / extent)).astype(np.int16)


def _padded(rows: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    return np.concatenate((rows, np.zeros((n - len(rows), *rows.shape[1:]), rows.dtype)))
