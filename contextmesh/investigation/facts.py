"""What an importer hands to a workspace: facts, links, what it left out, and where all of it came from."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_ID = 200


def digest(*parts: str, length: int = 16) -> str:
    """Return a short stable name for some texts: the first hexadecimal digits of their SHA-256."""
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:length]


def relation_id(source: str, type_: str, target: str) -> str:
    """Return the id that follows from a relation's ends and type, so that writing it twice is noticed."""
    plain = f"{source}>{type_}>{target}"
    clear = len(plain) <= MAX_ID and ">" not in source + target
    return plain if clear else f"{type_}.{digest(source, type_, target, length=32)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One object as its source states it.

    Attributes:
        id: Printable ASCII without spaces, at most 200 characters; follows from the source, so it is stable.
        kind: `Entity` or `Evidence`.
        data: The object's data, in types that JSON knows.
    """

    id: str
    kind: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One relation as its source states it.

    Attributes:
        source: Id of the fact it leads from.
        type: Relation type in upper case, such as `RELATES_TO`.
        target: Id of the fact it leads to.
        data: What else the source says of it, such as `source`, its place.
    """

    source: str
    type: str
    target: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A part of a source that was left out, or kept but not understood; the reason says which.

    Attributes:
        file: Name of the file, without its folder.
        line: Line in the file, counted from 1.
        reason: What was found and what was expected.
    """

    file: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Everything that was read from one source.

    Attributes:
        facts: The objects, the most important first.
        links: The relations between them.
        skipped: What was left out or not understood, by line.
        source: Id of what was read: a fact that an earlier reading of the same source held and this one lacks has
            vanished from it. Empty where nothing was read, so that an unreadable source withdraws nothing.
    """

    facts: tuple[Fact, ...]
    links: tuple[Link, ...]
    skipped: tuple[Skipped, ...]
    source: str


@dataclass(slots=True, kw_only=True)
class Report:
    """What an import did. Importing the same again gives `added` 0 and `changed` 0.

    Attributes:
        added: Facts that are new.
        changed: Facts whose source says something else now, and those that vanished from it (`withdrawn`).
        unchanged: Facts that the workspace held already.
        withdrawn: How many of the changed ones have vanished from their source.
        skipped: What was left out or not understood, by file and line.
    """

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    withdrawn: int = 0
    skipped: list[Skipped] = field(default_factory=list)

    def add(self, other: "Report") -> None:
        """Count another report's facts in."""
        self.added += other.added
        self.changed += other.changed
        self.unchanged += other.unchanged
        self.withdrawn += other.withdrawn
        self.skipped += other.skipped

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        rows = [{"file": row.file, "line": row.line, "reason": row.reason} for row in self.skipped]
        return {"added": self.added, "changed": self.changed, "unchanged": self.unchanged, "skipped": rows}

    def __str__(self) -> str:
        gone = f" ({self.withdrawn} withdrawn)" if self.withdrawn else ""
        lines = [f"{self.added} facts added, {self.changed} changed{gone}, {self.unchanged} unchanged"]
        lines += [f"remarks on what was left out or not understood ({len(self.skipped)}):"] if self.skipped else []
        lines += [f"  {row.file}:{row.line}: {row.reason}" for row in self.skipped]
        return "\n".join(lines)

    __repr__ = __str__


def inside(source: str, ids: Sequence[str]) -> list[str]:
    """Return those ids that belong to a source: its own id, and those that begin with it and a dot."""
    return [key for key in ids if source and (key == source or key.startswith(f"{source}."))]
