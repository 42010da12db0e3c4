"""Canvas: a scene in 3D in the browser, to turn, zoom, hover and click."""

import asyncio
from collections.abc import Callable, Iterable
from html import escape
from typing import Any

import ipywidgets as widgets
import numpy as np
import pythreejs as three
import traitlets

from contextmesh.errors import UsageError
from contextmesh.investigation.palette import INK, PAPER
from contextmesh.investigation.scene import PLAIN, Light, Scene
from contextmesh.widgets.closing import close_parts
from contextmesh.widgets.graph3d.camera import FIELD_OF_VIEW, Camera
from contextmesh.widgets.graph3d.labels import MAX_LABELS, Labels, Sight
from contextmesh.widgets.graph3d.parts import Lines, Nodes, Uniforms
from contextmesh.widgets.status import StatusLine

UNKNOWN = ""  # what was pressed before anybody pressed anything
SLACK_PX = 5  # how far beside a node a click still means it
FLIGHT_S, FLIGHT_STEPS = 0.4, 10
HELP = "Drag to turn, scroll to zoom, click to select, double-click to open. The list holds the same facts."

STYLE = """<style>
.cm-canvas canvas {max-width: 100%; height: auto !important; border-radius: 4px; cursor: grab;}
.cm-canvas canvas:active {cursor: grabbing;}
.cm-canvas .cm-told {margin: 0; line-height: 1.5; height: 1.5em; overflow: hidden; white-space: nowrap;
  text-overflow: ellipsis; color: var(--jp-content-font-color2, inherit);}
</style>"""


class Picker(three.Picker):
    """What says which points are under the pointer; the browser is not told again what it said, which would be slow."""

    picked: Any = traitlets.List().tag(sync=True, echo_update=False)
    point: Any = three.traits.Vector3(default_value=[0, 0, 0]).tag(sync=True, echo_update=False)


class Canvas(widgets.VBox):
    """Draw a scene in 3D, and say which of its objects is clicked.

    All that it shows is in its scene and its light; it decides nothing. Without WebGL the browser shows an error in
    its place and Python hears nothing, so a list of the same facts belongs beside it.

    Args:
        scene: what to draw.
        light: what is lit up, and on which paper.
        width: of the picture, in pixels; it shrinks where there is less room.
        height: of the picture, in pixels.
        on_pick: called with an object's id when it is clicked.
        on_open: called with an object's id when it is double-clicked.
        on_hover: called with the id of the object under the pointer, None when there is none any more.
        status: where to say what goes wrong in one of these; a line below the picture by default.

    Example:
        >>> canvas = Canvas(Scene(), on_pick=print)
        >>> canvas
        <Canvas: 0 objects, 0 relations>
        >>> canvas.close()
    """

    def __init__(
        self,
        scene: Scene,
        light: Light = PLAIN,
        *,
        width: int = 900,
        height: int = 520,
        on_pick: Callable[[str], None],
        on_open: Callable[[str], None] | None = None,
        on_hover: Callable[[str | None], None] | None = None,
        status: StatusLine | None = None,
    ) -> None:
        self.on_pick, self.on_open, self.on_hover = on_pick, on_open, on_hover
        self.status = status or StatusLine()
        self._scene, self._light, self._size = scene, light, (width, height)
        self._sizes = scene.node_sizes(light)
        self._named: tuple[int, ...] = ()
        self._hovered: int | None = None
        self._pressed: str | None = UNKNOWN
        self._steered = False
        self._flight, self._flying = 0, False
        self._nodes, self._lines = Nodes(scene, self._uniforms()), Lines(scene, self._uniforms())
        self._labels = Labels(scene, self._uniforms())
        self._make_view()
        self._told = widgets.HTML()
        super().__init__([widgets.HTML(STYLE), self.view, self._told, *([] if status else [self.status])])
        self.add_class("cm-canvas")
        self.layout.max_width = "100%"
        self._tell(None)
        self.light(light)

    def _make_view(self) -> None:
        width, height = self._size
        self.camera = three.PerspectiveCamera(fov=FIELD_OF_VIEW, aspect=width / height)
        self.controls = three.OrbitControls(controlling=self.camera, screenSpacePanning=True)
        self._pickers: list[Picker] = []
        self.picker = self._picker("click", self._on_click)
        self._presser = self._picker("mousedown", self._on_press)
        self._opener = self._picker("dblclick", self._on_double_click)
        self._hoverer = self._picker("mousemove", self._on_move)
        self._space = three.Scene(background=PAPER[self._light.theme], children=self._drawn())
        self.view = three.Renderer(
            camera=self.camera,
            scene=self._space,
            controls=[self.controls, *self._pickers],
            width=width,
            height=height,
            antialias=True,
        )
        self._look(Camera.over(radius=self._scene.radius, width=width, height=height))
        self.camera.observe(self._on_camera, names=["position", "quaternion"])
        self.controls.observe(self._on_camera, names=["target"])

    def _picker(self, event: str, handler: Callable[[Any], None]) -> Any:
        picker = Picker(controlling=self._nodes.targets, event=event, pointThreshold=self._reach(), all=True)
        picker.observe(
            handler, names=["point", "modifiers"]
        )  # whose keys are news on the first time that nothing is hit
        self._pickers.append(picker)
        return picker

    def _drawn(self) -> list[Any]:
        return [*self._lines.drawn, *self._nodes.drawn, *self._labels.drawn]

    def __repr__(self) -> str:
        return f"<Canvas: {str(self._scene).removeprefix('<Scene: ')}"

    @property
    def scene(self) -> Scene:
        """What is drawn; `show` another one."""
        return self._scene

    def show(self, scene: Scene, light: Light | None = None) -> None:
        """Draw another scene in place of this one; the eye stays where it is while most of it stays where it was."""
        strange = _is_strange(scene, self._scene)
        self._scene, self._hovered = scene, None
        with self.view.hold():
            self._replace_what_is_too_small()
            self._nodes.move(scene)
            self._lines.move(scene)
            for picker in self._pickers:
                picker.pointThreshold = self._reach()
            self.light(light or self._light)
            if strange:
                self.fit()
        self._tell(None)

    def _replace_what_is_too_small(self) -> None:
        old = [part for part in (self._nodes, self._lines) if not part.holds(self._scene)]
        if not self._labels.make_room(self._scene, self._uniforms()) and not old:
            return
        self._nodes = Nodes(self._scene, self._uniforms()) if self._nodes in old else self._nodes
        self._lines = Lines(self._scene, self._uniforms()) if self._lines in old else self._lines
        self._space.children = self._drawn()
        for picker in self._pickers:
            picker.controlling = self._nodes.targets
        for mesh in [mesh for part in old for mesh in part.drawn]:
            close_parts(mesh)
            mesh.close()

    def light(self, light: Light) -> None:
        """Show the scene in another light: only colours and sizes travel, and only those that differ."""
        self._light, self._sizes = light, self._scene.node_sizes(light)
        self._space.background = PAPER[light.theme]
        self._nodes.paint(self._scene, light)
        self._lines.paint(self._scene, light)
        self._nodes.material.uniforms = self._uniforms()
        self._lines.material.uniforms = self._uniforms()
        self.labels(self._scene.labelled(light, MAX_LABELS))

    def labels(self, indices: Iterable[int]) -> None:
        """Label these objects, the most important first: of the first 30 the 12 that find room, or all if it is all."""
        self._named = tuple(indices)[:MAX_LABELS]
        self._place_labels()

    def picked(self, index: int) -> None:
        """Do what a click on an object does."""
        self.on_pick(self._scene.ids[index])

    # where the eye is

    @property
    def eye(self) -> Camera:
        """Where the eye is, as the browser last said or as it was last moved from here."""
        (width, height), camera = self._size, self.camera
        return Camera(
            position=tuple(camera.position),
            target=tuple(self.controls.target),
            quaternion=tuple(camera.quaternion),
            width=width,
            height=height,
        )

    def fit(self) -> None:
        """Have the whole scene in view, from its front."""
        self._flight, self._flying = self._flight + 1, False
        self._look(Camera.over(radius=self._scene.radius, width=self._size[0], height=self._size[1]))

    def fly_to(self, object_id: str) -> None:
        """Bring an object to the middle, so near that its neighbours are still in view; one that is not drawn stays."""
        at = self._scene.index(object_id)
        if at is None:
            return
        places = self._scene.positions[[at, *self._scene.neighbours(object_id)]]
        reach = float(np.linalg.norm(places - places[0], axis=1).max())
        distance = min(max(2.9 * reach, 0.9 * self._scene.radius), 2.9 * self._scene.radius)
        self._fly(self.eye.at(places[0], distance))

    def zoom(self, factor: float) -> None:
        """Go nearer to what is in the middle (a factor over 1), or further away (under 1)."""
        if not factor > 0:
            msg = f"the factor is {factor!r}; expected a number over 0, such as 1.5 to go nearer"
            raise UsageError(msg)
        self._fly(self.eye.at(self.eye.target, self.eye.distance / factor))

    def resize(self, width: int, height: int) -> None:
        """Give the picture another size, in pixels."""
        self._size = width, height
        self.view.width, self.view.height, self.camera.aspect = width, height, width / height
        self.light(self._light)

    def _look(self, eye: Camera) -> None:
        self._steered = True
        radius = self._scene.radius
        with self.camera.hold_sync(), self.controls.hold_sync():
            self.camera.near, self.camera.far = radius / 100, radius * 100
            self.controls.minDistance, self.controls.maxDistance = radius / 20, radius * 20
            self.camera.position, self.camera.quaternion = eye.position, eye.quaternion
            self.controls.target = eye.target
        self._steered = False
        self._on_camera()

    def _fly(self, goal: Camera) -> None:
        """Go there in some steps while the kernel has nothing else to do; at once where it has no loop to wait in."""
        self._flight, self._flying = self._flight + 1, False
        start = self.eye
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._look(goal)
            return
        for step in range(1, FLIGHT_STEPS + 1):
            loop.call_later(FLIGHT_S * step / FLIGHT_STEPS, self._step, self._flight, start, goal, step / FLIGHT_STEPS)

    def _step(self, flight: int, start: Camera, goal: Camera, share: float) -> None:
        if flight == self._flight and self.camera.comm is not None:
            ease = share * share * (3 - 2 * share)
            target = np.add(start.target, ease * np.subtract(goal.target, start.target))
            self._flying = share < 1  # labels look for a place when it is over
            self._look(start.at(target, start.distance + ease * (goal.distance - start.distance)))

    def _on_camera(self, _change: Any = None) -> None:
        if not self._steered and not self._flying:
            with self.status.catching("turning"):
                self._place_labels()

    # what the pointer does

    def _on_press(self, _change: Any) -> None:
        with self.status.catching("selecting"):
            at = self._pointed(self._presser)
            self._pressed = None if at is None else self._scene.ids[at]

    def _on_click(self, _change: Any) -> None:
        """Select what was pressed and let go: a browser calls the end of a drag a click as well."""
        with self.status.catching("selecting"):
            at = self._pointed(self.picker)
            self._forget(self.picker)
            if at is not None and self._pressed in (self._scene.ids[at], UNKNOWN):
                self.picked(at)

    def _on_double_click(self, _change: Any) -> None:
        with self.status.catching("opening"):
            at = self._pointed(self._opener)
            self._forget(self._opener)
            if at is not None and self.on_open:
                self.on_open(self._scene.ids[at])

    def _on_move(self, _change: Any) -> None:
        with self.status.catching("pointing"):
            at = self._pointed(self._hoverer)
            if at != self._hovered:
                self._hovered = at
                self._tell(at)
                self._labels.point(at, self._sight())
                if self.on_hover:
                    self.on_hover(None if at is None else self._scene.ids[at])

    def _pointed(self, picker: Any) -> int | None:
        """Return the object under the pointer: of the discs there the foremost, else the nearest one beside it."""
        hits = [hit for hit in picker.picked if self._is_drawn(hit.get("index"))]
        if not hits:
            return None
        places = [hit["index"] for hit in hits]
        depth = self.eye.seen(self._scene.positions[places])[:, 2]
        pixel = np.maximum(depth, 1e-9) / self.eye.focal
        apart = self._scene.positions[places] - np.array([hit["point"] for hit in hits], float)
        beside = np.linalg.norm(apart, axis=1) / pixel
        beside = np.maximum(0.0, beside - np.maximum(self._sizes[places] / 2 / pixel, self._least_px))
        greyed = ~self._scene.lit(self._light)[places]  # which are painted behind the others
        best = min(range(len(hits)), key=lambda i: (beside[i], greyed[i], depth[i], places[i]))
        return places[best] if beside[best] <= SLACK_PX else None

    def _is_drawn(self, index: int | None) -> bool:
        return index is not None and index < len(self._scene.ids) and bool(self._sizes[index] > 0)

    @staticmethod
    def _forget(picker: Any) -> None:
        """Forget what was hit, since a browser would keep a second click on the same pixel to itself."""
        with picker.hold_sync():
            picker.picked, picker.point = [], (0, 0, 0)

    def _reach(self) -> float:
        """Return how far from the pointer's ray a hit may be: as far as the largest disc, and some pixels more."""
        largest = float(self._scene.sizes.max()) if len(self._scene.sizes) else 0.0
        return 0.75 * largest + (SLACK_PX + 3) * 2.9 * self._scene.radius / self.eye.focal

    def _tell(self, at: int | None) -> None:
        said = escape(HELP)
        if at is not None:
            label, kind, text = self._scene.labels[at], self._scene.kinds[at], self._scene.texts[at]
            said = f"<b><bdi>{escape(label)}</bdi></b> {escape(kind)} <bdi>{escape(text)}</bdi>"
        self._told.value = f'<p class="cm-told">{said}</p>'

    # what is written beside the nodes

    def _place_labels(self) -> None:
        sight = self._sight()
        self._labels.place(self._named, sight)
        self._labels.point(self._hovered, sight)

    def _sight(self) -> Sight:
        return Sight(
            scene=self._scene,
            eye=self.eye,
            sizes=self._sizes,
            least_px=self._least_px,
            uniforms=self._uniforms(),
        )

    @property
    def _least_px(self) -> float:
        """Radius of a node, however far away it is: where there are thousands, they need less to be seen."""
        return max(1.4, min(2.6, 2.6 * (500 / max(1, len(self._scene.ids))) ** 0.25))

    def _uniforms(self) -> Uniforms:
        theme = self._light.theme
        return {
            "view": {"value": [float(part) for part in self._size]},
            "reach": {"value": self._scene.radius},
            "least": {"value": self._least_px},
            "paper": {"value": PAPER[theme]},
            "ink": {"value": INK[theme]},
        }

    def close(self) -> None:
        """Take the picture off the screen, and free all that it consists of; closing twice is fine."""
        self._flight += 1
        close_parts(self)
        super().close()


def _is_strange(scene: Scene, other: Scene) -> bool:
    """Whether most of a scene was not in another one, or somewhere else, so that the eye had better look anew."""
    pairs = [(at, there) for at, key in enumerate(scene.ids) if (there := other.index(key)) is not None]
    if 2 * len(pairs) < len(scene.ids) or not pairs:
        return True
    here, there = np.array(pairs).T
    moved = np.linalg.norm(scene.positions[here] - other.positions[there], axis=1)
    return float(np.median(moved)) > 0.1 * other.radius
