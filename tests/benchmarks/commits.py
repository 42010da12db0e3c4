"""Durable commits: one by one, beside the peer's; and in batches, beside our own single ones."""

from collections.abc import Iterator

from tests.benchmarks.measuring import Row, Setting, best, compared, duel, held, timed
from tests.benchmarks.peer import Peer, counts
from tests.benchmarks.workload import Workload

ROUNDS = 16  # short ones, so that some are undisturbed
SINGLES = 300
BATCHES, BATCH = 10, 100


def rows(setting: Setting, peer: Peer) -> Iterator[Row]:
    """Return the rows of this theme, as they are measured."""
    single_s, row = singles(setting, peer)
    yield row
    yield batches(setting, single_s)


def singles(setting: Setting, peer: Peer) -> tuple[float, Row]:
    """Measure single commits; return what one of ours takes, and the row."""
    n = setting.size(SINGLES)
    ours, theirs = setting.graph("bench-single"), peer.graph()
    my_work, their_work = Workload(), Workload()
    my_work.write(ours, 100)  # whatever is made at a kind's first use is made
    their_work.write(theirs, 100)
    ours_s, peers_s = duel(
        timed(lambda: my_work.write(ours, n)), timed(lambda: their_work.write(theirs, n)), rounds=ROUNDS
    )
    by_sort = []
    for name in ("add_object", "add_relation", "patch_object"):
        mine, other = getattr(my_work, name), getattr(their_work, name)
        pair = duel(
            timed(lambda do=mine: [do(ours) for _ in range(n // 3)]),
            timed(lambda do=other: [do(theirs) for _ in range(n // 3)]),
            rounds=ROUNDS,
        )
        by_sort.append(f"{name} alone {pair[1] / pair[0]:.1f} x")
    assert held(ours) == my_work.expected() == their_work.expected() == counts(theirs)
    floor = 2 * best(lambda: [setting.server.redis.ping() for _ in range(n)], ROUNDS) / n
    note = f"{', '.join(by_sort)}; two bare round trips: {1 / floor:,.0f}/s"
    return ours_s / n, compared("durable operations, one by one", ours_s, peers_s, wanted=1.2, n=n, note=note)


def batches(setting: Setting, single_s: float) -> Row:
    """Measure commits of 100 operations each."""
    n = setting.size(BATCHES)
    graph, work = setting.graph("bench-batch"), Workload()

    def write() -> None:
        for _ in range(n):
            with graph.batch():
                work.write(graph, BATCH)

    write()
    batch_s = best(write, ROUNDS) / (n * BATCH)
    assert held(graph) == work.expected()
    return Row(
        work=f"durable operations, batches of {BATCH}",
        ours=f"{1 / batch_s:,.0f}/s",
        gain=single_s / batch_s,
        wanted="8 x",
        note="the gain is over our own single ones",
    )
