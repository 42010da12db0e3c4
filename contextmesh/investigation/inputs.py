"""What a user hands in, checked in words that say what was expected."""

from datetime import datetime

from contextmesh.core.names import check_id
from contextmesh.core.reader import MAX_HOPS
from contextmesh.errors import UsageError

WORKSPACE = "workspace"
LABEL_LENGTH = 80
SLOW_S = 1.0  # what takes longer shows its progress


def moment(at: object) -> str | None:
    """Return a time as ISO 8601 with its zone, or refuse what names none."""
    if at is None:
        return None
    try:
        found = at if isinstance(at, datetime) else datetime.fromisoformat(at if isinstance(at, str) else "")
    except ValueError:
        msg = f"the time {at!r} cannot be read; expected ISO 8601 with a zone, such as '2026-03-02T14:05+01:00'"
        raise UsageError(msg) from None
    if found.tzinfo is None:
        msg = f"the time {at!s} names no zone; expected one, such as '2026-03-02T14:05+01:00'"
        raise UsageError(msg)
    return found.isoformat()


def label_of(text: str) -> str:
    """Return the first words of a text, for a label."""
    line = spaced(text)
    return line if len(line) <= LABEL_LENGTH else f"{line[:LABEL_LENGTH].rsplit(' ', 1)[0]} …"


def own_id(value: str) -> str:
    """Return an id that a user brings, or refuse one that contextmesh gives out itself."""
    check_id(value)
    if "#" in value or value == WORKSPACE or value.startswith(("session.", "agent.", "evt_", "rel_", "patch_")):
        msg = f"ids such as {value!r} are contextmesh's own; choose another, such as 'checkout-api'"
        raise UsageError(msg)
    return value


def spaced(text: object) -> str:
    """Return a text with single spaces; nothing for what is no text."""
    return " ".join(text.split()) if isinstance(text, str) else ""


def check_note(text: object, at: object = None) -> None:
    """Refuse what cannot be a note's text or time."""
    check_text(text, "note's text")
    moment(at)


def check_text(text: object, what: str) -> None:
    """Refuse what holds no words."""
    if not isinstance(text, str) or not text.strip():
        msg = f"the {what} is {text!r}; expected some words"
        raise UsageError(msg)


def check_limit(limit: object) -> None:
    """Refuse a limit below 1."""
    if not isinstance(limit, int) or limit < 1:
        msg = f"limit is {limit!r}; expected 1 or more"
        raise UsageError(msg)


def check_hops(hops: object, least: int) -> None:
    """Refuse a number of hops outside its range."""
    if not isinstance(hops, int) or not least <= hops <= MAX_HOPS:
        msg = f"hops is {hops!r}; expected {least} to {MAX_HOPS}"
        raise UsageError(msg)
