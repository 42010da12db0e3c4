from . import demo, widgets
from .core.delivery import SinkHandle
from .core.diff import Diff, DivergentObject, DivergentRelation
from .core.events import Clock, Event, FrozenClock, TickingClock
from .core.graph import Graph
from .core.ids import IDGen
from .core.memory_graph import InMemoryGraphStore
from .core.memory_log import InMemoryEventStore
from .core.model import ChainMatch, Object, ObjectQuery, ObjectQueryResult, Patch, Relation, View
from .core.plan import PromoteConflict, PromotePlan
from .core.promote import PromoteResult
from .core.reader import Reader
from .core.runtime import Runtime, behavior
from .core.sinks import (
    CallbackSink,
    DeliveryContext,
    EventSink,
    JSONLEventSink,
    OverflowPolicy,
    RecordingSink,
    SinkConfig,
    SinkMetrics,
    SinkState,
    SinkStatus,
)
from .core.stores import Branch, EventStore, GraphStore
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
    InvalidSchemaError,
    MissingServerError,
    NonSerializableEventError,
    NotFoundError,
    ProjectionError,
    PromoteConflictError,
    PromoteLineageError,
    QueryError,
    ReadOnlyError,
    ReservedFieldError,
    RunNotFoundError,
    SchemaViolationError,
    ServerError,
    UsageError,
    WorkspaceNotFoundError,
)
from .investigation.embedding import Embedder
from .investigation.explain import Explanation
from .investigation.opening import drop, open, restore  # noqa: A004 - read as contextmesh.open
from .investigation.result import Investigation
from .investigation.session import Session
from .investigation.vocabulary import Vocabulary
from .investigation.workspace import Workspace
from .stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from .stores.sqlite import SQLiteEventStore

__version__: str

__all__ = [
    "AlreadyExistsError",
    "Branch",
    "CallbackSink",
    "ChainMatch",
    "Clock",
    "ConcurrentWriterError",
    "ContextMeshError",
    "CorruptedEventPayloadError",
    "DeliveryContext",
    "Diff",
    "DivergentObject",
    "DivergentRelation",
    "DuplicateEventError",
    "Embedder",
    "Event",
    "EventNotFoundError",
    "EventSink",
    "EventStore",
    "Explanation",
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
    "InvalidSchemaError",
    "Investigation",
    "JSONLEventSink",
    "MissingServerError",
    "NonSerializableEventError",
    "NotFoundError",
    "Object",
    "ObjectQuery",
    "ObjectQueryResult",
    "OverflowPolicy",
    "Patch",
    "ProjectionError",
    "PromoteConflict",
    "PromoteConflictError",
    "PromoteLineageError",
    "PromotePlan",
    "PromoteResult",
    "QueryError",
    "ReadOnlyError",
    "Reader",
    "RecordingSink",
    "Relation",
    "ReservedFieldError",
    "RunNotFoundError",
    "Runtime",
    "SQLiteEventStore",
    "SchemaViolationError",
    "ServerError",
    "Session",
    "SinkConfig",
    "SinkHandle",
    "SinkMetrics",
    "SinkState",
    "SinkStatus",
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
    "widgets",
]
