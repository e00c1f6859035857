-- Engines that live: each has a fair share of the shards.
CREATE TABLE shard_holder (
    name     TEXT NOT NULL PRIMARY KEY,
    until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
