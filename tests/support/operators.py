"""Programs of an operator's machine that tests start: proxies, Prometheus, systemd; as Debian has them.

Tests that need one are skipped on machines without it, unless REQUIRE_OPERATORS=1.
"""

import os
import shutil

import pytest


def operators_program(name: str) -> str:
    """Path of a program; the test is skipped where there is none."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/bin")
    if found is None:
        if os.environ.get("REQUIRE_OPERATORS") == "1":
            pytest.fail(f"{name} is not installed")
        pytest.skip(f"{name} is not installed")
    return found
