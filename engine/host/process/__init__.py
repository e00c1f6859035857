"""Common parts of a process of any role: clock, logs, credentials, signals, child processes.

In: settings and a role's main task. Out: a process that serves until SIGTERM or SIGINT.
Reading order: `running`, `processes`, `clock`, `logs`, `credentials`, `own_modules`, `interrupts`.
"""
