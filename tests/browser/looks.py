"""What is wrong with how a page looks: texts on top of each other, cut off, or hard to tell from what is behind them.

Each check returns one line of text for each thing found, so that a test says `== []` and a failure says where to look.
"""

from pathlib import Path

from playwright.sync_api import Page

LEAST_CONTRAST = 4.5  # WCAG 2.2, 1.4.3: the least contrast of text
SCRIPT = Path(__file__).with_suffix(".js").read_text("utf-8")


def overlapping_texts(page: Page, selector: str) -> list[str]:
    """Return a line for each text that overlaps another, or that is cut off by a box that cannot be scrolled.

    Hidden texts do not count, nor do those that an ellipsis shortens where a title gives them in full; a button's text
    always has to fit. The selector must match something.
    """
    return page.evaluate(f"selector => {{ {SCRIPT}; return troubles(parts(selector)); }}", selector)


def faint_texts(page: Page, selector: str, *, least: float = LEAST_CONTRAST) -> list[str]:
    """Return a line for each text whose colour is too close to the background's; disabled controls do not count."""
    return page.evaluate(
        f"([selector, least]) => {{ {SCRIPT}; return faint(parts(selector), least); }}", [selector, least]
    )
