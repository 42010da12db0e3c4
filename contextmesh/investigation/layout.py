"""Where the objects of a graph are drawn: a force layout that anyone can repeat, and that new facts hardly move."""

import hashlib
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

RADIUS = 10.0  # how far out nearly all objects lie
EXACT = 256  # objects up to which each pushes all others in every round; beyond, a part of them takes turns
AT_A_TIME = 40_000  # pushes that are worked out at a time, so that they fit in a processor's cache
SHAPE = np.array([1.35, 0.9, 0.8])  # of the whole: a picture is wider than high, and depth hides
BOND = 0.3  # how strongly a relation pulls its ends together; hubs' are weaker, for they have many
APART = 2.5  # times the pull on what is not connected with the rest, which would fly off else
PULL, ANCHOR = 0.8, 1.0  # towards where an object began, which keeps two arrangements of nearly the same graph alike
OUTSIDE = 0.3  # how far beyond the radius the farthest object may lie, as a share of it
BESIDE = 0.15  # how far beside its neighbours a new object is put at least, as a share of the radius
STEP = 0.04  # of the force, in one round: small steps lead nearly the same graph to nearly the same place
Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


def layout(ids: Sequence[str], ends: npt.ArrayLike, *, seed: int = 0) -> npt.NDArray[np.float32]:
    """Arrange a graph in space: float32 (n, 3) around the origin, nearly all of it within a radius of 10.

    An object begins where its id says, then objects push each other away and relations pull their ends together. So
    the same graph looks the same in every process, and one more object hardly moves the others. Only additions,
    multiplications, divisions and square roots are used, in a fixed order, which every machine rounds alike.

    Args:
        ids: of the objects, each once.
        ends: (m, 2), where in `ids` each relation begins and ends.
        seed: another one gives another arrangement.

    Example:
        >>> layout(["a", "b", "c"], [(0, 1)]).shape
        (3, 3)
    """
    if not ids:
        return np.zeros((0, 3), np.float32)
    words = _digests(ids, seed)
    pairs = _pairs(ends)
    side = _side(len(ids))
    begin = np.asarray((words[:, :3] / 2.0**31 - 1.0) * side, np.float32)
    positions = _moved(begin, pairs, words[:, 3].astype(np.int64), _rounds(len(ids)))
    return _scaled(positions).astype(np.float32)


def settle(
    ids: Sequence[str], ends: npt.ArrayLike, known: Mapping[str, npt.ArrayLike], *, seed: int = 0
) -> npt.NDArray[np.float32]:
    """Arrange a graph of which a part is arranged already: that stays where it is, the rest goes beside it.

    Args:
        ids: of the objects, each once.
        ends: (m, 2), where in `ids` each relation begins and ends.
        known: id -> where the object is; ids that are not among `ids` are passed over.
        seed: another one puts the rest elsewhere.
    """
    aside = (_digests(ids, seed)[:, :3] / 2.0**31 - 1.0) * SHAPE
    positions = aside * RADIUS
    aside /= np.maximum(np.sqrt((aside * aside).sum(axis=1, keepdims=True)), 1e-9)
    near = _neighbours(ends)
    placed = {at: np.asarray(known[key], float) for at, key in enumerate(ids) if key in known}
    frontier = sorted(placed)
    while frontier:
        beside: dict[int, list[int]] = {}
        for at in frontier:
            for other in near.get(at, ()):
                if other not in placed:
                    beside.setdefault(other, []).append(at)
        room = BESIDE * RADIUS * max(1.0, _side(len(beside)) / 2)
        for other, anchors in beside.items():
            middle = sum(placed[at] for at in anchors) / len(anchors)
            placed[other] = middle + aside[other] * room
        frontier = sorted(beside)
    for at, position in placed.items():
        positions[at] = position
    return np.asarray(positions, np.float32)


def _neighbours(ends: npt.ArrayLike) -> dict[int, list[int]]:
    near: dict[int, list[int]] = {}
    for one, other in _pairs(ends).tolist():
        near.setdefault(one, []).append(other)
        near.setdefault(other, []).append(one)
    return near


def _digests(ids: Sequence[str], seed: int) -> npt.NDArray[np.uint32]:
    """Return four numbers an object that follow from its id and the seed alone, uint32 (n, 4)."""
    digests = (hashlib.blake2b(f"{seed}\n{key}".encode("utf-8", "surrogatepass"), digest_size=16) for key in ids)
    return np.frombuffer(b"".join(row.digest() for row in digests), "<u4").reshape(-1, 4)


def _pairs(ends: npt.ArrayLike) -> Integers:
    """Return which objects are connected, each pair once, int (p, 2)."""
    pairs = np.asarray(ends, np.int64).reshape(-1, 2)
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    keys = np.unique((low << 32 | high)[low != high])
    return np.stack([keys >> 32, keys & 0xFFFFFFFF], axis=1)


def _side(n: int) -> float:
    """Return the side of a cube with room for so many; rounded, since machines differ in how they take a root."""
    return round(math.cbrt(n), 9)


def _rounds(n: int) -> int:
    return int(min(150, max(40, 100_000 / max(n, 1))))


def _moved(positions: Floats, pairs: Integers, turns: Integers, rounds: int) -> Floats:
    n = len(positions)
    parts = 1 << max(0, (n - 1).bit_length() - EXACT.bit_length() + 1)
    degrees = np.maximum(np.bincount(pairs.ravel(), minlength=n), 1)
    weights = (BOND / np.sqrt(np.minimum(degrees[pairs[:, 0]], degrees[pairs[:, 1]]))).astype(np.float32)
    begin, first = positions, 0.06 * _side(n)
    pull = np.asarray(PULL * np.maximum(1.0, APART * _side(n) * (1.0 - _together(n, pairs) / n))[:, None], np.float32)
    for turn in range(rounds):
        pushers = positions if parts == 1 else positions[turns % parts == turn % parts]
        force = _pushed(positions, pushers) * (n / max(1, len(pushers)))
        force += _pulled(positions, pairs, weights)
        force -= pull * (positions - ANCHOR * begin)
        far = np.sqrt((force * force).sum(axis=1, keepdims=True))
        limit = first * (1.0 - turn / rounds)
        positions = positions + force * np.minimum(STEP, limit / np.maximum(far, 1e-12))
    return positions


def _together(n: int, pairs: Integers) -> Floats:
    """Return for each object how many are connected with it, itself included."""
    least = np.arange(n)
    while True:
        before = least.copy()
        np.minimum.at(least, pairs[:, 0], before[pairs[:, 1]])
        np.minimum.at(least, pairs[:, 1], before[pairs[:, 0]])
        least = least[least]
        if np.array_equal(least, before):
            return np.bincount(least, minlength=n)[least].astype(float)


def _pushed(positions: Floats, pushers: Floats) -> Floats:
    """Return how the pushers push everyone away: by 1 / distance each.

    The pushers are the first axis, so that their pushes are added one after the other: in the same order everywhere.
    """
    force = np.empty((3, len(positions)), np.float32)
    own, others = positions.T, pushers.T[:, :, None]
    step = max(1, AT_A_TIME // max(1, len(pushers)))
    for at in range(0, len(positions), step):
        apart = [own[axis, at : at + step] - others[axis] for axis in range(3)]
        share = apart[0] * apart[0]
        for part in apart[1:]:
            share += part * part
        share += np.float32(0.01)
        np.divide(np.float32(1.0), share, out=share)
        for axis in range(3):
            apart[axis] *= share
            apart[axis].sum(axis=0, out=force[axis, at : at + step])
    return force.T


def _pulled(positions: Floats, pairs: Integers, weights: Floats) -> Floats:
    """Return how relations pull their ends together: by the square of the distance."""
    apart = positions[pairs[:, 1]] - positions[pairs[:, 0]]
    apart *= (weights * np.sqrt((apart * apart).sum(axis=1)))[:, None]
    force = np.empty_like(positions)
    for axis in range(3):
        toward = np.bincount(pairs[:, 0], apart[:, axis], len(positions))
        force[:, axis] = toward - np.bincount(pairs[:, 1], apart[:, axis], len(positions))
    return force


def _scaled(positions: Floats) -> Floats:
    """Bring positions to the radius; what lies beyond, such as objects without relations, is drawn near."""
    if len(positions) <= 1:
        return np.zeros_like(positions)
    spread = float(np.sqrt((positions * positions).sum(axis=1).mean()))  # one that lies far out does not count much
    positions = positions * SHAPE * (RADIUS / max(1.5 * spread, 1e-9))
    far = np.sqrt((positions * positions).sum(axis=1, keepdims=True)) / RADIUS
    beyond = np.maximum(far - 1.0, 0.0)
    return positions * np.where(far > 1.0, (1.0 + OUTSIDE * beyond / (1.0 + beyond)) / np.maximum(far, 1.0), 1.0)
