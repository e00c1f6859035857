-- Engines that live: each has a fair share of the shards.
CREATE TABLE shard_holder (
    name     text NOT NULL PRIMARY KEY,
    until_ms bigint NOT NULL
);
