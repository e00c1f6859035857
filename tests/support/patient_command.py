"""The `cambist` command with the stretched bounds, for stories that are not about the command itself.

python -m support.patient_command serve --config venue.toml
"""

import support.stretched_bounds  # noqa: F401  before the modules that copy the bounds

# isort: split

from cambist.engine.cli import main

if __name__ == "__main__":
    main()
