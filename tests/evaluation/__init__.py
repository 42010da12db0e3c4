"""How well each mode of retrieval finds the evidence, on sets of questions whose evidence is known. Run `make eval`."""
