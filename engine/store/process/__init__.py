"""The store process: the one owner of the database, and the engine's way to it.

In: frames with batches and questions. Out: frames with outcomes and rows; a new process after a crash.
Read: `opening`, `place`, `process_link`, `line`, `frames`, `process`, `file_lock`.
"""
