"""The maker with planted faults, and runs of the harness against it."""
