"""The store process, which alone owns the database, and the engine's link to it.

In: frames with batches and queries. Out: frames with outcomes and rows; a new process after a crash.
Reading order: `open_store`, `place`, `process_link`, `line`, `frames`, `process`, `file_lock`.
"""
