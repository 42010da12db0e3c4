"""A behaviour that welcomes guests, and one that does nothing."""

from typing import Any

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.runtime import Behavior, Context, behavior


def greeter(name: str = "greeter", *, error: Exception | None = None, **declared: Any) -> Behavior:
    """Return a behaviour that welcomes each guest."""
    fields = {"on": ["object.created"], "where": {"object.type": "Guest"}, **declared}

    @behavior(name=name, **fields)
    def greet(event: Event, graph: Graph, ctx: Context) -> None:
        graph.add_object("Greeting", {"to": event.payload["id"]}, id=f"hello.{event.payload['id']}", **ctx.cause)
        if error:
            raise error

    return greet


def nothing(event: Event, graph: Graph, ctx: Context) -> None:
    return
