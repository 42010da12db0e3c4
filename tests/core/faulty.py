"""Sinks with faults, each under the control of a test."""

import threading
from collections.abc import Callable

from contextmesh.core.events import Event
from contextmesh.core.sinks import DeliveryContext, RecordingSink

PATIENCE_S = 20.0  # what no test should ever need; a wait that takes longer means that something hangs


class Gated(RecordingSink):
    """Holds the first event in its hands until the gate opens, then takes all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.gate = threading.Event()

    def on_event(self, event: Event, context: DeliveryContext) -> None:
        self.reached.set()
        assert self.gate.wait(PATIENCE_S)
        super().on_event(event, context)


class Raising(RecordingSink):
    """Raises an error in one of its operations, in `on_event` at the event of one position; remembers every call."""

    def __init__(self, operation: str, error: Callable[[], BaseException], at: int = 1) -> None:
        super().__init__()
        self.calls: list[str] = []
        self._operation = operation
        self._error = error
        self._at = at

    def _call(self, operation: str, position: int | None = None) -> None:
        self.calls.append(operation)
        if operation == self._operation and position in (None, self._at):
            raise self._error()

    def open(self) -> None:
        self._call("open")

    def on_event(self, event: Event, context: DeliveryContext) -> None:
        self._call("on_event", context.sequence)
        super().on_event(event, context)

    def flush(self) -> None:
        self._call("flush")

    def close(self) -> None:
        self._call("close")


class Calling(RecordingSink):
    """Calls a function with each event before it keeps it, and remembers what came of it."""

    def __init__(self, function: Callable[[Event], object]) -> None:
        super().__init__()
        self.results: list[object] = []
        self._function = function

    def on_event(self, event: Event, context: DeliveryContext) -> None:
        self.results.append(self._function(event))
        super().on_event(event, context)
