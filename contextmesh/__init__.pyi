from . import demo
from .core.events import Clock, Event, FrozenClock, IDGen, TickingClock
from .core.graph import Graph
from .core.model import Object, Patch, Relation, View
from .core.reader import Reader
from .core.runtime import Runtime, behavior
from .core.stores import EventStore, GraphStore, InMemoryEventStore, InMemoryGraphStore
from .errors import (
    AlreadyExistsError,
    ConcurrentWriterError,
    ContextMeshError,
    CorruptedEventPayloadError,
    DuplicateEventError,
    EventNotFoundError,
    HandoffError,
    ImportFileError,
    IncompatibleRuntimeState,
    InvalidEventError,
    InvalidNameError,
    InvalidPatchLifecycleState,
    InvalidPatchOperation,
    MissingServerError,
    NonSerializableEventError,
    NotFoundError,
    ProjectionError,
    QueryError,
    ReadOnlyError,
    ReservedFieldError,
    RunNotFoundError,
    ServerError,
    UsageError,
    WorkspaceNotFoundError,
)
from .investigation.result import Investigation
from .investigation.session import Session
from .investigation.vocabulary import Vocabulary
from .investigation.workspace import Workspace, drop, open, restore  # noqa: A004 - read as contextmesh.open
from .stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore

__version__: str

__all__ = [
    "AlreadyExistsError",
    "Clock",
    "ConcurrentWriterError",
    "ContextMeshError",
    "CorruptedEventPayloadError",
    "DuplicateEventError",
    "Event",
    "EventNotFoundError",
    "EventStore",
    "FalkorDBEventStore",
    "FalkorDBGraphStore",
    "FrozenClock",
    "Graph",
    "GraphStore",
    "HandoffError",
    "IDGen",
    "ImportFileError",
    "InMemoryEventStore",
    "InMemoryGraphStore",
    "IncompatibleRuntimeState",
    "InvalidEventError",
    "InvalidNameError",
    "InvalidPatchLifecycleState",
    "InvalidPatchOperation",
    "Investigation",
    "MissingServerError",
    "NonSerializableEventError",
    "NotFoundError",
    "Object",
    "Patch",
    "ProjectionError",
    "QueryError",
    "ReadOnlyError",
    "Reader",
    "Relation",
    "ReservedFieldError",
    "RunNotFoundError",
    "Runtime",
    "ServerError",
    "Session",
    "TickingClock",
    "UsageError",
    "View",
    "Vocabulary",
    "Workspace",
    "WorkspaceNotFoundError",
    "behavior",
    "demo",
    "drop",
    "open",
    "restore",
]
