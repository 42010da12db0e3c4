"""State: what the views of one Explorer show together, and nothing else."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import traitlets

from contextmesh.errors import ContextMeshError

MAIN = "main"


class State(traitlets.HasTraits):
    """What is selected, when, on which branch and in which investigation; observe it, or assign to it.

    Views that share one State follow each other, and two States know nothing of each other. A position beyond the log
    is not taken over: the state keeps the one before, and the view says why.

    Attributes:
        selection: id of the selected object, or None.
        position: position in the log that is shown, or None for the newest.
        branch: the branch's name; "main" for the workspace itself.
        investigation: id of the Run whose evidence and paths are lit up, or None.

    Example:
        >>> state = State()
        >>> state.observe(lambda change: print(change.old, "->", change.new), "selection")
        >>> state.selection = "checkout-api"
        None -> checkout-api
        >>> state.to_dict()
        {'branch': 'main', 'investigation': None, 'position': None, 'selection': 'checkout-api'}
    """

    selection = traitlets.Unicode(default_value=None, allow_none=True)
    position = traitlets.Int(default_value=None, allow_none=True, min=0)
    branch = traitlets.Unicode(MAIN)
    investigation = traitlets.Unicode(default_value=None, allow_none=True)

    def __init__(self, **values: Any) -> None:
        self._tips: list[Callable[[], int]] = []
        self._sayers: list[Callable[[str], None]] = []
        super().__init__(**values)

    @traitlets.validate("position")
    def _checked(self, proposal: Any) -> int | None:
        position: int | None = proposal.value
        if isinstance(position, bool):
            msg = f"position is {position!r}; expected a whole number from 0, or None for the newest"
            raise traitlets.TraitError(msg)
        tip = None if position is None else self._tip()
        if position is None or tip is None or position <= tip:
            return position
        self._say(f"position is {position!r}; expected a whole number from 0 to {tip:,}, where the log ends")
        return self.position

    def _tip(self) -> int | None:
        """Return where the log of the views ends; None where no view reads one, or none can be read."""
        with suppress(ContextMeshError):  # the view that is to follow meets the same, and says so
            return min((tip() for tip in self._tips), default=None)
        return None

    def _say(self, why: str) -> None:
        for say in self._sayers[:1]:  # the outermost view; each of those inside it would only say it again
            say(why)

    # what the views tell it

    def join(self, say: Callable[[str], None]) -> None:
        """Say through this function why a value was not taken over; the view that joined first does."""
        self._sayers.append(say)

    def leave(self, say: Callable[[str], None]) -> None:
        """Say nothing through this function any more; one that has not joined is fine."""
        if say in self._sayers:
            self._sayers.remove(say)

    def bound(self, tip: Callable[[], int]) -> None:
        """Take over no position beyond what this function returns, the length of a log."""
        self._tips.append(tip)

    def unbound(self, tip: Callable[[], int]) -> None:
        """Ask this function no more; one that does not bound the state is fine."""
        if tip in self._tips:
            self._tips.remove(tip)

    def __repr__(self) -> str:
        return f"<State: {', '.join(f'{name} {value!r}' for name, value in self.to_dict().items())}>"

    def to_dict(self) -> dict[str, str | int | None]:
        """Return the state as plain data."""
        return {name: getattr(self, name) for name in sorted(self.trait_names())}
