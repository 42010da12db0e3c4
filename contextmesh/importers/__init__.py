"""Read real files into facts, one module a format; none of them touches a database."""
