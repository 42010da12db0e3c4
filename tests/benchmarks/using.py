"""What a user waits for: the import, beside that of pandas; and one question, four stages, each saved and read back."""

import json
import subprocess
import sys
from collections.abc import Iterator

import contextmesh as cm
from tests.benchmarks.measuring import Row, Setting, best, milliseconds

ROUNDS = 7


def rows(setting: Setting, _peer: object) -> Iterator[Row]:
    """Return the rows of this theme, as they are measured."""
    bare, ours, pandas = (starting(code) for code in ("pass", "import contextmesh", "import pandas"))
    beside = f"import pandas: {milliseconds(pandas - bare)}"
    yield Row(work="import contextmesh", ours=milliseconds(ours - bare), wanted="at most 150 ms", note=beside)
    with cm.open("bench-ask", data_dir=setting.folder / "asking") as ws:
        cm.demo.acmeshop(ws)
        question = cm.demo.tuesday()[1]
        took = best(lambda: ws.session("bench").investigate(question), ROUNDS)
        size = len(json.dumps(ws.session("bench").investigate(question).to_dict()))
    note = f"four stages, each saved and read back; {size:,} characters of result"
    yield Row(work="one question on AcmeShop", ours=milliseconds(took), note=note)


def starting(code: str) -> float:
    """Return how long a fresh Python takes for some code, in seconds."""
    return best(lambda: subprocess.run([sys.executable, "-c", code], check=True), ROUNDS)
