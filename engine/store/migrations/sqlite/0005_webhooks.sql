-- How far each webhook was told of orders, and what it has not taken yet.

CREATE TABLE webhook (
    name       TEXT NOT NULL PRIMARY KEY,
    created_ms INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    token      TEXT NOT NULL,
    updated_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE delivery (
    webhook    TEXT NOT NULL,
    token      TEXT NOT NULL,
    order_hash BLOB NOT NULL,
    body       BLOB NOT NULL,
    created_ms INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    state      TEXT NOT NULL,
    tries      INTEGER NOT NULL,
    due_ms     INTEGER NOT NULL,
    reason     TEXT NOT NULL,
    updated_ms INTEGER NOT NULL,
    PRIMARY KEY (webhook, token)
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_due ON delivery (webhook, state, due_ms);
CREATE INDEX delivery_order ON delivery (webhook, order_hash, token);
CREATE INDEX delivery_age ON delivery (created_ms);
