"""The evaluation's tests open workspaces as the investigation's tests do."""

from tests.investigation.conftest import folder, opened, ws

__all__ = ["folder", "opened", "ws"]
