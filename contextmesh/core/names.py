"""Names: what an id, an object type and a relation type may look like."""

import re
from collections.abc import Iterable

from contextmesh.errors import InvalidNameError

ID_PATTERN = re.compile(r"[!-~]{1,200}")
TYPE_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
RESERVED_TYPES = frozenset({"Node", "Head", "Patch", "Schema"})


def check_id(value: object) -> str:
    """Return an id, or refuse it: 1 to 200 printable ASCII characters without spaces.

    Indexed equality in FalkorDB misses ids with spaces, control characters or nothing in them.
    """
    if not isinstance(value, str) or not ID_PATTERN.fullmatch(value):
        shown = repr(value)[:80]
        msg = f"{shown} is no id; expected 1 to 200 printable ASCII characters without spaces, such as 'checkout-api'"
        raise InvalidNameError(msg)
    return value


def possible_ids(values: Iterable[object]) -> list[str]:
    """Return those values that can be an id at all, sorted, each once; no store holds any other."""
    return sorted({value for value in values if isinstance(value, str) and ID_PATTERN.fullmatch(value)})


def check_kind(value: object) -> str:
    """Return an object type, or refuse it; `Node`, `Head`, `Patch` and `Schema` belong to the storage."""
    if check_relation_type(value) in RESERVED_TYPES:
        msg = f"the type {value!r} belongs to the storage; choose another name"
        raise InvalidNameError(msg)
    return str(value)


def check_relation_type(value: object) -> str:
    """Return a relation type, or refuse it: a letter or underscore, then up to 63 letters, digits, underscores."""
    if not isinstance(value, str) or not TYPE_PATTERN.fullmatch(value):
        shown = repr(value)[:80]
        msg = f"{shown} is no type; expected a letter, then up to 63 letters, digits or underscores, such as 'Memory'"
        raise InvalidNameError(msg)
    return value
