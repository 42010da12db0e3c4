"""State: what the views of one Explorer show together, and nothing else."""

from typing import Any

import traitlets

MAIN = "main"


class State(traitlets.HasTraits):
    """What is selected, when, on which branch and in which investigation; observe it, or assign to it.

    Views that share one State follow each other, and two States know nothing of each other.

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

    @traitlets.validate("position")
    def _checked(self, proposal: Any) -> int | None:
        if isinstance(proposal.value, bool):
            msg = f"position is {proposal.value!r}; expected a whole number from 0, or None for the newest"
            raise traitlets.TraitError(msg)
        return proposal.value

    def __repr__(self) -> str:
        return f"<State: {', '.join(f'{name} {value!r}' for name, value in self.to_dict().items())}>"

    def to_dict(self) -> dict[str, str | int | None]:
        """Return the state as plain data."""
        return {name: getattr(self, name) for name in sorted(self.trait_names())}
