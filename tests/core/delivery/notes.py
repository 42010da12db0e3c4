"""Notes to deliver, and what came of them."""

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.sinks import RecordingSink


def note(text: str) -> Event:
    return Event(type="note.taken", payload={"text": text})


def texts(sink: RecordingSink) -> list[str]:
    return [event.payload["text"] for event in sink.events]


def positions(sink: RecordingSink) -> list[int]:
    return [context.sequence for _, context in sink.deliveries]


def names(graph: Graph) -> list[tuple[str, str]]:
    return [(status.name, status.state) for status in graph.sink_statuses()]


def works(graph: Graph) -> bool:
    """Whether the graph still commits and reads."""
    row = graph.add_object("Entity")
    return graph.get_object(row.id) == row
