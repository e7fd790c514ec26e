"""``python bench/faults``: the same as ``python bench/faults/run.py``, used by ``make faults``."""

import runpy
from pathlib import Path

if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).with_name("run.py")), run_name="__main__")
