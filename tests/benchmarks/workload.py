"""What both sides are given to write: the same operations in the same order, from the same seed."""

import random
from pydoc_data.topics import topics
from typing import Any, Protocol

KINDS = ("Memory", "Evidence", "Entity", "Decision")
TYPES = ("MENTIONS", "SUPPORTS", "RELATES_TO")
OBJECTS, RELATIONS = 0.5, 0.3  # the rest are patches
MIX = (
    "50 % objects of 4 kinds (label, 120 characters of prose, two scalars), 30 % relations of 3 types, 20 % patches; "
    "one operation is one call, and a patch is two of our events, one of the peer's"
)
PROSE = " ".join(" ".join(topics.values()).split())  # Python's own documentation: real words, as rare as they are
TEXT = 120


class Identified(Protocol):
    """What creating something returns."""

    @property
    def id(self) -> str:
        """Its id."""
        ...


class Writable(Protocol):
    """What a graph of either side can do."""

    def add_object(self, type: str, data: dict[str, Any], /) -> Identified:
        """Create an object of a minted id."""
        ...

    def add_relation(self, source: str, target: str, type: str, data: dict[str, Any], /) -> Identified:
        """Create a relation of a minted id."""
        ...

    def patch_object(self, target: str, updates: dict[str, Any], /) -> object:
        """Set fields of an object."""
        ...


def fields(number: int) -> dict[str, Any]:
    """Return an object's data: a label, 120 characters of text, two scalars."""
    at = number * 997 % (len(PROSE) - TEXT)
    text = PROSE[at : at + TEXT]
    return {"label": f"note {number}", "text": text, "score": number % 100 / 100, "trusted": number % 2 == 0}


class Workload:
    """A run of operations; it knows what must be in the graph afterwards."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._number = 0
        self.ids: list[str] = []
        self.relations = 0

    def expected(self) -> tuple[int, int]:
        """Return how many objects and relations there must be."""
        return len(self.ids), self.relations

    def write(self, graph: Writable, operations: int) -> None:
        """Do the next operations, as the mix says."""
        for _ in range(operations):
            choice = self._random.random() if len(self.ids) > 1 else 0
            if choice < OBJECTS:
                self.add_object(graph)
            elif choice < OBJECTS + RELATIONS:
                self.add_relation(graph)
            else:
                self.patch_object(graph)

    def add_object(self, graph: Writable) -> None:
        """Create an object."""
        self._number += 1
        self.ids.append(graph.add_object(KINDS[self._number % 4], fields(self._number)).id)

    def add_relation(self, graph: Writable) -> None:
        """Relate two of the objects."""
        self._number += 1
        source, target = self._random.choice(self.ids), self._random.choice(self.ids)
        graph.add_relation(source, target, TYPES[self._number % 3], {"weight": self._number % 10})
        self.relations += 1

    def patch_object(self, graph: Writable) -> None:
        """Change one of the objects."""
        self._number += 1
        graph.patch_object(self._random.choice(self.ids), {"score": self._number % 100 / 100, "seen": self._number})
