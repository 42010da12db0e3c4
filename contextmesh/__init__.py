"""contextmesh: a shared, durable graph memory for incident investigations, on FalkorDB.

Start with `ws = contextmesh.open("acmeshop")`. Importing the package loads no widget, database or model
library; each name is loaded when it is first used.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "contextmesh.core.events": ("Clock", "Event", "FrozenClock", "IDGen", "TickingClock"),
    "contextmesh.core.graph": ("Graph", "Reader"),
    "contextmesh.core.model": ("Object", "Patch", "Relation", "View"),
    "contextmesh.core.runtime": ("Runtime", "behavior"),
    "contextmesh.core.stores": ("EventStore", "GraphStore", "InMemoryEventStore", "InMemoryGraphStore"),
    "contextmesh.errors": (
        "AlreadyExistsError",
        "ConcurrentWriterError",
        "ContextMeshError",
        "CorruptedEventPayloadError",
        "DuplicateEventError",
        "EventNotFoundError",
        "HandoffError",
        "ImportFileError",
        "IncompatibleRuntimeState",
        "InvalidEventError",
        "InvalidNameError",
        "InvalidPatchLifecycleState",
        "InvalidPatchOperation",
        "MissingServerError",
        "NonSerializableEventError",
        "NotFoundError",
        "ProjectionError",
        "QueryError",
        "ReservedFieldError",
        "RunNotFoundError",
        "ServerError",
        "UsageError",
        "WorkspaceNotFoundError",
    ),
    "contextmesh.investigation.result": ("Investigation",),
    "contextmesh.investigation.vocabulary": ("Vocabulary",),
    "contextmesh.investigation.workspace": ("Session", "Workspace", "drop", "open", "restore"),
    "contextmesh.stores.falkordb": ("FalkorDBEventStore", "FalkorDBGraphStore"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = ("demo",)

__all__ = sorted([*_HOME, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"contextmesh.{name}")
    if name not in _HOME:
        msg = f"contextmesh has no {name!r}; dir(contextmesh) lists what it has"
        raise AttributeError(msg)
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
