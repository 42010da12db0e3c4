"""Scene: what is drawn of a graph, where, and in which colours. The 3D view and the still picture share it."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from contextmesh.core.display import counted
from contextmesh.core.model import Object, Relation, View
from contextmesh.core.reader import Reader
from contextmesh.errors import UsageError
from contextmesh.investigation.chosen import MAX_DRAWN, Part, choose
from contextmesh.investigation.layout import layout, settle
from contextmesh.investigation.light import Light, light_of_diff, light_of_investigation, removed_rows
from contextmesh.investigation.palette import (
    CHANGE_COLORS,
    GREY,
    KIND_COLORS,
    PAPER,
    RELATION_COLORS,
    color_of,
    to_rgb,
)
from contextmesh.investigation.retrieval import shown
from contextmesh.investigation.words import one_line

__all__ = [
    "CHANGE_COLORS",
    "KIND_COLORS",
    "RELATION_COLORS",
    "Light",
    "Scene",
    "build_scene",
    "light_of_diff",
    "light_of_investigation",
    "removed_rows",
    "scene_of",
]

MACHINERY = frozenset({"Agent", "AgentRun", "Decision", "Run", "Session", "Task", "Workspace"})
SMALLER = 0.65  # what the machinery's records measure beside facts
LARGER = 1.45  # what the selection, a search hit or a change measures beside the others
MAX_LABEL, MAX_TEXT = 80, 300  # characters
ASPECT = 1.5  # of the narrowest view that everything must fit in
FADED = 0.8  # how far towards grey goes what is not lit up
Positions = npt.NDArray[np.float32]


PLAIN = Light()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scene:
    """What is drawn of a graph: n objects, ordered by id, and the m relations between them, ordered by id.

    Args:
        ids: of the objects.
        kinds: of the objects.
        labels: what the objects are called, one line each.
        texts: what there is to say about the objects, one line each.
        relation_ids: of the relations.
        relation_types: of the relations.
        ends: int32 (m, 2), where in `ids` a relation begins and ends.
        positions: float32 (n, 3), around the origin. An arrangement to look at: no distance means anything.
        sizes: float32 (n,), diameters in the units of the positions; they grow with the root of the degree.
        left_out: what is not drawn, in words; empty if nothing is left out.
    """

    ids: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    relation_ids: tuple[str, ...] = ()
    relation_types: tuple[str, ...] = ()
    ends: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    positions: Positions = field(default_factory=lambda: np.zeros((0, 3), np.float32))
    sizes: Positions = field(default_factory=lambda: np.zeros(0, np.float32))
    left_out: str = ""
    _places: dict[str, int] = field(init=False, repr=False)
    _near: dict[int, tuple[int, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_places", {key: at for at, key in enumerate(self.ids)})
        object.__setattr__(self, "_near", _adjacency(self.ends))

    def __repr__(self) -> str:
        return f"<Scene: {counted(len(self.ids), 'objects')}, {counted(len(self.relation_ids), 'relations')}>"

    @property
    def radius(self) -> float:
        """How far out the scene reaches: a camera at (0, 0, 2.9 radius) with a field of view of 45 degrees sees all."""
        return fitting_radius(self.positions)

    def index(self, object_id: str | None) -> int | None:
        """Return where an object is in `ids`, None if it is not drawn."""
        return None if object_id is None else self._places.get(object_id)

    def neighbours(self, object_id: str | None) -> tuple[int, ...]:
        """Return the indices of the objects at the other ends of an object's relations, in order, itself left out."""
        at = self.index(object_id)
        return () if at is None else self._near.get(at, ())

    def kind_counts(self) -> dict[str, int]:
        """Return how many objects of each kind are drawn, the most frequent first, then by name."""
        return _counts(self.kinds)

    def relation_counts(self) -> dict[str, int]:
        """Return how many relations of each type are drawn, the most frequent first, then by name."""
        return _counts(self.relation_types)

    def ranked_labels(
        self, selection: str | None = None, hits: Iterable[str] = (), most: int = 12, *, light: Light = PLAIN
    ) -> tuple[int, ...]:
        """Return which objects to label: the selection, its neighbours, the hits, then hubs; the largest first in each.

        Args:
            selection: id of the selected object.
            hits: ids of what a search found, or of what else should come before the hubs.
            most: labels at most.
            light: whose hidden kinds get no label; where something is lit up, hubs that are not get none either.
        """
        found = [at for key in hits if (at := self.index(key)) is not None]
        groups = (self._at(selection), self.neighbours(selection), found, self._hubs(light))
        visible = self.visible(light)
        ranked = dict.fromkeys(at for group in groups for at in self._largest_first(group) if visible[at])
        return tuple(ranked)[: max(0, most)]

    def labelled(self, light: Light = PLAIN, most: int = 12) -> tuple[int, ...]:
        """Return which objects to label in this light, the most important first."""
        return self.ranked_labels(light.selection, light.hits or light.lit | light.changes.keys(), most, light=light)

    def _at(self, object_id: str | None) -> tuple[int, ...]:
        at = self.index(object_id)
        return () if at is None else (at,)

    def _hubs(self, light: Light) -> Collection[int]:
        focus = self._in_focus(light)
        return range(len(self.ids)) if focus is None else np.flatnonzero(focus).tolist()

    def _largest_first(self, places: Iterable[int]) -> list[int]:
        return sorted(places, key=lambda at: (-float(self.sizes[at]), self.ids[at]))

    # what the light makes of it

    def visible(self, light: Light = PLAIN) -> npt.NDArray[np.bool_]:
        """Return which objects are drawn, bool (n,)."""
        return np.array([kind not in light.hidden_kinds for kind in self.kinds], bool)

    def visible_edges(self, light: Light = PLAIN) -> npt.NDArray[np.bool_]:
        """Return which relations are drawn, bool (m,): a type that is not hidden, between two visible objects."""
        named = np.array([name not in light.hidden_relations for name in self.relation_types], bool)
        return named & _both(self.visible(light), self.ends)

    def lit(self, light: Light = PLAIN) -> npt.NDArray[np.bool_]:
        """Return which objects keep their colour, bool (n,): all of them where nothing is lit up."""
        focus = self._in_focus(light)
        return np.ones(len(self.ids), bool) if focus is None else focus

    def lit_edges(self, light: Light = PLAIN) -> npt.NDArray[np.bool_]:
        """Return which relations keep their colour, bool (m,).

        Those of a selected object, those that are lit up or changed themselves, and, where a search or an
        investigation lights up objects alone, those between two of them.
        """
        focus = self._in_focus(light)
        if focus is None:
            return np.ones(len(self.relation_ids), bool)
        named = light.lit | light.changes.keys()
        own = np.array([key in named for key in self.relation_ids], bool)
        selected = self.index(light.selection)
        touching = np.any(self.ends == (-1 if selected is None else selected), axis=1)
        if own.any() or selected is not None:
            return own | touching
        return _both(focus, self.ends)

    def _in_focus(self, light: Light) -> npt.NDArray[np.bool_] | None:
        named = light.lit | light.hits | light.changes.keys()
        selected = self.index(light.selection)
        if selected is None and not named:
            return None
        focus = np.array([key in named for key in self.ids], bool)
        for at in (*self._at(light.selection), *self.neighbours(light.selection)):
            focus[at] = True
        return focus

    def node_colors(self, light: Light = PLAIN) -> npt.NDArray[np.uint8]:
        """Return the objects' colours, uint8 (n, 3): by kind, or by change; greyed where others are lit up.

        A hidden object has the colour of the paper, and `node_sizes` 0.
        """
        colors = _table(self.kinds, KIND_COLORS)
        _recolor(colors, self.ids, light.changes)
        return _shaded(colors, self.lit(light), self.visible(light), light.theme)

    def edge_colors(self, light: Light = PLAIN) -> npt.NDArray[np.uint8]:
        """Return the relations' colours, uint8 (m, 3): by type, or by change; greyed where others are lit up.

        A hidden relation has the colour of the paper.
        """
        colors = _table(self.relation_types, RELATION_COLORS)
        _recolor(colors, self.relation_ids, light.changes)
        return _shaded(colors, self.lit_edges(light), self.visible_edges(light), light.theme)

    def node_sizes(self, light: Light = PLAIN) -> Positions:
        """Return the diameters in this light, float32 (n,): what stands out is larger, what is hidden has none."""
        large = {light.selection, *light.hits, *light.changes}
        factors = [LARGER if key in large else 1.0 for key in self.ids]
        return np.asarray(self.sizes * factors * self.visible(light), np.float32)


def scene_of(
    objects: Iterable[Object],
    relations: Iterable[Relation],
    *,
    total: tuple[int, int] | None = None,
    near: Scene | None = None,
    seed: int = 0,
) -> Scene:
    """Return the scene of rows that one already has, all of them drawn; 10,000 objects take about a second.

    Args:
        objects: to draw.
        relations: to draw, those between the objects; others are counted as left out.
        total: how many objects and relations there are in all, to say how many are not drawn.
        near: an earlier scene: what was in it stays where it was, and what is new begins beside its neighbours.
        seed: of the arrangement; the same rows and seed give the same scene, in any process.
    """
    rows = sorted({row.id: row for row in objects}.values(), key=lambda row: row.id)
    lines = sorted({row.id: row for row in relations}.values(), key=lambda row: row.id)
    places = {row.id: at for at, row in enumerate(rows)}
    drawn = [row for row in lines if row.source in places and row.target in places]
    ids, kinds = tuple(places), tuple(row.type for row in rows)
    ends = np.array([(places[row.source], places[row.target]) for row in drawn], np.int32).reshape(-1, 2)
    known = dict(zip(near.ids, near.positions, strict=True)) if near else {}
    positions = settle(ids, ends, known, seed=seed) if known.keys() & places.keys() else layout(ids, ends, seed=seed)
    return Scene(
        ids=ids,
        kinds=kinds,
        labels=tuple(one_line(shown(row), MAX_LABEL) or one_line(row.id, MAX_LABEL) for row in rows),
        texts=tuple(_told(row) for row in rows),
        relation_ids=tuple(row.id for row in drawn),
        relation_types=tuple(row.type for row in drawn),
        ends=ends,
        positions=positions,
        sizes=_sizes(kinds, ends, fitting_radius(positions)),
        left_out=_left_out((len(rows), len(drawn)), total or (len(rows), len(lines))),
    )


def build_scene(
    reader: Reader | View,
    *,
    center: str | None = None,
    hops: int = 1,
    include: Iterable[str] = (),
    kinds: Collection[str] | None = None,
    relation_types: Collection[str] | None = None,
    most: int = 300,
    near: Scene | None = None,
    also: tuple[Sequence[Object], Sequence[Relation]] = ((), ()),
) -> Scene:
    """Return the scene of a graph, or of the part of it that is worth drawing first.

    Args:
        reader: the graph, or a view of it.
        center: id of the object around which to draw; None for the hubs and what lies beside them.
        hops: relations to walk from the center at most, 0 to 3.
        include: ids that must be drawn, such as an investigation's evidence; those that do not exist are passed over.
        kinds: draw only objects of these kinds; None for all.
        relation_types: draw, and walk, only relations of these types; None for all.
        most: objects at most, 1 to 2,000.
        near: an earlier scene, whose objects stay where they were.
        also: objects and relations to draw besides, such as those that a fork removed.

    Raises:
        UsageError: hops or `most` out of their range.
        NotFoundError: there is no such center.
    """
    if type(most) is not int or not 1 <= most <= MAX_DRAWN:
        msg = f"most is {most!r}; expected a whole number from 1 to {MAX_DRAWN:,}"
        raise UsageError(msg)
    part = choose(
        reader, center=center, hops=hops, include=include, kinds=kinds, relation_types=relation_types, most=most
    )
    return _scene_of_part(part, near, also)


def _scene_of_part(part: Part, near: Scene | None, also: tuple[Sequence[Object], Sequence[Relation]]) -> Scene:
    held = {row.id for row in part.objects}, {row.id for row in part.relations}
    objects = [row for row in also[0] if row.id not in held[0]]
    relations = [row for row in also[1] if row.id not in held[1]]
    total = part.total[0] + len(objects), part.total[1] + len(relations)
    return scene_of([*part.objects, *objects], [*part.relations, *relations], total=total, near=near)


def fitting_radius(positions: Positions) -> float:
    """Return the radius with which a camera at (0, 0, 2.9 radius), 45 degrees, has all positions in view."""
    if not len(positions):
        return 1.0
    across, up, deep = np.abs(positions[:, 0]), np.abs(positions[:, 1]), positions[:, 2]
    slope = 0.9 * np.tan(np.radians(22.5))  # a tenth is margin, for the size of a node and its label
    needed = np.maximum(up, across / ASPECT) / slope + deep
    return max(1.0, float(needed.max()) / 2.9)


def _adjacency(ends: npt.NDArray[np.int32]) -> dict[int, tuple[int, ...]]:
    near: dict[int, set[int]] = {}
    for source, target in ends.tolist():
        if source != target:
            near.setdefault(source, set()).add(target)
            near.setdefault(target, set()).add(source)
    return {at: tuple(sorted(found)) for at, found in near.items()}


def _both(flags: npt.NDArray[np.bool_], ends: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return at which relations both ends are flagged."""
    return flags[ends[:, 0]] & flags[ends[:, 1]]


def _counts(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))


def _told(row: Object) -> str:
    """Return what there is to say about an object, in a line: its text, else its question, else its status."""
    data = row.data
    told = next((data[name] for name in ("text", "question", "status") if isinstance(data.get(name), str)), "")
    kind = data.get("entity_type")
    begin = f"{kind}: " if isinstance(kind, str) and kind else ""
    return one_line(f"{begin}{told}" if told else begin.removesuffix(": "), MAX_TEXT)


def _sizes(kinds: Sequence[str], ends: npt.NDArray[np.int32], radius: float) -> Positions:
    """Return diameters: by the root of the degree, and so that many objects still leave room between them."""
    if not kinds:
        return np.zeros(0, np.float32)
    degrees = np.bincount(ends.ravel(), minlength=len(kinds))
    base = radius * min(0.075, max(0.012, 0.75 / np.sqrt(len(kinds))))
    grown = np.minimum(0.7 + 0.3 * np.sqrt(degrees), 2.6)
    smaller = np.array([SMALLER if kind in MACHINERY else 1.0 for kind in kinds])
    return np.asarray(base * grown * smaller, np.float32)


def _left_out(drawn: tuple[int, int], total: tuple[int, int]) -> str:
    """Say what is not drawn.

    Example:
        >>> _left_out((300, 300), (1504, 3400))
        'Not drawn: 1,204 of 1,504 facts, 3,100 of 3,400 relations'
    """
    parts = [
        f"{whole - here:,} of {counted(whole, what)}"
        for here, whole, what in zip(drawn, total, ("facts", "relations"), strict=True)
        if whole > here
    ]
    return f"Not drawn: {', '.join(parts)}" if parts else ""


def _table(names: Sequence[str], colors: Mapping[str, str]) -> npt.NDArray[np.float64]:
    known = {name: to_rgb(color_of(name, colors)) for name in set(names)}
    return np.array([known[name] for name in names], float).reshape(-1, 3)


def _recolor(colors: npt.NDArray[np.float64], ids: Sequence[str], changes: Mapping[str, str]) -> None:
    if changes:
        for at, key in enumerate(ids):
            if key in changes:
                colors[at] = to_rgb(CHANGE_COLORS[changes[key]])


def _shaded(
    colors: npt.NDArray[np.float64], lit: npt.NDArray[np.bool_], visible: npt.NDArray[np.bool_], theme: str
) -> npt.NDArray[np.uint8]:
    colors[~lit] += FADED * (np.array(to_rgb(GREY[theme])) - colors[~lit])
    colors[~visible] = to_rgb(PAPER[theme])
    return np.rint(colors).astype(np.uint8)
