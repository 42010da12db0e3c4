"""Every error that contextmesh raises on purpose.

The tree (in brackets the builtin that each one also is):

    ContextMeshError
    ├── UsageError [ValueError]                    a call that contradicts itself
    ├── InvalidNameError [ValueError]              a workspace, id, kind or type outside its pattern
    ├── InvalidEventError [ValueError]             an event that is malformed or cannot be projected
    │   ├── NonSerializableEventError [TypeError]  a payload holds something JSON cannot carry
    │   ├── ReservedFieldError                     a data key that the graph keeps for itself
    │   ├── InvalidSchemaError                     a schema that is no JSON Schema
    │   └── SchemaViolationError                   data that the schema of its type does not allow
    ├── AlreadyExistsError [ValueError]            an id that is taken
    │   └── DuplicateEventError
    ├── NotFoundError [KeyError]                   an id or name that nothing carries
    │   ├── EventNotFoundError
    │   ├── RunNotFoundError
    │   └── WorkspaceNotFoundError
    ├── HandoffError [LookupError]                 a stage's record is gone or unreadable
    ├── InvalidPatchOperation [ValueError]
    ├── InvalidPatchLifecycleState [RuntimeError]  a patch that is no longer proposed
    ├── PromoteConflictError [RuntimeError]        a fork that cannot be promoted; it carries the plan
    ├── PromoteLineageError [ValueError]           a promote into a graph that is not the fork's parent
    ├── ConcurrentWriterError [RuntimeError]       another writer changed what this one relied on
    ├── IncompatibleRuntimeState [RuntimeError]    a log and a graph, or two logs, that do not belong together
    ├── ProjectionError [RuntimeError]             an event is saved, its projection is not yet
    ├── CorruptedEventPayloadError [ValueError]    a stored event that cannot be read back
    ├── QueryError [ValueError]                    the database refused a query
    ├── ReadOnlyError [PermissionError]            this connection may read, not write
    ├── ServerError [ConnectionError]              FalkorDB cannot be reached, started or trusted
    ├── MissingServerError [ImportError]           the embedded server is not installed
    └── ImportFileError [ValueError]               a source file that cannot be read at all

Messages say what happened, what was expected and what to do. They never hold connection details.
"""


class ContextMeshError(Exception):
    """Base of every error that contextmesh raises on purpose."""

    def __str__(self) -> str:
        # KeyError would show the repr of its argument, quotes and escapes included.
        return ": ".join(str(part) for part in self.args)


class UsageError(ContextMeshError, ValueError):
    """A call, option or combination of options that contradicts itself."""


class InvalidNameError(ContextMeshError, ValueError):
    """A workspace name, id, kind or relation type outside its pattern."""


class InvalidEventError(ContextMeshError, ValueError):
    """An event that is malformed or that no projection could take; nothing was appended."""


class NonSerializableEventError(InvalidEventError, TypeError):
    """A payload holds a value that canonical JSON cannot carry; the message names its path."""


class ReservedFieldError(InvalidEventError):
    """A data key that the graph keeps for itself."""


class InvalidSchemaError(InvalidEventError):
    """A schema that is no JSON Schema; the message names the place."""


class SchemaViolationError(InvalidEventError):
    """Data that the schema of its object type does not allow; the message names the fields."""


class AlreadyExistsError(ContextMeshError, ValueError):
    """An id that is already taken."""


class DuplicateEventError(AlreadyExistsError):
    """An event id that the log already holds."""


class NotFoundError(ContextMeshError, KeyError):
    """An id or name that nothing carries."""


class EventNotFoundError(NotFoundError):
    """An event id or position that the log does not hold."""


class RunNotFoundError(NotFoundError):
    """A run id that the workspace does not hold."""


class WorkspaceNotFoundError(NotFoundError):
    """A workspace name that the server does not hold; the message lists the known ones."""


class HandoffError(ContextMeshError, LookupError):
    """The record that a stage should read back is gone or unreadable; the message names it."""


class InvalidPatchOperation(ContextMeshError, ValueError):
    """A patch whose operation is not create, update, replace or remove, or that lacks what it needs."""


class InvalidPatchLifecycleState(ContextMeshError, RuntimeError):
    """A patch that is no longer proposed cannot be applied or rejected again."""


class PromoteConflictError(ContextMeshError, RuntimeError):
    """A fork that cannot be promoted as it stands; nothing was changed. `plan` lists every conflict."""

    def __init__(self, message: str, plan: object) -> None:
        super().__init__(message)
        self.plan = plan

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.args[0], self.plan)


class PromoteLineageError(ContextMeshError, ValueError):
    """A promote into a graph that is not the one the fork was made from."""


class ConcurrentWriterError(ContextMeshError, RuntimeError):
    """Another writer changed what this write relied on; read again and repeat it."""


class IncompatibleRuntimeState(ContextMeshError, RuntimeError):
    """A log and a graph, or two logs, that do not belong together."""


class ProjectionError(ContextMeshError, RuntimeError):
    """The events are saved in the log, the graph has not taken them yet; the next read or write catches up."""


class CorruptedEventPayloadError(ContextMeshError, ValueError):
    """A stored event cannot be read back; the message names its position."""


class QueryError(ContextMeshError, ValueError):
    """The database refused a query, or gave up on it."""


class ReadOnlyError(ContextMeshError, PermissionError):
    """This connection may read and not write."""


class ServerError(ContextMeshError, ConnectionError):
    """FalkorDB cannot be reached, started or trusted."""


class MissingServerError(ContextMeshError, ImportError):
    """The embedded server is not installed; the message says how to get it."""


class ImportFileError(ContextMeshError, ValueError):
    """A source file that cannot be read at all; the message names file and line."""
