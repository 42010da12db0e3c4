"""Benchmarks beside a peer: `make bench` prints them; nothing here is a test, and no test is timed."""
