"""Scenes to be shown: a small one whose places are known, and one of any size."""

import numpy as np

from contextmesh.investigation.scene import Scene

# Seven objects in a cross: the first in the middle, and one right behind it.
PLACES = [[0, 0, 0], [4, 0, 0], [-4, 0, 0], [0, 3, 0], [0, -3, 0], [0, 0, -4], [6, 3, 0]]
KINDS = ("Entity", "Entity", "Evidence", "Memory", "Task", "Entity", "Evidence")


def cross(n: int = 7, shift: float = 0.0) -> Scene:
    return Scene(
        ids=tuple(f"n{at}" for at in range(n)),
        kinds=KINDS[:n],
        labels=tuple(f"Number {at}" for at in range(n)),
        texts=tuple(f"<i>what</i> is known of {at}" for at in range(n)),
        relation_ids=tuple(f"r{at}" for at in range(1, n)),
        relation_types=("AFFECTS",) * (n - 1),
        ends=np.array([(0, at) for at in range(1, n)], np.int32).reshape(-1, 2),
        positions=np.array(PLACES[:n], np.float32) + np.float32(shift),
        sizes=np.full(n, 0.8, np.float32),
    )


def cloud(n: int, m: int) -> Scene:
    """As many objects and relations as one likes, anywhere."""
    chance = np.random.default_rng(5)
    return Scene(
        ids=tuple(f"n{at:05}" for at in range(n)),
        kinds=tuple(KINDS[at % 7] for at in range(n)),
        labels=tuple(f"Number {at}" for at in range(n)),
        texts=("",) * n,
        relation_ids=tuple(f"r{at:05}" for at in range(m)),
        relation_types=("AFFECTS",) * m,
        ends=chance.integers(0, n, (m, 2), np.int32),
        positions=chance.normal(0, 4, (n, 3)).astype(np.float32),
        sizes=np.full(n, 0.3, np.float32),
    )
