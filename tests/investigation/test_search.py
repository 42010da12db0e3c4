"""What retrieval is given."""

import pytest

from contextmesh.core.graph import Graph
from contextmesh.errors import UsageError
from contextmesh.investigation.search import Search
from contextmesh.investigation.vocabulary import DEFAULT


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(UsageError, match="the mode is 'best'; expected one of 'full', 'words', 'terms'"):
        Search("pump", Graph(), DEFAULT, mode="best")  # type: ignore[arg-type]


@pytest.mark.parametrize(("limit", "looked_at"), [(0, 200), (50, 200), (300, 300)])
def test_a_limit_above_the_bound_looks_at_more_facts(limit: int, looked_at: int) -> None:
    assert Search("pump", Graph(), DEFAULT, limit=limit).candidates == looked_at
