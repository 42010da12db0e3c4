"""`where` -> Cypher: what the database can decide, and what is left to look at in Python. Pure.

A pushed condition may let through more rows than `matches` would, never fewer; unless it provably means the very same,
the condition stays in the residual too. What the conditions rest on:

- A field that `mirrored` keeps is a property of the node `n`; of a text, NUL has become U+FFFD there.
- Every value that a dotted path leads to stands in `n.data`, as JSON right after its key: `"key":value`.
- FalkorDB compares text by code points, as Python does. It compares two whole numbers by their difference, which
  overflows, and a whole number with a float as floats, which rounds. So a bound is sent as a float, and rounding
  turns `>` into `>=` at worst.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from contextmesh.core.events import to_json
from contextmesh.core.model import ORDERS, Where
from contextmesh.core.names import TYPE_PATTERN
from contextmesh.core.stores import RESERVED_PROPERTIES
from contextmesh.stores.cypher import clean

MAX_MENTIONS = 20  # each costs a search through the whole of `data`
NUL_IN_JSON = "\\u0000"
CHANGED = re.compile("[\0\ufffd]")  # a text with one of these may look like another one in its property
POSITIONAL = 10**6  # a float of no fraction below this is written as its digits and ".0"
EXACT = 2**53  # below this no whole number is rounded when it becomes a float

type _Bind = Callable[[Any], str]
type _Pushed = tuple[str | None, bool]


def pushdown(where: Where) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
    """Return what of a plain `where` (as an `ObjectQuery` keeps it) the database can decide about a node `n`.

    Returns:
        The Cypher conditions, all of which must hold; their parameters; the residual `where`, to be evaluated on
        the rows that come back.

    Example:
        >>> conditions, parameters, residual = pushdown({"tier": 1, "text": {"!=": ""}})
        >>> conditions, parameters, residual
        (['n.`tier` = $w0'], {'w0': 1}, {'text': {'!=': ''}})
    """
    values: list[Any] = []

    def bind(value: Any) -> str:
        values.append(value)
        return f"$w{len(values) - 1}"

    conditions: list[str] = []
    residual: dict[str, Any] = {}
    for path, condition in where.items():
        for operator, operand in (condition if isinstance(condition, Mapping) else {"==": condition}).items():
            text, exact = _push(path, operator, operand, bind)
            if text is not None:
                conditions.append(text)
            if not exact:
                residual.setdefault(path, {})[operator] = operand
    return conditions, {f"w{at}": value for at, value in enumerate(values)}, residual


def _push(path: str, operator: str, operand: Any, bind: _Bind) -> _Pushed:
    """Return a condition, or None for no condition, and whether it means exactly the same."""
    if operator in ORDERS:
        return _ordered(path, operator[0] + "=", operand, bind)
    several = operand if operator in ("in", "not in") else [operand]
    if operator in ("==", "in"):
        return _equal(path, several, bind)
    excludes_none = any(item is None for item in several)
    return (_mention(path, bind) if excludes_none else None), False


def _equal(path: str, several: Sequence[Any], bind: _Bind) -> _Pushed:
    """Return the condition under which the path leads to one of several values."""
    if not several:
        return "false", True
    if _is_mirrored(path) and all(item is None or _is_property(item) for item in several):
        values = [clean(item) for item in several if item is not None]
        tests = [_among(f"n.`{path}`", values, bind)] if values else []
        tests += [f"n.`{path}` IS NULL"] if len(values) < len(several) else []
        return _any(tests), all(map(_is_exact, several))
    if path in ("label", "text") and all(isinstance(item, str) and item for item in several):
        # An object without a label has its id in this place, one without a text has "".
        return _among(f"n.{path}", [clean(item) for item in several], bind), False
    if any(item is None for item in several):
        return None, False
    if len(several) > MAX_MENTIONS:
        return _mention(path, bind), False
    return _any([_mention(path, bind, item) for item in several]), False


def _ordered(path: str, sign: str, operand: Any, bind: _Bind) -> _Pushed:
    if isinstance(operand, str):
        if not _is_mirrored(path) or "\0" in operand:
            return _mention(path, bind), False
        # A NUL that was replaced has left its place in the order.
        return _any([f"n.`{path}` {sign} {bind(operand)}", f"n.data CONTAINS {bind(NUL_IN_JSON)}"]), False
    if isinstance(operand, bool) or not isinstance(operand, (int, float)):
        return "false", True
    try:
        bound = float(operand)
    except OverflowError:
        return _mention(path, bind), False
    if not _is_mirrored(path):
        return _mention(path, bind), False
    # What is no property may be a whole number of more than 64 bits.
    unknown = f"n.`{path}` IS NULL AND {_mention(path, bind)}"
    return _any([f"n.`{path}` {sign} {bind(bound)}", unknown]), False


def _mention(path: str, bind: _Bind, value: Any = None) -> str:
    """Return the condition that the data holds the path's last key, in front of a value if one is given."""
    return f"n.data CONTAINS {bind(f'{to_json(path.rpartition(".")[2])}:{_beginning(value)}')}"


def _beginning(value: Any) -> str:
    """Return how the JSON of whatever equals a value begins; "" where that varies."""
    if isinstance(value, (bool, str)):
        return to_json(value)
    whole = isinstance(value, (int, float)) and 0 < abs(value) < POSITIONAL and value == int(value)
    return str(int(value)) if whole else ""


def _is_mirrored(path: str) -> bool:
    return bool(TYPE_PATTERN.fullmatch(path)) and path not in RESERVED_PROPERTIES


def _is_property(value: object) -> bool:
    """Whether every value that equals this one is a property: beyond 64 bits a float may equal a whole number."""
    return isinstance(value, (str, bool)) or (isinstance(value, (int, float)) and abs(value) < 2**63)


def _is_exact(value: object) -> bool:
    if isinstance(value, str):
        return not CHANGED.search(value)
    return isinstance(value, bool) or (isinstance(value, (int, float)) and abs(value) < EXACT)


def _among(name: str, values: Sequence[Any], bind: _Bind) -> str:
    return f"{name} = {bind(values[0])}" if len(values) == 1 else f"{name} IN {bind(list(values))}"


def _any(tests: Sequence[str]) -> str:
    return tests[0] if len(tests) == 1 else f"({' OR '.join(tests)})"
