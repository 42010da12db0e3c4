from .asking import AskPanel
from .details import DetailPanel
from .events import EventTable
from .evidence import EvidenceTable
from .explorer import Explorer
from .graphview import GraphView
from .history import HistoryPanel
from .listing import FactTable
from .memory import MemoryPanel
from .pipeline import Pipeline
from .runs import RunPanel
from .state import State

__all__ = [
    "AskPanel",
    "DetailPanel",
    "EventTable",
    "EvidenceTable",
    "Explorer",
    "FactTable",
    "GraphView",
    "HistoryPanel",
    "MemoryPanel",
    "Pipeline",
    "RunPanel",
    "State",
]
