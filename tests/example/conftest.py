"""The example project is no installed package: its directory goes on the path, as it is for ``run.py``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "example_project"))
