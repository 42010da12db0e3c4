"""Sight: which part of a graph is drawn, as of when, and what of it is lit up. It decides; the views show."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

import numpy as np

from contextmesh.core.diff import Diff
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object, Relation
from contextmesh.errors import UsageError
from contextmesh.investigation.chosen import MAX_DRAWN
from contextmesh.investigation.light import Light, light_of_diff, light_of_investigation, removed_rows
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.retrieval import shown
from contextmesh.investigation.scene import Scene, build_scene, scene_of
from contextmesh.investigation.timeline import Timeline
from contextmesh.investigation.workspace import Workspace

MAX_EXPANDED = 100  # neighbours that are added at a time
COMPARED = 2000  # events that are gone through to highlight what is new on the way to the newest
HITS = 8


class Facts(Protocol):
    """What is asked of a graph as it is, or as it was."""

    def get_objects(self, ids: Collection[str]) -> dict[str, Object]:
        """Return those of the objects that exist, by id."""
        ...

    def get_relations(self, object_id: str) -> list[Relation]:
        """Return the relations that touch an object, ordered by id."""
        ...


class Past:
    """A graph as it was where a timeline stands."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def get_objects(self, ids: Collection[str]) -> dict[str, Object]:
        """Return those of the objects that existed, by id."""
        known = self._timeline.objects
        return {key: known[key] for key in ids if key in known}

    def get_relations(self, object_id: str) -> list[Relation]:
        """Return the relations that touched an object, ordered by id."""
        rows = [row for row in self._timeline.relations.values() if object_id in (row.source, row.target)]
        return sorted(rows, key=lambda row: row.id)


class Sight:
    """The part of a graph that is drawn: the whole if it is small, else its hubs, or what lies around a center.

    Args:
        source: a workspace, or a graph.
        center: id of the object around which to draw, None for the hubs.
        hops: relations to walk from the center, 0 to 3.
        most: objects to draw at most, 1 to 2,000.

    Attributes:
        scene: what is drawn.
        position: the log position that is drawn, None for the newest.
    """

    def __init__(self, source: Workspace | Graph, *, center: str | None = None, hops: int = 1, most: int = 300) -> None:
        self.source, self.graph = source, graph_of(source)
        self.center, self.hops = center, hops
        self.position: int | None = None
        self.scene = Scene()
        self._most, self._extra = most, frozenset[str]()
        self._lit, self._compared = Light(), Light()
        self._moved: Mapping[str, str] = {}
        self._also: tuple[list[Object], list[Relation]] = ([], [])
        self._timeline: Timeline | None = None
        self._home: Scene | None = None  # the newest position's: where everything has its place

    # what it is about

    def of(self, source: Workspace | Graph, diff: Diff | None = None) -> None:
        """Draw another graph, such as a branch, at its newest position; what is in both stays where it is."""
        self.source, self.graph = source, graph_of(source)
        self.position, self._timeline, self._moved = None, None, {}
        self.compare(diff)

    def compare(self, diff: Diff | None) -> None:
        """Light up what a branch added, changed and removed; None shows no such thing."""
        self._compared = light_of_diff(diff) if diff else Light()
        self._also = removed_rows(diff) if diff else ([], [])

    def light_up(self, inv: Investigation | None) -> None:
        """Light up an investigation's evidence and paths, and draw them in any case; None puts the light out."""
        self._lit = light_of_investigation(inv) if inv else Light()

    @property
    def light(self) -> Light:
        """What an investigation, a branch or a move through time lights up."""
        is_now = self.position is None and not self._moved
        return replace(self._lit, changes=self._compared.changes if is_now else self._moved)

    @property
    def facts(self) -> Facts:
        """The graph as it is drawn: as it is, or as it was."""
        return self.graph if self.position is None else Past(self._past)

    # which part

    def around(self, center: str, hops: int) -> None:
        """Draw what lies around an object, arranged anew."""
        self.center, self.hops = center, hops
        self._extra, self._home = frozenset(), None

    def whole(self) -> None:
        """Draw the hubs and what lies beside them, arranged anew."""
        self.center, self._extra, self._home = None, frozenset(), None

    def include(self, ids: Iterable[str]) -> None:
        """Draw these objects besides what is drawn."""
        self._extra = frozenset({*self.scene.ids, *ids})

    def expand(self, object_id: str) -> tuple[int, int]:
        """Draw an object's neighbours besides; return how many came in, and how many did not for want of room."""
        rows = self.facts.get_relations(object_id)
        ends = {end for row in rows for end in (row.source, row.target)} - set(self.scene.ids)
        new = sorted(self.facts.get_objects(ends)) if ends else []
        room = max(0, min(MAX_EXPANDED, MAX_DRAWN - len(self.scene.ids)))
        if new[:room]:
            self.include(new[:room])
        return len(new[:room]), len(new[room:])

    def draw(self) -> Scene:
        """Read the graph, and return what is drawn of it now."""
        self.scene = self._draw_now() if self.position is None else self._draw_then()
        return self.scene

    def _draw_now(self) -> Scene:
        center = self.center if self.center is None or self.graph.get_object(self.center) else None
        self._home = build_scene(
            self.graph,
            center=center,
            hops=self.hops,
            include=self._extra | self._lit.lit,
            most=min(MAX_DRAWN, max(self._most, len(self._extra))),
            near=self._home,
            also=self._also,
        )
        return self._home

    def _draw_then(self) -> Scene:
        """Return the graph as it was: all of it where that is little, else what of today's picture was there."""
        home, objects, relations = self._home or self._draw_now(), self._past.objects, self._past.relations
        is_all = self.center is None and len(objects) <= self._most
        wanted = {*home.ids, *self._extra, *self._lit.lit}
        kept = {key: row for key, row in objects.items() if is_all or key in wanted}
        lines = [row for row in relations.values() if row.source in kept and row.target in kept]
        return scene_of(kept.values(), lines, total=(len(objects), len(relations)), near=home)

    # when

    @property
    def _past(self) -> Timeline:
        if self._timeline is None:
            self._timeline = Timeline(self.graph.events)
        return self._timeline

    def go(self, position: int | None) -> None:
        """Go to a log position, None for the newest; what is new on a way forward is lit up.

        Raises:
            UsageError: the log does not reach to that position.
        """
        tip = len(self.graph.events)
        if position is not None and not 0 <= position <= tip:
            msg = f"position is {position!r}; expected a whole number from 0 to {tip:,}, where the log ends"
            raise UsageError(msg)
        before, self._moved = self.position, {}
        goal = tip if position is None else position
        self.position = None if goal == tip else goal
        if self.position is not None or (before is not None and goal - before <= COMPARED):
            moved = self._past.move(goal)
            if before is not None and goal > before:
                self._moved = moved.to_changes()

    def forget_moves(self) -> None:
        """Light up no longer what was new on the way here."""
        self._moved = {}

    # what is found

    def search(self, text: str) -> list[dict[str, str]]:
        """Return what a text finds, best first: an id, names that begin so, what holds its words, names with them."""
        wanted = text.casefold().split()
        if not wanted:
            return []
        named = [(key, label) for key, label in self._labels() if all(word in label.casefold() for word in wanted)]
        first = [key for key, label in named if label.casefold().startswith(wanted[0])]
        found = dict.fromkeys([text.strip(), *first[:HITS], *self._matching(text), *(key for key, _ in named[:HITS])])
        rows = self.facts.get_objects(list(found))
        return [{"id": key, "label": shown(rows[key]), "kind": rows[key].type} for key in found if key in rows][:HITS]

    def _labels(self) -> Iterator[tuple[str, str]]:
        """Yield ids and labels: of what is drawn, the largest first, or of all that was there."""
        if self.position is None:
            order = np.argsort(-self.scene.sizes, kind="stable").tolist()
            yield from ((self.scene.ids[at], self.scene.labels[at]) for at in order)
        else:
            yield from ((key, shown(row)) for key, row in self._past.objects.items())

    def _matching(self, text: str) -> list[str]:
        """Return what the workspace's full-text search finds; only a workspace as it is has one."""
        if not isinstance(self.source, Workspace) or self.position is not None:
            return []
        return [str(key) for key in self.source.search(text, limit=HITS)["id"]]


def rows_of(scene: Scene, light: Light) -> list[dict[str, str | int]]:
    """Return a scene as rows of a list, without what is hidden: what is lit up first, then by relations and label."""
    degrees = np.bincount(scene.ends.ravel(), minlength=len(scene.ids)).tolist()
    visible, named = scene.visible(light), light.lit | light.changes.keys()
    drawn = [at for at in range(len(scene.ids)) if visible[at]]
    drawn.sort(key=lambda at: (scene.ids[at] not in named, -degrees[at], scene.labels[at], scene.ids[at]))
    return [
        {
            "id": scene.ids[at],
            "label": scene.labels[at],
            "kind": scene.kinds[at],
            "text": ": ".join(part for part in (light.changes.get(scene.ids[at]), scene.texts[at]) if part),
            "relations": degrees[at],
        }
        for at in drawn
    ]


def graph_of(source: Workspace | Graph) -> Graph:
    """Return a workspace's graph, or the graph itself."""
    return source.graph if isinstance(source, Workspace) else source
