-- How far each webhook was told of orders, and what it has not taken yet.

CREATE TABLE webhook (
    name       text COLLATE "C" NOT NULL PRIMARY KEY,
    created_ms bigint NOT NULL,
    version    bigint NOT NULL,
    token      text COLLATE "C" NOT NULL,
    updated_ms bigint NOT NULL
);

CREATE TABLE delivery (
    webhook    text COLLATE "C" NOT NULL,
    token      text COLLATE "C" NOT NULL,
    order_hash bytea NOT NULL,
    body       bytea NOT NULL,
    created_ms bigint NOT NULL,
    version    bigint NOT NULL,
    state      text COLLATE "C" NOT NULL,
    tries      bigint NOT NULL,
    due_ms     bigint NOT NULL,
    reason     text COLLATE "C" NOT NULL,
    updated_ms bigint NOT NULL,
    PRIMARY KEY (webhook, token)
);
CREATE INDEX delivery_due ON delivery (webhook, state, due_ms);
CREATE INDEX delivery_order ON delivery (webhook, order_hash, token);
CREATE INDEX delivery_age ON delivery (created_ms);
