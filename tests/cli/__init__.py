"""A package, because `conftest` of a folder that sorts before ``conftest.py`` clashes with it under ``--doctest-modules``."""
