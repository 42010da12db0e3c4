"""`python -m contextmesh` is the command `contextmesh`."""

from contextmesh.cli import main

main()
