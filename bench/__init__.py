"""Benchmarks of cambist: operations beside baselines and other libraries, judged by ratios of time."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # `support`, which starts engines and databases
