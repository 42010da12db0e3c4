"""Light: what of a scene is lit up, such as an investigation's evidence or what a fork changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from contextmesh.core.diff import Diff
from contextmesh.core.model import Object, Relation
from contextmesh.investigation.facts import relation_id

if TYPE_CHECKING:
    from contextmesh.investigation.result import Investigation


@dataclass(frozen=True, slots=True, kw_only=True)
class Light:
    """What is lit up in a scene, and what is hidden.

    Args:
        selection: id of the selected object; it, its neighbours and the relations between them stay in colour.
        hits: ids of what a search found.
        lit: ids of objects and relations, such as an investigation's evidence and paths.
        changes: id -> `added`, `removed` or `changed`; such an object or relation has the colour of its change.
        hidden_kinds: kinds that are not drawn, and no relation that touches them.
        hidden_relations: relation types that are not drawn.
        theme: `light` or `dark`, the paper that is drawn on.
    """

    selection: str | None = None
    hits: frozenset[str] = frozenset()
    lit: frozenset[str] = frozenset()
    changes: Mapping[str, str] = field(default_factory=dict)
    hidden_kinds: frozenset[str] = frozenset()
    hidden_relations: frozenset[str] = frozenset()
    theme: Literal["light", "dark"] = "light"


def light_of_investigation(inv: "Investigation", *, theme: Literal["light", "dark"] = "light") -> Light:
    """Return the light on an investigation's evidence, its paths, its decision, and what supports that."""
    evidence, decision = list(inv.evidence["id"]), inv.decision
    paths = inv.paths
    lit = {*evidence, *(key for name in ("nodes", "relations") for keys in paths[name] for key in keys)}
    if decision:
        lit |= {decision["id"], *(relation_id(key, "SUPPORTS", decision["id"]) for key in evidence)}
    return Light(lit=frozenset(lit), theme=theme)


def light_of_diff(diff: Diff, *, theme: Literal["light", "dark"] = "light") -> Light:
    """Return the light on what a fork added, changed and removed; `removed_rows` gives the rows of the latter."""
    changes = {row.id: _change(row.in_parent, row.in_fork) for row in diff.divergent_relations}
    changes |= {row.id: _change(row.in_parent, row.in_fork) for row in diff.divergent_objects}
    return Light(changes=changes, theme=theme)


def _change(in_parent: object, in_fork: object) -> str:
    return "added" if in_parent is None else "removed" if in_fork is None else "changed"


def removed_rows(diff: Diff) -> tuple[list[Object], list[Relation]]:
    """Return the objects and relations that a fork removed, as its parent holds them, to draw them besides."""
    objects = [Object(**row.in_parent) for row in diff.divergent_objects if row.in_parent and not row.in_fork]
    relations = [Relation(**row.in_parent) for row in diff.divergent_relations if row.in_parent and not row.in_fork]
    return objects, relations
