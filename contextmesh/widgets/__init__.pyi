from .events import EventTable

__all__ = [
    "EventTable",
]
