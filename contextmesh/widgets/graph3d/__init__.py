"""The 3D view of a scene: the only home of pythreejs, a library that is no longer developed."""

from contextmesh.widgets.graph3d.canvas import Canvas

__all__ = ["Canvas"]
