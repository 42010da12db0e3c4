"""Sources: where a fact comes from and when it was observed, in words."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from contextmesh.core.model import Object


def fact_source(row: Object) -> str:
    """Return where a fact comes from and when it was observed, as a reader wants to know it."""
    data = row.data
    file, line, source = data.get("file"), data.get("line"), data.get("source")
    place = f"{file}:{line}" if file and line else str(file or source or "")
    if source == "user_note":
        author = data.get("author")
        place = f"note by {author}, not verified" if author else "user note, not verified"
    moment = _moment(data.get("occurred_at")) or _as_written(data)
    place = f"{place}, at {moment}" if moment and place else place
    return f"{place} (synthetic)" if data.get("synthetic") is True else place


def _as_written(data: Mapping[str, Any]) -> str:
    """Return a source's own time with the zone that the source names, as it was written."""
    written, zone = data.get("time_written"), data.get("zone")
    return f"{written} {zone or '(no zone stated)'}" if isinstance(written, str) and written else ""


def _moment(written: object) -> str:
    """Return a time as written, and in UTC where that reads differently; nothing where none is stated."""
    if not isinstance(written, str):
        return ""
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return written
    if moment.tzinfo is None or moment.utcoffset() == timedelta(0):
        return written
    return f"{written} ({moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC)"
