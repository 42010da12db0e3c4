"""The four stages, one module each. They share nothing but the records that they leave in the graph."""
