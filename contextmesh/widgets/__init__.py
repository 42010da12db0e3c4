"""The views of a notebook, each loaded when it is first used: the only home of ipywidgets and pythreejs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
