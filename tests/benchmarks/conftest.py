"""Keeps pytest out of this folder: the peer is installed for `make bench` alone."""

collect_ignore_glob = ["*.py"]
