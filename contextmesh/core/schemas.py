"""Schemas: what the data of an object type must look like, in the words of JSON Schema (draft 2020-12)."""

from collections.abc import Mapping
from typing import Any

from contextmesh.errors import InvalidSchemaError, SchemaViolationError

SHOWN = 3


def check_schema(type: str, schema: object) -> None:
    """Refuse what is no JSON Schema.

    Raises:
        InvalidSchemaError: it is malformed; the message names the place.
    """
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 - heavy, and few graphs have schemas

    if not isinstance(schema, Mapping):
        msg = f"the schema for {type} is a {schema.__class__.__name__}; expected a mapping"
        raise InvalidSchemaError(msg)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        msg = f"the schema for {type} is no JSON Schema: {error.message} at {error.json_path}; correct it there"
        raise InvalidSchemaError(msg) from None


def check_against(type: str, object_id: str, data: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Refuse data that a schema does not allow.

    Raises:
        SchemaViolationError: the message names the object, and each field with what is the matter, up to three.
    """
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - heavy, and few graphs have schemas
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    validator = Draft202012Validator(schema, registry=Registry())  # its own, so that no reference fetches an address
    try:
        errors = sorted(validator.iter_errors(data), key=lambda row: (row.json_path, row.message))
    except Unresolvable as error:
        msg = f"the schema for {type} refers to what it does not hold: {error}; put it into its $defs"
        raise InvalidSchemaError(msg) from None
    except (RecursionError, ArithmeticError) as error:
        msg = f"the schema for {type} cannot be worked out for {object_id!r}: {error.__class__.__name__}; simplify it"
        raise InvalidSchemaError(msg) from None
    if errors:
        shown = "; ".join(f"{_field(error.json_path)}: {error.message[:200]}" for error in errors[:SHOWN])
        more = f"; and {len(errors) - SHOWN} more" if len(errors) > SHOWN else ""
        msg = f"{type} {object_id!r} breaks its schema: {shown}{more}"
        raise SchemaViolationError(msg)


def _field(path: str) -> str:
    return path.removeprefix("$").removeprefix(".") or "data"
