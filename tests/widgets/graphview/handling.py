"""What a user does with a view, and what is then to be seen in it."""

from contextmesh.widgets import GraphView


def drawn(view: GraphView) -> set[str]:
    return set(view.scene.ids)


def listed(view: GraphView) -> set[str]:
    return {row["id"] for row in view.table.rows}


def places(view: GraphView) -> dict[str, list[float]]:
    return dict(zip(view.scene.ids, view.scene.positions.tolist(), strict=True))


def click(view: GraphView, object_id: str) -> None:
    """What a click on a node of the picture does."""
    view.canvas.picked(view.scene.ids.index(object_id))


def press(view: GraphView, text: str, *, enter: bool = True) -> None:
    """Type into the search box."""
    view.finder.text.value = text
    if enter:
        view.finder.text._handle_custom_msg({"event": "submit"}, [])
