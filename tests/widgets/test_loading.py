"""The room of the widgets: what it offers, and that it is light to import."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_room_loads_nothing_before_it_is_used() -> None:
    code = "import sys, contextmesh.widgets; print('ipywidgets' in sys.modules, dir(contextmesh.widgets))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    names = (
        "AskPanel DetailPanel EventTable EvidenceTable Explorer FactTable GraphView HistoryPanel MemoryPanel Pipeline"
    )
    assert done.stdout == f"False {[*names.split(), 'RunPanel', 'State']}\n"
