"""Camera: where the eye of a 3D view is, what it sees there, and which labels fit in the picture side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from contextmesh.investigation.scene import ASPECT

FIELD_OF_VIEW = 45.0  # degrees, from the lower to the upper border
DISTANCE = 2.9  # radii of a scene from which all of it is in view
LABEL_GAP = 6.0  # pixels between a node and its label; the shader of the labels has the same number
LABEL_ROOM = 3.0  # pixels that two labels keep between them
WANTED = 1000.0  # how many nodes a label would rather hide than one that has a label too
ABOVE, BELOW, RIGHT, LEFT = (0, 1), (0, -1), (1, 0), (-1, 0)
Floats = npt.NDArray[np.float64]
Spot = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Camera:
    """Where the eye is, what it turns around, and how large its picture is.

    Args:
        position: of the eye.
        target: the point in the middle of the picture, which the eye turns around.
        quaternion: how the eye is turned: x, y, z, w.
        width: of the picture, in pixels.
        height: of the picture, in pixels.

    Example:
        >>> camera = Camera.over(radius=10.0, width=900, height=520)
        >>> camera.seen([[0.0, 0.0, 0.0], [1.0, 1.0, 9.0]]).round(1).tolist()
        [[0.0, 0.0, 29.0], [31.4, 31.4, 20.0]]
    """

    position: tuple[float, float, float]
    target: tuple[float, float, float] = (0.0, 0.0, 0.0)
    quaternion: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    width: int
    height: int

    @classmethod
    def over(cls, *, radius: float, width: int, height: int) -> Self:
        """Return the camera that has all of a scene in view, from its front, however narrow the picture is."""
        further = max(1.0, ASPECT * height / width)
        return cls(position=(0.0, 0.0, DISTANCE * radius * further), width=width, height=height)

    @property
    def focal(self) -> float:
        """Pixels that one unit takes up at a distance of one unit."""
        return self.height / 2 / float(np.tan(np.radians(FIELD_OF_VIEW / 2)))

    @property
    def distance(self) -> float:
        """From the eye to the target."""
        return float(np.linalg.norm(np.subtract(self.position, self.target)))

    def seen(self, points: npt.ArrayLike) -> Floats:
        """Return where points are in the picture, float (k, 3): pixels right of its middle, pixels above, distance.

        What is not in front of the eye has a distance of zero or less, and no place in the picture.
        """
        apart = np.asarray(points, float).reshape(-1, 3) - self.position
        turned = _turned(apart, (*(-part for part in self.quaternion[:3]), self.quaternion[3]))
        depth = -turned[:, 2]
        scale = self.focal / np.where(depth > 0, depth, np.inf)
        return np.column_stack((turned[:, 0] * scale, turned[:, 1] * scale, depth))

    def at(self, target: npt.ArrayLike, distance: float) -> Self:
        """Return the camera moved so that it looks at another point from a distance, in the direction that it has."""
        x, y, z = np.asarray(target, float)
        back = _turned(np.array([[0.0, 0.0, distance]]), self.quaternion)[0]
        moved = float(x + back[0]), float(y + back[1]), float(z + back[2])
        return replace(self, position=moved, target=(float(x), float(y), float(z)))


def labels_beside(  # noqa: PLR0917 - a table of nodes and a table of labels, each by its columns
    camera: Camera, points: npt.ArrayLike, radii: npt.ArrayLike, sizes: npt.ArrayLike, wanted: Sequence[int], most: int
) -> dict[int, Spot]:
    """Return which labels fit in the picture side by side, and on which side of its node each is.

    None lies on another, on the border, or on a node that has a label too, and each hides as few nodes as it can.

    Args:
        camera: who looks.
        points: (n, 3), the middles of all nodes.
        radii: (n,), of the nodes, in pixels; what is not drawn has none.
        sizes: (k, 2), widths and heights of the wanted labels, in pixels.
        wanted: which k nodes are to have a label, the most important first.
        most: labels at most.
    """
    seen, radii = camera.seen(points), np.asarray(radii, float)
    border = np.array([camera.width, camera.height]) / 2
    inside = (seen[:, 2] > 0) & (np.abs(seen[:, :2]) <= border).all(axis=1)
    weights = inside * (radii > 0) * 1.0
    weights[list(wanted[:most])] *= WANTED
    taken: list[tuple[Floats, Floats]] = []
    placed: dict[int, Spot] = {}
    for at, size in zip(wanted, np.asarray(sizes, float).reshape(-1, 2), strict=True):
        spots = {}
        for spot in (ABOVE, BELOW, RIGHT, LEFT) if inside[at] and len(placed) < most else ():
            middle = seen[at, :2] + np.array(spot) * (radii[at] + size / 2 + LABEL_GAP)
            fits = bool((np.abs(middle) + size / 2 <= border).all())
            if fits and not any((np.abs(middle - other) < size / 2 + room).all() for other, room in taken):
                beyond = np.maximum(0.0, np.abs(seen[:, :2] - middle) - size / 2)
                spots[spot] = middle, float(weights[np.hypot(*beyond.T) < radii].sum())
        best = min(spots, key=lambda spot: spots[spot][1], default=None)
        if best is not None and (spots[best][1] < WANTED or not placed):
            placed[at] = best
            taken.append((spots[best][0], size / 2 + LABEL_ROOM))
    return placed


def _turned(vectors: Floats, quaternion: Sequence[float]) -> Floats:
    axis, real = np.asarray(quaternion[:3], float), float(quaternion[3])
    across = 2.0 * np.cross(axis, vectors)
    return vectors + real * across + np.cross(axis, across)
