-- Listings of OTC orders are read along an index, whatever they are sorted by, and only what they show is looked
-- up in the table. An order without expiry sorts last. Only what can be filled now is listed without small
-- balances. Totals are counted along an index too: with the type, and with the transaction that an earlier state
-- is told by.
--
-- A listing of a taker's orders has two parts without an order in common, the second of which is empty for most:
-- orders addressed to the account, and those that it may fill for another.

DROP INDEX otc_order_maker;
DROP INDEX otc_order_taker;
DROP INDEX otc_order_meta;

CREATE INDEX otc_maker_count ON otc_order (maker, chain_id, type, tx);
CREATE INDEX otc_maker_created ON otc_order (maker, chain_id, created_ms, order_hash, type, tx);
CREATE INDEX otc_maker_updated ON otc_order (maker, chain_id, updated_ms, order_hash, type, tx);
CREATE INDEX otc_maker_expiry ON otc_order (maker, chain_id, (expires_s % 9223372036854775807), order_hash, type, expires_s, tx);
CREATE INDEX otc_maker_created_pending ON otc_order (maker, chain_id, created_ms, order_hash)
    WHERE status = 'PENDING';
CREATE INDEX otc_maker_updated_pending ON otc_order (maker, chain_id, updated_ms, order_hash)
    WHERE status = 'PENDING';
CREATE INDEX otc_maker_expiry_pending ON otc_order (maker, chain_id, (expires_s % 9223372036854775807), order_hash)
    WHERE status = 'PENDING';

CREATE INDEX otc_addressee_count ON otc_order (taker_from_meta, chain_id, type, tx);
CREATE INDEX otc_addressee_created ON otc_order (taker_from_meta, chain_id, created_ms, order_hash, type, tx);
CREATE INDEX otc_addressee_updated ON otc_order (taker_from_meta, chain_id, updated_ms, order_hash, type, tx);
CREATE INDEX otc_addressee_expiry ON otc_order (taker_from_meta, chain_id, (expires_s % 9223372036854775807), order_hash, type, expires_s, tx);
CREATE INDEX otc_addressee_created_pending ON otc_order (taker_from_meta, chain_id, created_ms, order_hash)
    WHERE status = 'PENDING';
CREATE INDEX otc_addressee_updated_pending ON otc_order (taker_from_meta, chain_id, updated_ms, order_hash)
    WHERE status = 'PENDING';
CREATE INDEX otc_addressee_expiry_pending ON otc_order (taker_from_meta, chain_id, (expires_s % 9223372036854775807), order_hash)
    WHERE status = 'PENDING';

CREATE INDEX otc_filler_count ON otc_order (taker, chain_id, type, tx)
    WHERE taker <> taker_from_meta;
CREATE INDEX otc_filler_created ON otc_order (taker, chain_id, created_ms, order_hash, type, tx)
    WHERE taker <> taker_from_meta;
CREATE INDEX otc_filler_updated ON otc_order (taker, chain_id, updated_ms, order_hash, type, tx)
    WHERE taker <> taker_from_meta;
CREATE INDEX otc_filler_expiry ON otc_order (taker, chain_id, (expires_s % 9223372036854775807), order_hash, type, expires_s, tx)
    WHERE taker <> taker_from_meta;
CREATE INDEX otc_filler_created_pending ON otc_order (taker, chain_id, created_ms, order_hash)
    WHERE taker <> taker_from_meta AND status = 'PENDING';
CREATE INDEX otc_filler_updated_pending ON otc_order (taker, chain_id, updated_ms, order_hash)
    WHERE taker <> taker_from_meta AND status = 'PENDING';
CREATE INDEX otc_filler_expiry_pending ON otc_order (taker, chain_id, (expires_s % 9223372036854775807), order_hash)
    WHERE taker <> taker_from_meta AND status = 'PENDING';

-- What one account gives of one token with the orders that may still be filled.
CREATE INDEX otc_order_live ON otc_order (chain_id, maker, maker_asset)
    WHERE status IN ('DRAFT', 'PENDING', 'SUSPENDED');

-- Logs of the RFQ contract that no order of ours belongs to go by age.
CREATE INDEX otc_fill_age ON otc_fill (at_ms);
CREATE INDEX otc_cancel_age ON otc_cancel (at_ms);
