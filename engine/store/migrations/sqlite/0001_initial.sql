-- Amounts are 32 bytes big-endian, hashes 32, addresses 20. Signed documents stand apart from what
-- changes, so that a change rewrites a short row. `seq` is the order of arrival: an index on an account ends
-- in it, so that a listing needs no sort. Documents lie in that order too: a key as random as a hash dirties
-- a page for each of them.

CREATE TABLE delta_order (
    seq        INTEGER PRIMARY KEY,
    order_hash BLOB NOT NULL CHECK (length(order_hash) = 32),
    shard      INTEGER NOT NULL,
    chain_id   INTEGER NOT NULL,
    owner      BLOB NOT NULL CHECK (length(owner) = 20),
    nonce      BLOB NOT NULL CHECK (length(nonce) = 32),
    kind       TEXT NOT NULL,
    type       TEXT NOT NULL,
    side       TEXT NOT NULL,
    partner    TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_s  INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    status     TEXT NOT NULL,
    updated_ms INTEGER NOT NULL,
    spent      BLOB NOT NULL CHECK (length(spent) = 32),
    received   BLOB NOT NULL CHECK (length(received) = 32),
    is_final   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX delta_order_hash ON delta_order (order_hash);
CREATE UNIQUE INDEX delta_order_nonce ON delta_order (chain_id, owner, nonce)
    WHERE status NOT IN ('CANCELLED', 'EXPIRED', 'FAILED');
CREATE INDEX delta_order_owner ON delta_order (owner);
CREATE INDEX delta_order_open ON delta_order (is_final) WHERE is_final = FALSE;
CREATE INDEX delta_order_ended ON delta_order (updated_ms) WHERE is_final = TRUE;

CREATE TABLE delta_body (
    seq  INTEGER PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;
CREATE VIEW delta_document AS SELECT order_hash, body FROM delta_body JOIN delta_order USING (seq);
CREATE TRIGGER delta_document_insert INSTEAD OF INSERT ON delta_document BEGIN
    INSERT INTO delta_body SELECT seq, NEW.body FROM delta_order WHERE order_hash = NEW.order_hash;
END;
CREATE TRIGGER delta_document_delete INSTEAD OF DELETE ON delta_document BEGIN
    DELETE FROM delta_body WHERE seq = (SELECT seq FROM delta_order WHERE order_hash = OLD.order_hash);
END;

CREATE TABLE delta_fill (
    chain_id       INTEGER NOT NULL,
    block_hash     BLOB NOT NULL,
    tx_hash        BLOB NOT NULL,
    log_index      INTEGER NOT NULL,
    block_number   INTEGER NOT NULL,
    order_hash     BLOB NOT NULL,
    destination_tx BLOB,
    spent          BLOB NOT NULL,
    received       BLOB NOT NULL,
    at_ms          INTEGER NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
) STRICT, WITHOUT ROWID;
CREATE INDEX delta_fill_order ON delta_fill (order_hash);

CREATE TABLE delta_refund (
    chain_id   INTEGER NOT NULL,
    tx_hash    BLOB NOT NULL,
    order_hash BLOB NOT NULL,
    token      BLOB NOT NULL,
    amount     BLOB NOT NULL,
    at_ms      INTEGER NOT NULL,
    PRIMARY KEY (chain_id, tx_hash, order_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX delta_refund_order ON delta_refund (order_hash);

CREATE TABLE auction_round (
    auction_id INTEGER PRIMARY KEY,
    order_hash BLOB NOT NULL,
    chain_id   INTEGER NOT NULL,
    opened_ms  INTEGER NOT NULL,
    closed_ms  INTEGER NOT NULL,
    winner     TEXT,
    record     BLOB NOT NULL
) STRICT;
CREATE INDEX auction_round_order ON auction_round (order_hash);

CREATE TABLE solver_bid (
    auction_id INTEGER NOT NULL,
    agent      TEXT NOT NULL,
    promised   BLOB NOT NULL,
    simulated  BLOB,
    outcome    TEXT NOT NULL,
    at_ms      INTEGER NOT NULL,
    PRIMARY KEY (auction_id, agent)
) STRICT, WITHOUT ROWID;

CREATE TABLE otc_order (
    seq              INTEGER PRIMARY KEY,
    order_hash       BLOB NOT NULL CHECK (length(order_hash) = 32),
    shard            INTEGER NOT NULL,
    chain_id         INTEGER NOT NULL,
    maker            BLOB NOT NULL CHECK (length(maker) = 20),
    taker            BLOB NOT NULL CHECK (length(taker) = 20),
    taker_from_meta  BLOB NOT NULL CHECK (length(taker_from_meta) = 20),
    maker_asset      BLOB NOT NULL CHECK (length(maker_asset) = 20),
    taker_asset      BLOB NOT NULL CHECK (length(taker_asset) = 20),
    maker_amount     BLOB NOT NULL CHECK (length(maker_amount) = 32),
    taker_amount     BLOB NOT NULL CHECK (length(taker_amount) = 32),
    type             TEXT NOT NULL,
    created_ms       INTEGER NOT NULL,
    expires_s        INTEGER NOT NULL,
    version          INTEGER NOT NULL,
    status           TEXT NOT NULL,
    updated_ms       INTEGER NOT NULL,
    remaining        BLOB NOT NULL CHECK (length(remaining) = 32),
    maker_balance    BLOB NOT NULL CHECK (length(maker_balance) = 32),
    reserved         BLOB NOT NULL CHECK (length(reserved) = 32),
    swappable        BLOB NOT NULL CHECK (length(swappable) = 32),
    transaction_hash BLOB,
    is_final         INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX otc_order_hash ON otc_order (order_hash);
CREATE INDEX otc_order_maker ON otc_order (maker);
CREATE INDEX otc_order_taker ON otc_order (taker);
CREATE INDEX otc_order_meta ON otc_order (taker_from_meta);
CREATE INDEX otc_order_open ON otc_order (is_final) WHERE is_final = FALSE;
CREATE INDEX otc_order_ended ON otc_order (updated_ms) WHERE is_final = TRUE;

CREATE TABLE otc_body (
    seq  INTEGER PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;
CREATE VIEW otc_document AS SELECT order_hash, body FROM otc_body JOIN otc_order USING (seq);
CREATE TRIGGER otc_document_insert INSTEAD OF INSERT ON otc_document BEGIN
    INSERT INTO otc_body SELECT seq, NEW.body FROM otc_order WHERE order_hash = NEW.order_hash;
END;
CREATE TRIGGER otc_document_delete INSTEAD OF DELETE ON otc_document BEGIN
    DELETE FROM otc_body WHERE seq = (SELECT seq FROM otc_order WHERE order_hash = OLD.order_hash);
END;

CREATE TABLE order_event (
    n          INTEGER PRIMARY KEY AUTOINCREMENT,
    surface    TEXT NOT NULL,
    order_hash BLOB NOT NULL,
    shard      INTEGER NOT NULL,
    chain_id   INTEGER NOT NULL,
    owner      BLOB NOT NULL,
    version    INTEGER NOT NULL,
    status     TEXT NOT NULL,
    at_ms      INTEGER NOT NULL,
    body       BLOB NOT NULL
) STRICT;
CREATE INDEX order_event_owner ON order_event (owner);

CREATE TABLE effect (
    key        TEXT NOT NULL PRIMARY KEY,
    order_hash BLOB NOT NULL,
    shard      INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    payload    BLOB NOT NULL,
    created_ms INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    state      TEXT NOT NULL,
    attempts   INTEGER NOT NULL,
    due_ms     INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX effect_intended ON effect (shard) WHERE state = 'INTENDED';
CREATE INDEX effect_order ON effect (order_hash);

CREATE TABLE chain_tx (
    tx_hash      BLOB NOT NULL PRIMARY KEY,
    chain_id     INTEGER NOT NULL,
    sender       BLOB NOT NULL,
    nonce        INTEGER NOT NULL,
    raw          BLOB NOT NULL,
    fee_max_wei  BLOB NOT NULL,
    effect_key   TEXT NOT NULL,
    replaces     BLOB,
    created_ms   INTEGER NOT NULL,
    version      INTEGER NOT NULL,
    status       TEXT NOT NULL,
    updated_ms   INTEGER NOT NULL,
    block_number INTEGER,
    block_hash   BLOB
) STRICT;
CREATE INDEX chain_tx_sender ON chain_tx (chain_id, sender, nonce);
CREATE INDEX chain_tx_effect ON chain_tx (effect_key);

CREATE TABLE chain_cursor (
    chain_id     INTEGER PRIMARY KEY,
    version      INTEGER NOT NULL,
    block_number INTEGER NOT NULL,
    block_hash   BLOB NOT NULL,
    ring         BLOB NOT NULL,
    updated_ms   INTEGER NOT NULL
) STRICT;

CREATE TABLE nonce_used (
    chain_id     INTEGER NOT NULL,
    owner        BLOB NOT NULL,
    nonce        BLOB NOT NULL,
    tx_hash      BLOB NOT NULL,
    block_number INTEGER NOT NULL,
    PRIMARY KEY (chain_id, owner, nonce)
) STRICT, WITHOUT ROWID;

CREATE TABLE deposit (
    chain_id     INTEGER NOT NULL,
    block_hash   BLOB NOT NULL,
    tx_hash      BLOB NOT NULL,
    log_index    INTEGER NOT NULL,
    order_hash   BLOB NOT NULL,
    amount       BLOB NOT NULL,
    block_number INTEGER NOT NULL,
    PRIMARY KEY (chain_id, block_hash, tx_hash, log_index)
) STRICT, WITHOUT ROWID;
CREATE INDEX deposit_order ON deposit (order_hash);

CREATE TABLE issued_route (
    digest     BLOB NOT NULL PRIMARY KEY,
    chain_id   INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX issued_route_expiry ON issued_route (expires_ms);

CREATE TABLE partner (
    name       TEXT NOT NULL PRIMARY KEY,
    created_ms INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    address    BLOB NOT NULL,
    fee_bps    INTEGER NOT NULL,
    tier       TEXT NOT NULL,
    updated_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who runs the orders whose hash begins with `number`; a higher epoch shuts the holder before out.
CREATE TABLE shard (
    number   INTEGER PRIMARY KEY,
    holder   TEXT NOT NULL,
    epoch    INTEGER NOT NULL,
    until_ms INTEGER NOT NULL
) STRICT;
WITH RECURSIVE numbers (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number < 255)
INSERT INTO shard (number, holder, epoch, until_ms) SELECT number, '', 0, 0 FROM numbers;

-- The last batch of each writer and what came of it: a batch that is sent again is not applied again.
CREATE TABLE writer (
    id       BLOB NOT NULL PRIMARY KEY,
    batch    INTEGER NOT NULL,
    outcomes BLOB NOT NULL,
    at_ms    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
