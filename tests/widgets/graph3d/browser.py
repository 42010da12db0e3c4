"""The browser's end of a canvas: what it was sent, and what it says of the pointer and the camera."""

from typing import Any

import numpy as np

from contextmesh.investigation.scene import Scene
from contextmesh.widgets.graph3d import Canvas

QUARTER = (0.0, 0.5**0.5, 0.0, 0.5**0.5)  # a quarter turn around the upright axis, as a quaternion


def arrays(canvas: Canvas) -> dict[str, Any]:
    """The numbers that the browser has, taken apart by what they mean."""
    attributes, lines = canvas._nodes.mesh.geometry.attributes, canvas._lines.mesh.geometry.attributes
    scale = canvas._nodes.mesh.scale[0]
    return {
        "positions": attributes["position"].array.array[::3] * scale,
        "colors": attributes["paint"].array.array[::3, :3],
        "marks": attributes["paint"].array.array[::3, 3].tolist(),
        "sizes": attributes["diameter"].array.array[::3],
        "targets": canvas._nodes.targets.geometry.attributes["position"].array.array * scale,
        "ends": lines["position"].array.array * canvas._lines.mesh.scale[0],
        "edge_colors": lines["paint"].array.array[::2, :3],
        "strengths": lines["paint"].array.array[::2, 3].tolist(),
    }


def hit(scene: Scene, index: int, *, off: tuple[float, float, float] = (0, 0, 0)) -> dict[str, Any]:
    """What a browser says of a point near the pointer: which one, and where the pointer's ray passes it."""
    return {"index": index, "point": [*(scene.positions[index] + np.float32(off)).tolist()], "distance": 20.0}


def click(picker: Any, *hits: dict[str, Any], point: tuple[float, float, float] = (1.0, 2.0, 3.0)) -> None:
    picker.set_state({"picked": list(hits), "point": list(point)})


def turn(canvas: Canvas, quaternion: tuple[float, ...]) -> None:
    canvas.camera.set_state({"quaternion": list(quaternion)})
