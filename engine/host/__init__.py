"""Parts that every process needs, whatever its role: the HTTP server, the process, its callers, its stops.

In: accepted sockets, signals, small files of the operator. Out: admitted requests, until an orderly end.
Reading order: `process/`, `server/`, `admission/`, `safety/`.
"""
