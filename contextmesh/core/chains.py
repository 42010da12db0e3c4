"""Chains: `match_chain`, a linear pattern of nodes and relations, checked and walked hop by hop. Pure."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product

from contextmesh.core.model import ChainMatch, Object, Relation
from contextmesh.core.names import check_kind, check_relation_type
from contextmesh.errors import UsageError

MAX_CHAIN_HOPS = 10
MAX_CHAIN_MATCHES = 10_000
DIRECTIONS = ("right", "left")

type NodeTypes = Sequence[str | None]
type Rels = Sequence[tuple[str | None, str]]
type _Hop = dict[str, dict[str, list[Relation]]]  # from a node to each neighbour, by which relations


def check_chain(node_types: Sequence[object], rels: Sequence[object], limit: object) -> None:
    """Refuse a chain that nothing could fit.

    Raises:
        UsageError: not one node type more than relations, over 10 hops, an unknown direction, a limit below 0.
        InvalidNameError: a type that no object or relation can have.
    """
    if isinstance(node_types, str) or isinstance(rels, str) or len(node_types) != len(rels) + 1:
        msg = f"a chain has one node type more than relations; got node types {node_types!r} and relations {rels!r}"
        raise UsageError(msg)
    if len(rels) > MAX_CHAIN_HOPS:
        msg = f"the chain has {len(rels)} hops; at most {MAX_CHAIN_HOPS} are taken, so ask for its parts"
        raise UsageError(msg)
    if type(limit) is not int or limit < 0:
        msg = f"limit is {limit!r}; expected a whole number from 0"
        raise UsageError(msg)
    for kind in node_types:
        _ = kind is None or check_kind(kind)
    for rel in rels:
        _check_rel(rel)


def _check_rel(rel: object) -> None:
    if not isinstance(rel, (tuple, list)) or len(rel) != len(DIRECTIONS) or rel[1] not in DIRECTIONS:
        msg = f"a chain has the relation {rel!r}; expected (type or None, 'right' or 'left')"
        raise UsageError(msg)
    if rel[0] is not None:
        check_relation_type(rel[0])


def walk_chain(
    node_types: NodeTypes,
    rels: Rels,
    limit: int,
    *,
    starts: Iterable[Object],
    get_objects: Callable[[Collection[str]], Mapping[str, Object]],
    relations: Callable[[Collection[str] | None, Collection[str] | None, Collection[str] | None], Iterable[Relation]],
) -> list[ChainMatch]:
    """Walk a chain hop by hop over any graph that can be read.

    Args:
        node_types: the type of each position, None for any.
        rels: (type or None, direction) of each hop.
        limit: at most so many matches, the first in order.
        starts: the objects of the first type.
        get_objects: returns those of the objects that exist.
        relations: returns the relations of some sources, targets and types, ordered by id.

    Returns:
        The matches by the ids of their objects, then by the ids of their relations.
    """
    nodes = {row.id: row for row in starts}
    reached: Collection[str] = sorted(nodes)
    hops: list[_Hop] = []
    for (type_, direction), kind in zip(rels, node_types[1:], strict=True):
        types = None if type_ is None else [type_]
        right = direction == "right"
        rows = list(relations(reached if right else None, None if right else reached, types))
        found = get_objects({row.target if right else row.source for row in rows})
        ends = {key: row for key, row in found.items() if kind in (None, row.type)}
        hops.append(_hop(rows, ends, right=right))
        nodes |= ends
        reached = sorted(ends)
    hops = _pruned(hops)
    found_all = (match for key in (hops[0] if hops else reached) for match in _matches((key,), (), hops))
    return [
        ChainMatch(objects=tuple(nodes[key] for key in path), relations=edges)
        for path, edges in islice(found_all, limit)
    ]


def _hop(rows: Iterable[Relation], ends: Collection[str], *, right: bool) -> _Hop:
    hop: _Hop = defaultdict(lambda: defaultdict(list))
    for row in rows:
        start, end = (row.source, row.target) if right else (row.target, row.source)
        if end in ends:
            hop[start][end].append(row)
    return hop


def _pruned(hops: Sequence[_Hop]) -> list[_Hop]:
    """Return the hops without steps that lead to no match, so that the walk takes no time over them."""
    kept: list[_Hop] = []
    for hop in reversed(hops):
        onward = kept[0] if kept else None
        steps = {
            start: {end: rows for end, rows in sorted(ends.items()) if onward is None or end in onward}
            for start, ends in sorted(hop.items())
        }
        kept.insert(0, {start: ends for start, ends in steps.items() if ends})
    return kept


def _matches(
    path: tuple[str, ...], edges: tuple[list[Relation], ...], hops: Sequence[_Hop]
) -> Iterator[tuple[tuple[str, ...], tuple[Relation, ...]]]:
    if len(edges) == len(hops):
        for chosen in product(*edges):
            yield path, chosen
        return
    for end, rows in hops[len(edges)].get(path[-1], {}).items():
        yield from _matches((*path, end), (*edges, rows), hops)
