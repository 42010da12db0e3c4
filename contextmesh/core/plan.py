"""Plan: what a promote would bring over, and what stands against it. A three-way merge of states."""

from collections.abc import Iterable
from dataclasses import dataclass

from contextmesh.core.diff import (
    Side,
    State,
    alike,
    compare,
    object_state,
    relation_state,
    touched,
    without_lifecycle,
)
from contextmesh.core.display import counted, table
from contextmesh.core.events import Event, to_json
from contextmesh.core.forked import lineage
from contextmesh.core.graph import Graph
from contextmesh.core.projection import Changes
from contextmesh.core.stores import EventStore

EVENTS_OF = {  # each change that a promote brings, and how many events it takes
    "objects_created": 1,
    "objects_patched": 2,
    "objects_removed": 1,
    "relations_created": 1,
    "relations_removed": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromoteConflict:
    """Why a part of a fork cannot be promoted.

    Args:
        kind: `both_changed`, `dangling_relation` or `orphaning_removal`.
        entity: `object` or `relation`.
        id: of the entity.
        in_base: its state where the two parted, or up to where the fork was promoted last; None if it did not exist.
        in_parent: its state in the parent.
        in_fork: its state in the fork.
        detail: one line that says what is the matter.
    """

    kind: str
    entity: str
    id: str
    in_base: State | None
    in_parent: State | None
    in_fork: State | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotePlan:
    """What a promote would do. It is advice: applying computes it anew.

    Args:
        from_run: the fork's run.
        into_run: the parent's run.
        from_branch: the fork's name.
        forked_at_event: id of the last shared event, None if nothing is shared.
        computed_against: id of the parent's newest event, None if it holds none.
        promoted_to: the fork's position up to which it goes.
        objects_created: states to create, by id.
        objects_patched: states to bring existing objects to, by id.
        objects_removed: ids.
        relations_created: states to create, by id.
        relations_removed: ids.
        conflicts: why it cannot be applied; nothing can while there is one.
        warnings: what stays behind in the fork, or looks odd.
    """

    from_run: str
    into_run: str
    from_branch: str
    forked_at_event: str | None
    computed_against: str | None
    promoted_to: int
    objects_created: tuple[State, ...] = ()
    objects_patched: tuple[State, ...] = ()
    objects_removed: tuple[str, ...] = ()
    relations_created: tuple[State, ...] = ()
    relations_removed: tuple[str, ...] = ()
    conflicts: tuple[PromoteConflict, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_promotable(self) -> bool:
        """Whether nothing stands against it."""
        return not self.conflicts

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to bring over."""
        return not any(self.counts().values())

    def counts(self) -> dict[str, int]:
        """Return how many of each change there are."""
        return {name: len(getattr(self, name)) for name in EVENTS_OF}

    def summary(self) -> str:
        """Return the plan in one line."""
        parts = [counted(n, name.replace("_", " ")) for name, n in self.counts().items() if n]
        parts += [counted(len(self.conflicts), "conflicts")] if self.conflicts else []
        return f"promote {self.from_branch!r}: {', '.join(parts) or 'nothing to do'}"

    def __repr__(self) -> str:
        return f"<PromotePlan: {self.summary()}>"

    def _repr_html_(self) -> str:
        rows = [("create object", row["id"], row["type"]) for row in self.objects_created]
        rows += [("patch object", row["id"], row["type"]) for row in self.objects_patched]
        rows += [("remove object", key, "") for key in self.objects_removed]
        rows += [
            ("create relation", row["id"], f"{row['source']} -{row['type']}-> {row['target']}")
            for row in self.relations_created
        ]
        rows += [("remove relation", key, "") for key in self.relations_removed]
        stops = [(f"conflict: {row.kind}", row.id, row.detail) for row in self.conflicts]
        notes = [("warning", "", text) for text in self.warnings]
        return table(self.summary(), ("what", "id", "how"), [*stops, *notes, *rows])


States = tuple[State | None, State | None, State | None]  # in the base, in the parent, in the fork


def planned(parent: Graph, fork: Graph) -> tuple[PromotePlan, int]:
    """Return the plan, and the parent's position that it holds for."""
    base = lineage(fork.log)[-1][1]

    def look(ours: Side, theirs: Side) -> tuple[PromotePlan, int]:
        return _Planner(ours, theirs, base).plan(), ours.position

    return compare(parent, fork, base, look)


def _told_apart(events: Iterable[Event], run_id: str) -> tuple[list[Event], list[Event]]:
    """Return the markers of a fork's earlier promotes, and the events that are the parent's own doing."""
    markers, own, brought = [], [], 0
    for event in events:
        if brought:
            brought -= 1
        elif event.type == "promote.applied" and event.payload.get("from_run") == run_id:
            markers.append(event)
            brought = sum(len(event.payload[name]) * n for name, n in EVENTS_OF.items())
        else:
            own.append(event)
    return markers, own


class _Planner:
    """Work out what a promote would do: three-way, from the state where the two parted and that of either side.

    An object or relation is changed on a side if it differs from the base. What only the fork changed comes over,
    what only the parent changed stays, and what both changed is a conflict.
    """

    def __init__(self, parent: Side, fork: Side, base: int) -> None:
        self.parent = parent
        self.fork = fork
        # What earlier promotes of this fork wrote is the fork's own doing, and the two parted anew after the last.
        markers, own = _told_apart(parent.events, fork.graph.run_id)
        self.base = base
        self.promoted_to = max([base, *(event.payload["promoted_to"] for event in markers)])
        self.changed_here = touched(own)
        self.changed_there = touched(_after(fork, self.promoted_to, base))
        self.conflicts: list[PromoteConflict] = []
        self._past: Changes | None = None

    def plan(self) -> PromotePlan:
        """Return the plan."""
        steps = [self._step("object", key) for key in sorted(self.changed_there.objects)]
        created = [new for old, new in steps if new and (old is None or old["type"] != new["type"])]
        removed = {old["id"] for old, new in steps if old and (new is None or old["type"] != new["type"])}
        patched = [new for old, new in steps if old and new and old["type"] == new["type"] and not alike(old, new)]
        related, unrelated, brought = self._relations(removed, {row["id"] for row in created})
        return PromotePlan(
            from_run=self.fork.graph.run_id,
            into_run=self.parent.graph.run_id,
            from_branch=self.fork.graph.log.branch_name,
            forked_at_event=_event_at(self.parent.graph.log, self.base),
            computed_against=_event_at(self.parent.graph.log, self.parent.position),
            promoted_to=self.fork.position,
            objects_created=tuple(created),
            objects_patched=tuple(patched),
            objects_removed=tuple(sorted(removed)),
            relations_created=tuple(related),
            relations_removed=tuple(unrelated),
            conflicts=tuple(self.conflicts),
            warnings=tuple(self._warnings(brought)),
        )

    def _step(self, entity: str, key: str) -> tuple[State | None, State | None]:
        """Return the state in the parent and the one to bring it to; twice the same if nothing is to do."""
        if not self._may_differ(entity, key):
            return self._state(self.parent, entity, key), self._state(self.fork, entity, key)
        states = base, ours, theirs = self._states(entity, key)
        if alike(base, theirs):
            return ours, ours
        if alike(base, ours):
            return ours, theirs
        self._conflict("both_changed", entity, states, f"{entity} {key!r} was changed on both sides")
        return ours, ours

    def _may_differ(self, entity: str, key: str) -> bool:
        """Whether the parent may have changed it; if not, its state there is that of the base."""
        if entity == "object":
            return key in self.changed_here.objects
        lost = self._state(self.parent, entity, key) is None and bool(self.changed_here.removed)
        return key in self.changed_here.relations or lost  # a relation may have gone with an object

    @staticmethod
    def _state(side: Side, entity: str, key: str) -> State | None:
        return side.object(key) if entity == "object" else side.relation(key)

    def _states(self, entity: str, key: str) -> States:
        past = self._past_state()
        row = past.objects.get(key)
        base = object_state(row[0] if row else None) if entity == "object" else relation_state(past.relations.get(key))
        return base, self._state(self.parent, entity, key), self._state(self.fork, entity, key)

    def _past_state(self) -> Changes:
        """Return what the fork held where the two parted; read once, and only if both sides touched the same."""
        if self._past is None:
            objects = self.changed_here.objects & self.changed_there.objects
            self._past = Changes()
            for event in self.fork.graph.log.iter_events(until=self.promoted_to):
                one = touched([event])
                if one.relations or one.removed or one.objects & objects:
                    self._past.add(event)
        return self._past

    def _conflict(self, kind: str, entity: str, states: States, detail: str) -> None:
        base, ours, theirs = states
        key = next(row["id"] for row in states if row)
        self.conflicts.append(
            PromoteConflict(
                kind=kind, entity=entity, id=key, in_base=base, in_parent=ours, in_fork=theirs, detail=detail
            )
        )

    def _relations(self, removed: set[str], made: set[str]) -> tuple[list[State], list[str], list[State]]:
        """Return the relations to create, the ids of those to remove, and which of the former are of the fork."""
        created, unrelated, brought = [], [], []
        for key in sorted(self.changed_there.relations | self._lost()):
            old, new = self._step("relation", key)
            torn = old is not None and not removed.isdisjoint((old["source"], old["target"]))
            if not alike(old, new):
                brought += [new] if new else []
            elif not torn or self._is_orphaned(key, old, removed - made):
                continue
            unrelated += [key] if old else []
            created += [new] if new else []
        self._check_ends(brought, removed, made)
        return created, unrelated, brought

    def _lost(self) -> set[str]:
        """Return the relations that a removal in the fork took along, and those that one in the parent would."""
        gone = self.changed_there.removed
        rows = list(self.parent.relations.values())
        if gone and (self.changed_here.removed or self.changed_here.cut):  # the parent may not have them either
            rows += self._past_state().relations.values()
        return {row.id for row in rows if not gone.isdisjoint((row.source, row.target))}

    def _is_orphaned(self, key: str, row: State | None, gone: set[str]) -> bool:
        """Whether a removal would take along a relation that the fork does not have; if so, it is a conflict.

        What the fork has, dangling as it is there, is made again; so is what touches an object that gets a new type.
        """
        if row is None or gone.isdisjoint((row["source"], row["target"])) or alike(row, self.fork.relation(key)):
            return False
        if not any(known.entity == "relation" and known.id == key for known in self.conflicts):
            end = row["source"] if row["source"] in gone else row["target"]
            detail = f"removing {end!r} would take along the relation {key!r}, which the fork does not have"
            self._conflict("orphaning_removal", "relation", self._states("relation", key), detail)
        return True

    def _check_ends(self, brought: list[State], removed: set[str], made: set[str]) -> None:
        """Find the relations whose ends the fork has and the parent would not have."""
        ends = {row[end] for row in brought for end in ("source", "target")}
        here = (self.parent.graph.get_objects(ends).keys() - removed) | made if ends else set()
        there = self.fork.graph.get_objects(ends).keys() if ends else set()
        for row in brought:
            for key in sorted({row["source"], row["target"]} & (there - here)):
                detail = f"relation {row['id']!r} would dangle: {key!r} is in the fork and would not be in the parent"
                self._conflict("dangling_relation", "relation", self._states("relation", row["id"]), detail)

    def _warnings(self, brought: list[State]) -> list[str]:
        ends = {row[end] for row in brought for end in ("source", "target")}
        there = self.fork.graph.get_objects(ends).keys() if ends else set()
        found = [
            f"relation {row['id']!r} dangles in the fork already: there is no object {key!r}"
            for row in brought
            for key in sorted({row["source"], row["target"]} - there)
        ]
        events = self.fork.events
        proposed = {event.payload["patch"]["id"] for event in events if event.type == "patch.proposed"}
        settled = {event.payload["patch"]["id"] for event in events if event.type == "patch.applied"}
        settled |= {event.payload["patch_id"] for event in events if event.type == "patch.rejected"}
        open_patches = sorted(proposed - settled)
        if open_patches:
            found.append(f"proposed patches stay in the fork: {', '.join(open_patches)}")
        schemas = sorted(_schemas(events) - _schemas(self.parent.events))
        if schemas:
            names = ", ".join(sorted({name for name, _ in schemas}))
            found.append(f"schemas that only the fork has stay there: {names}; load them in the parent")
        return found


def _schemas(events: Iterable[Event]) -> set[tuple[str, str]]:
    loaded = (event.payload for event in events if event.type == "schema.loaded")
    return {(str(payload.get("type")), to_json(payload)) for payload in loaded}


def _after(side: Side, position: int, base: int) -> tuple[Event, ...]:
    """Return a side's events after a position; it holds those after `base` already."""
    if position == base:
        return side.events
    return without_lifecycle(side.graph.log.iter_events(position, side.position))


def _event_at(log: EventStore, position: int) -> str | None:
    return next((event.id for event in log.iter_events(position - 1, position)), None) if position else None
