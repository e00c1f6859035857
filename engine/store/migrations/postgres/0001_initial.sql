-- Amounts are 32 bytes big-endian, hashes 32, addresses 20. Signed documents stand apart from what
-- changes, so that a change rewrites a short row. `seq` is the order of arrival: an index on an account ends
-- in it, so that a listing needs no sort. `tx` is the transaction that wrote a row: numbers are given out
-- before they are committed, so that only `tx` tells what a reader has seen. Keys of text sort by bytes.

CREATE TABLE delta_order (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tx         xid8 NOT NULL DEFAULT pg_current_xact_id(),
    order_hash bytea NOT NULL CHECK (length(order_hash) = 32),
    shard      bigint NOT NULL,
    chain_id   bigint NOT NULL,
    owner      bytea NOT NULL CHECK (length(owner) = 20),
    nonce      bytea NOT NULL CHECK (length(nonce) = 32),
    kind       text NOT NULL,
    type       text NOT NULL,
    side       text NOT NULL,
    partner    text NOT NULL,
    created_ms bigint NOT NULL,
    expires_s  bigint NOT NULL,
    version    bigint NOT NULL,
    status     text NOT NULL,
    updated_ms bigint NOT NULL,
    spent      bytea NOT NULL CHECK (length(spent) = 32),
    received   bytea NOT NULL CHECK (length(received) = 32),
    is_final   boolean NOT NULL
);
CREATE UNIQUE INDEX delta_order_hash ON delta_order (order_hash);
CREATE UNIQUE INDEX delta_order_nonce ON delta_order (chain_id, owner, nonce)
    WHERE status NOT IN ('CANCELLED', 'EXPIRED', 'FAILED');
CREATE INDEX delta_order_owner ON delta_order (owner, seq);
CREATE INDEX delta_order_open ON delta_order (order_hash) WHERE is_final = FALSE;
CREATE INDEX delta_order_ended ON delta_order (updated_ms) WHERE is_final = TRUE;

CREATE TABLE delta_document (
    order_hash bytea NOT NULL PRIMARY KEY,
    body       bytea NOT NULL
);

CREATE TABLE delta_fill (
    chain_id       bigint NOT NULL,
    block_hash     bytea NOT NULL,
    tx_hash        bytea NOT NULL,
    log_index      bigint NOT NULL,
    block_number   bigint NOT NULL,
    order_hash     bytea NOT NULL,
    destination_tx bytea,
    spent          bytea NOT NULL,
    received       bytea NOT NULL,
    at_ms          bigint NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
);
CREATE INDEX delta_fill_order ON delta_fill (order_hash);

CREATE TABLE delta_refund (
    chain_id   bigint NOT NULL,
    tx_hash    bytea NOT NULL,
    order_hash bytea NOT NULL,
    token      bytea NOT NULL,
    amount     bytea NOT NULL,
    at_ms      bigint NOT NULL,
    PRIMARY KEY (chain_id, tx_hash, order_hash)
);
CREATE INDEX delta_refund_order ON delta_refund (order_hash);

CREATE TABLE auction_round (
    auction_id bigint NOT NULL PRIMARY KEY,
    order_hash bytea NOT NULL,
    chain_id   bigint NOT NULL,
    opened_ms  bigint NOT NULL,
    closed_ms  bigint NOT NULL,
    winner     text,
    record     bytea NOT NULL
);
CREATE INDEX auction_round_order ON auction_round (order_hash);

CREATE TABLE solver_bid (
    auction_id bigint NOT NULL,
    agent      text COLLATE "C" NOT NULL,
    promised   bytea NOT NULL,
    simulated  bytea,
    outcome    text NOT NULL,
    at_ms      bigint NOT NULL,
    PRIMARY KEY (auction_id, agent)
);

CREATE TABLE otc_order (
    seq              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tx               xid8 NOT NULL DEFAULT pg_current_xact_id(),
    order_hash       bytea NOT NULL CHECK (length(order_hash) = 32),
    shard            bigint NOT NULL,
    chain_id         bigint NOT NULL,
    maker            bytea NOT NULL CHECK (length(maker) = 20),
    taker            bytea NOT NULL CHECK (length(taker) = 20),
    taker_from_meta  bytea NOT NULL CHECK (length(taker_from_meta) = 20),
    maker_asset      bytea NOT NULL CHECK (length(maker_asset) = 20),
    taker_asset      bytea NOT NULL CHECK (length(taker_asset) = 20),
    maker_amount     bytea NOT NULL CHECK (length(maker_amount) = 32),
    taker_amount     bytea NOT NULL CHECK (length(taker_amount) = 32),
    type             text NOT NULL,
    created_ms       bigint NOT NULL,
    expires_s        bigint NOT NULL,
    version          bigint NOT NULL,
    status           text NOT NULL,
    updated_ms       bigint NOT NULL,
    remaining        bytea NOT NULL CHECK (length(remaining) = 32),
    maker_balance    bytea NOT NULL CHECK (length(maker_balance) = 32),
    reserved         bytea NOT NULL CHECK (length(reserved) = 32),
    swappable        bytea NOT NULL CHECK (length(swappable) = 32),
    transaction_hash bytea,
    is_final         boolean NOT NULL
);
CREATE UNIQUE INDEX otc_order_hash ON otc_order (order_hash);
CREATE INDEX otc_order_maker ON otc_order (maker, seq);
CREATE INDEX otc_order_taker ON otc_order (taker, seq);
CREATE INDEX otc_order_meta ON otc_order (taker_from_meta, seq);
CREATE INDEX otc_order_open ON otc_order (order_hash) WHERE is_final = FALSE;
CREATE INDEX otc_order_ended ON otc_order (updated_ms) WHERE is_final = TRUE;

CREATE TABLE otc_document (
    order_hash bytea NOT NULL PRIMARY KEY,
    body       bytea NOT NULL
);

CREATE TABLE order_event (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tx         xid8 NOT NULL DEFAULT pg_current_xact_id(),
    surface    text NOT NULL,
    order_hash bytea NOT NULL,
    shard      bigint NOT NULL,
    chain_id   bigint NOT NULL,
    owner      bytea NOT NULL,
    version    bigint NOT NULL,
    status     text NOT NULL,
    at_ms      bigint NOT NULL,
    body       bytea NOT NULL
);
CREATE UNIQUE INDEX order_event_place ON order_event (tx, n);
CREATE INDEX order_event_owner ON order_event (owner, tx, n);

CREATE TABLE effect (
    key        text COLLATE "C" NOT NULL PRIMARY KEY,
    order_hash bytea NOT NULL,
    shard      bigint NOT NULL,
    kind       text NOT NULL,
    payload    bytea NOT NULL,
    created_ms bigint NOT NULL,
    version    bigint NOT NULL,
    state      text NOT NULL,
    attempts   bigint NOT NULL,
    due_ms     bigint NOT NULL,
    updated_ms bigint NOT NULL
);
CREATE INDEX effect_intended ON effect (key) WHERE state = 'INTENDED';
CREATE INDEX effect_order ON effect (order_hash);

CREATE TABLE chain_tx (
    tx_hash      bytea NOT NULL PRIMARY KEY,
    chain_id     bigint NOT NULL,
    sender       bytea NOT NULL,
    nonce        bigint NOT NULL,
    raw          bytea NOT NULL,
    fee_max_wei  bytea NOT NULL,
    effect_key   text NOT NULL,
    replaces     bytea,
    created_ms   bigint NOT NULL,
    version      bigint NOT NULL,
    status       text NOT NULL,
    updated_ms   bigint NOT NULL,
    block_number bigint,
    block_hash   bytea
);
CREATE INDEX chain_tx_sender ON chain_tx (chain_id, sender, nonce);
CREATE INDEX chain_tx_effect ON chain_tx (effect_key);

CREATE TABLE chain_cursor (
    chain_id     bigint NOT NULL PRIMARY KEY,
    version      bigint NOT NULL,
    block_number bigint NOT NULL,
    block_hash   bytea NOT NULL,
    ring         bytea NOT NULL,
    updated_ms   bigint NOT NULL
);

CREATE TABLE nonce_used (
    chain_id     bigint NOT NULL,
    owner        bytea NOT NULL,
    nonce        bytea NOT NULL,
    tx_hash      bytea NOT NULL,
    block_number bigint NOT NULL,
    PRIMARY KEY (chain_id, owner, nonce)
);

CREATE TABLE deposit (
    chain_id     bigint NOT NULL,
    block_hash   bytea NOT NULL,
    tx_hash      bytea NOT NULL,
    log_index    bigint NOT NULL,
    order_hash   bytea NOT NULL,
    amount       bytea NOT NULL,
    block_number bigint NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
);
CREATE INDEX deposit_order ON deposit (order_hash);

CREATE TABLE issued_route (
    digest     bytea NOT NULL PRIMARY KEY,
    chain_id   bigint NOT NULL,
    expires_ms bigint NOT NULL
);
CREATE INDEX issued_route_expiry ON issued_route (expires_ms);

CREATE TABLE partner (
    name       text COLLATE "C" NOT NULL PRIMARY KEY,
    created_ms bigint NOT NULL,
    version    bigint NOT NULL,
    address    bytea NOT NULL,
    fee_bps    bigint NOT NULL,
    tier       text NOT NULL,
    updated_ms bigint NOT NULL
);

-- Who runs the orders whose hash begins with `number`; a higher epoch shuts the holder before out.
CREATE TABLE shard (
    number   bigint NOT NULL PRIMARY KEY,
    holder   text NOT NULL,
    epoch    bigint NOT NULL,
    until_ms bigint NOT NULL
);
WITH RECURSIVE numbers (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number < 255)
INSERT INTO shard (number, holder, epoch, until_ms) SELECT number, '', 0, 0 FROM numbers;

-- The last batch of each writer and what came of it: a batch that is sent again is not applied again.
CREATE TABLE writer (
    id       bytea NOT NULL PRIMARY KEY,
    batch    bigint NOT NULL,
    outcomes bytea NOT NULL,
    at_ms    bigint NOT NULL
);
