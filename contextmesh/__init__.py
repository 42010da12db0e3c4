"""contextmesh: a shared, durable graph memory for incident investigations, on FalkorDB.

Start with `ws = contextmesh.open("acmeshop")`. Importing the package loads no widget, database or model
library; each name of `__init__.pyi` is loaded when it is first used.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
