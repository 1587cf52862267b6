"""Figures and methods of the sources that the live crawl does not need, by name of paper.

`azar`, `crawlfrontier`, `upadhyay` and `wolf` hold them. Methods are imported from `optimization`, `estimation` and `scheduling`, which
re-export them. ``*_commands.py`` of a paper are its experiments of ``optimal-frontier simulate``, ``*_drawing.py`` their pictures.
Nothing that crawls imports this package.
"""
