"""The demo: the roles and capabilities at work in one process, shown live."""
