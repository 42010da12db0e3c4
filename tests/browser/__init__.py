"""Tests in a real browser; a package, so that what they share can be stopped after the last of them."""
