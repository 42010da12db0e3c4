"""Facts and lines of a scene, and a small scene of them."""

from contextmesh.core.model import Object, Relation
from contextmesh.investigation.scene import scene_of


def fact(key: str, kind: str = "Entity", **data: object) -> Object:
    return Object(id=key, type=kind, data={"label": key.upper(), **data})


def line(source: str, type_: str, target: str) -> Relation:
    return Relation(id=f"{source}>{type_}>{target}", source=source, target=target, type=type_)


SMALL = scene_of(
    [fact("api"), fact("maya"), fact("note", "Memory"), fact("run", "Run"), fact("redis"), fact("alone")],
    [
        line("api", "OWNED_BY", "maya"),
        line("api", "DEPENDS_ON", "redis"),
        line("note", "MENTIONS", "api"),
        line("run", "GENERATED", "note"),
        line("api", "AFFECTS", "gone"),
    ],
)
