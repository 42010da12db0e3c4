"""What the graph consists of: objects, relations, patches, and the view that a behaviour gets."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from contextmesh.core.events import Event, canonical
from contextmesh.core.names import check_kind
from contextmesh.errors import NonSerializableEventError, UsageError

Where = Mapping[str, Any]
MODES = ("objects", "exists")
ORDERS = (">", "<", ">=", "<=")
OPERATORS = (*ORDERS, "==", "!=", "in", "not in")


class Object(msgspec.Struct, frozen=True, kw_only=True):
    """A detached, read-only copy of an object; editing it changes nothing in the graph.

    Args:
        id: unique in the graph.
        type: its kind, which never changes.
        data: plain JSON data.
        version: 1 on creation, then one more for each applied patch.
        provenance: `created_by` and `updated_by` (event ids), `actor`, `evidence`.
    """

    id: str
    type: str
    data: dict[str, Any]
    version: int = 1
    provenance: dict[str, Any] = msgspec.field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the object as plain data."""
        return {
            "id": self.id,
            "type": self.type,
            "data": self.data,
            "version": self.version,
            "provenance": self.provenance,
        }


class Relation(msgspec.Struct, frozen=True, kw_only=True):
    """A detached, read-only copy of a relation. Its endpoints need not exist as objects."""

    id: str
    source: str
    target: str
    type: str
    data: dict[str, Any] = msgspec.field(default_factory=dict)
    provenance: dict[str, Any] = msgspec.field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the relation as plain data."""
        return {
            "id": self.id,
            "source": self.source,
            "target": self.target,
            "type": self.type,
            "data": self.data,
            "provenance": self.provenance,
        }


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """One change to one object, with its audit trail.

    Args:
        op: `create`, `update` (set these fields), `replace` (these fields are all) or `remove`.
        status: `proposed`, then `applied` or `rejected`, once.
        type: the object's type; needed to create one.
        expected_version: the version that the target must have, or None.
        reason: why it was rejected, or None.
    """

    id: str
    target: str
    op: str
    updates: dict[str, Any] = msgspec.field(default_factory=dict)
    status: str = "proposed"
    type: str | None = None
    actor: str = "system"
    rationale: str | None = None
    evidence: list[str] = msgspec.field(default_factory=list)
    expected_version: int | None = None
    llm_request_event_id: str | None = None
    tool_request_event_ids: list[str] = msgspec.field(default_factory=list)
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the patch as plain data."""
        return {name: getattr(self, name) for name in self.__struct_fields__}

    def settled(self, status: str, reason: str | None = None) -> "Patch":
        """Return the patch as it stands after its verdict."""
        return msgspec.structs.replace(self, status=status, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainMatch:
    """One way through the graph that fits a chain; a node or a relation may fill several of its positions.

    Args:
        objects: one for each position, in the chain's order.
        relations: one for each hop; `relations[i]` joins `objects[i]` and `objects[i + 1]`.
    """

    objects: tuple[Object, ...]
    relations: tuple[Relation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectQuery:
    """What a graph store is asked for: the objects of a type that fulfil `where`.

    Args:
        type: a kind, or None for all.
        where: what `matches` takes; kept as a plain copy.
        limit: at most so many, the first by id; None for all.
        mode: `objects`, or `exists` to learn only whether there is one.

    Raises:
        UsageError: an argument that is none of this, or a condition that nothing could be compared with.
        InvalidNameError: a type that no object can have.

    Example:
        >>> ObjectQuery(type="Task", where={"tier": {"in": (1, 2)}}).where
        {'tier': {'in': [1, 2]}}
    """

    type: str | None = None
    where: Where = field(default_factory=dict)
    limit: int | None = None
    mode: str = "objects"

    def __post_init__(self) -> None:
        if self.type is not None:
            check_kind(self.type)
        if self.limit is not None and (type(self.limit) is not int or self.limit < 0):
            msg = f"limit is {self.limit!r}; expected a whole number from 0, or None for all"
            raise UsageError(msg)
        if self.mode not in MODES:
            msg = f"mode is {self.mode!r}; expected one of {', '.join(MODES)}"
            raise UsageError(msg)
        object.__setattr__(self, "where", plain_where(self.where))


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectQueryResult:
    """What a graph store answers to an `ObjectQuery`: candidates, and what is still to be asked of them.

    Args:
        objects: every object that fulfils the query, ordered by id, and perhaps others that fail `residual`.
            None is missing for the query's limit unless `residual` is empty. Empty where `exists` tells all.
        residual: the conditions of the query that the store did not decide.
        exists: for the mode `exists`, whether there is such an object; None where the residual must decide.
    """

    objects: tuple[Object, ...] = ()
    residual: Where = field(default_factory=dict)
    exists: bool | None = None

    def matching(self) -> list[Object]:
        """Return the objects that fulfil the residual conditions too."""
        return [row for row in self.objects if matches(row.data, self.residual)]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A point-in-time, read-only slice of the graph, made for one behaviour.

    Args:
        position: the log position that it shows.
        hits: what the declaration's `search` returned.
        paths: what the declaration's `paths` returned.
    """

    position: int
    object_rows: tuple[Object, ...] = ()
    relation_rows: tuple[Relation, ...] = ()
    event_rows: tuple[Event, ...] = ()
    hits: Any = None
    paths: Any = None

    def objects(self, type: str | None = None, where: Where | None = None) -> list[Object]:
        """Return the view's objects by id; `where` means what `Graph.objects` means by it."""
        plan = ObjectQuery(type=type, where=where or {})
        found = (row for row in self.object_rows if type in (None, row.type) and matches(row.data, plan.where))
        return [copy.deepcopy(row) for row in found]

    def relations(self, type: str | None = None) -> list[Relation]:
        """Return the view's relations by id."""
        return [copy.deepcopy(row) for row in self.relation_rows if type in (None, row.type)]

    def events(self) -> list[Event]:
        """Return the view's recent events, oldest first."""
        return [copy.deepcopy(row) for row in self.event_rows]


def lookup(data: object, path: str) -> Any:
    """Return the value at a dotted path; a missing path is None."""
    for name in path.split("."):
        if not isinstance(data, Mapping) or name not in data:
            return None
        data = data[name]
    return data


def matches(data: object, where: Where | None) -> bool:
    """Whether data fulfils every condition of `where`.

    A condition is a dotted path with a literal, or with `{operator: value}`: `> < >= <= == != in "not in"`.
    A missing path equals None. Values compare as JSON does: a boolean never equals a number, and order
    is only defined between two numbers or two texts.

    Raises:
        UsageError: for an unknown operator.
    """
    return all(_holds(lookup(data, path), condition) for path, condition in (where or {}).items())


def plain_where(where: object) -> dict[str, Any]:
    """Return a plain copy of `where`, or refuse it before anything is compared.

    Raises:
        UsageError: no mapping of texts, an unknown operator, or a value that JSON cannot carry.
    """
    if where is None:
        return {}
    if not isinstance(where, Mapping) or not all(isinstance(path, str) for path in where):
        msg = f"where is {str(where)[:80]!r}; expected a mapping of dotted paths to values or {{operator: value}}"
        raise UsageError(msg)
    return {str(path): _plain_condition(condition, f"where.{path}") for path, condition in where.items()}


def _plain_condition(condition: object, path: str) -> Any:
    try:
        if not isinstance(condition, Mapping):
            return canonical(condition, path)
        for operator, operand in condition.items():
            _check_operator(operator, operand)
        several = ("in", "not in")
        return {key: canonical(list(value) if key in several else value, path) for key, value in condition.items()}
    except NonSerializableEventError as error:
        raise UsageError(str(error)) from None


def _check_operator(operator: object, operand: object) -> None:
    if operator not in OPERATORS:
        msg = f"where has the operator {operator!r}; expected one of > < >= <= == != in 'not in'"
        raise UsageError(msg)
    if operator in ("in", "not in") and (isinstance(operand, str) or not isinstance(operand, Iterable)):
        msg = f"{operator!r} got {operand!r}; expected a list of values"
        raise UsageError(msg)


def _holds(value: object, condition: object) -> bool:
    if not isinstance(condition, Mapping):
        return same(value, condition)
    return all(_compare(value, operator, operand) for operator, operand in condition.items())


def _compare(value: Any, operator: str, operand: Any) -> bool:
    _check_operator(operator, operand)
    if operator in ("in", "not in"):
        return any(same(value, item) for item in operand) == (operator == "in")
    if operator in ("==", "!="):
        return same(value, operand) == (operator == "==")
    if _family(value) != _family(operand) or _family(value) not in ("number", "text"):
        return False
    return bool({">": value > operand, "<": value < operand, ">=": value >= operand, "<=": value <= operand}[operator])


def _family(value: object) -> str:
    if value is None or isinstance(value, bool):
        return type(value).__name__
    if isinstance(value, (int, float)):
        return "number"
    return "text" if isinstance(value, str) else "other"


def same(left: object, right: object) -> bool:
    """Whether two JSON values are equal, booleans and numbers kept apart at every depth."""
    if _family(left) != _family(right):
        return False
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, Sequence) and isinstance(right, Sequence) and not isinstance(left, str):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right
