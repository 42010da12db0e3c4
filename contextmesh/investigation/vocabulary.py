"""Kinds, relation types, single-valued attributes, stop words and bounds: the one table that all else reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from contextmesh.errors import InvalidNameError

KINDS = (
    "Agent",
    "AgentRun",
    "Decision",
    "Entity",
    "Evidence",
    "Hypothesis",
    "Memory",
    "Run",
    "Session",
    "Task",
    "Workspace",
)
EVIDENCE_KINDS = ("Entity", "Evidence", "Memory")
HYPOTHESIS = "Hypothesis"  # what a model says: never evidence, nor a side of a contradiction

RELATIONS = MappingProxyType(
    {
        "AFFECTS": "change or incident -> system",
        "DEPENDS_ON": "system -> system; task -> earlier task",
        "GENERATED": "run or agent -> output",
        "HANDOFF_TO": "agent run -> next agent run",
        "HAS_MEMORY": "session -> memory",
        "MENTIONS": "memory -> entity",
        "OWNED_BY": "system -> owner",
        "RELATES_TO": "either way, undirected in meaning",
        "RESOLVED_BY": "incident -> lesson",
        "SUPPORTS": "evidence -> decision",
    },
)
# In the order in which an investigation prefers them: what answers its three questions first.
SEMANTIC_RELATIONS = (
    "AFFECTS",
    "OWNED_BY",
    "RESOLVED_BY",
    "DEPENDS_ON",
    "RELATES_TO",
    "MENTIONS",
    "SUPPORTS",
)
STAGES = ("researcher", "planner", "executor", "verifier")

# Text that was revised, and what vanished from its source, is history: it stays in the graph, never in evidence.
HISTORY = ("superseded", "withdrawn")

STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be been before being below between both but by
    can could did do does doing done down during each either else ever explain few for from further get had
    happen happened happens has have having he her here hers him his how however i if in into involve involved
    is it its itself just let like made make many may me might more most much must my neither no nor not now of
    off on once one only or other our out over own please same shall she should show since so some such tell
    than that the their them then there these they this those through to too under until up upon us use very was
    we were what when where whether which while who whom whose why will with within without would yes yet you
    your
    """.split(),  # noqa: SIM905 - a list would take a line a word
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What keeps a retrieval small enough to read.

    Args:
        terms: search terms of a question.
        seeds: facts that match them.
        hops: relations to walk from a seed.
        context: facts in all, seeds included.
        paths: paths inside the context.
        neighbours: relations to look at from one fact in one hop.
        candidates: facts that share terms with a question, to be scored.
        question: characters of a question.
        common: share of all facts beyond which a term selects nothing.
        common_from: facts a workspace must hold before that share counts.
    """

    terms: int = 12
    seeds: int = 12
    hops: int = 3
    context: int = 20
    paths: int = 80
    neighbours: int = 40
    candidates: int = 200
    question: int = 2000
    common: float = 0.8
    common_from: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What a workspace may hold and how an investigation reads it. Pass another one to `open` to extend it.

    Args:
        kinds: object types.
        relations: relation type -> what it leads from and to.
        semantic: the relation types that retrieval walks, preferred ones first.
        single_valued_relations: relation type -> the attribute it states; two targets for one source compete.
        single_valued_attributes: attributes of `data.asserts` of which a subject has one at a time.
        bounds: limits of a retrieval.
    """

    kinds: tuple[str, ...] = KINDS
    relations: Mapping[str, str] = RELATIONS
    semantic: tuple[str, ...] = SEMANTIC_RELATIONS
    single_valued_relations: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({"OWNED_BY": "owner"}))
    single_valued_attributes: frozenset[str] = frozenset({"owner", "current_value"})
    bounds: Bounds = field(default_factory=Bounds)

    def check_kind(self, kind: str) -> str:
        """Return a kind, or refuse it."""
        if kind not in self.kinds:
            msg = f"{kind!r} is no kind of this vocabulary; expected one of {', '.join(self.kinds)}"
            raise InvalidNameError(msg)
        return kind

    def check_relation(self, relation: str) -> str:
        """Return a relation type, or refuse it."""
        if relation not in self.relations:
            msg = f"{relation!r} is no relation of this vocabulary; expected one of {', '.join(sorted(self.relations))}"
            raise InvalidNameError(msg)
        return relation


DEFAULT = Vocabulary()
