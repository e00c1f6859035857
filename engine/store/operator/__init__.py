"""The operator's side of the store, `cambist db`: status, migration, export, backup, compaction.

In: the place of a database. Out: reports, files, a migrated schema.
Reading order: `upkeep_port`, `upkeep`, `upkeep_postgres`, `status`, `export`, `backup`, `whole_file`.
"""
