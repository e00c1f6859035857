"""Constants for the bound of every wait, in seconds unless the name says otherwise.

A bound that an operator may want to change is the default of a setting.
"""

# --- HTTP server -----------------------------------------------------------------------------------
SERVER_HEADER_S = 10.0  # from the first byte of a request to the end of its header section
SERVER_BODY_S = 20.0  # from the end of the header section to the end of the body
SERVER_IDLE_S = 75.0  # between two requests of one connection
SERVER_WRITE_S = 20.0  # for the other side to take the written bytes
SERVER_ROUTE_S = 30.0  # for a coroutine route to answer
SERVER_DRAIN_S = 10.0  # from SIGTERM to the end of the last answer
SERVER_DRAIN_IDLE_S = 0.25  # while draining, for a request that may be on its way
SERVER_ACCEPT_PAUSE_S = 0.1  # before accepting again when the system has no file descriptors left
SERVER_SPREAD_S = 0.005  # for processes with fewer connections to accept first
SERVER_PAUSE_S = 0.25  # until the next request of a client that was over its rate; below any Retry-After
SERVER_LINGER_S = 2.0  # reading on after a refusal, so that its answer is not lost to a reset
TLS_HANDSHAKE_S = 10.0
ACCESS_LOG_END_S = 1.5  # for the last lines to be written when the server ends
PROCESS_KILL_S = 5.0  # after the drain, for a process to end before it is killed
PROCESS_PAUSE_S = 0.1  # before a process that crashed is started anew; doubles with each crash in a row
PROCESS_PAUSE_S_MAX = 5.0
PROCESS_STEADY_S = 60.0  # a process that lived so long ends a row of crashes
LOOP_LAG_EVERY_S = 0.25  # between two measurements of the delay of tasks
SERIES_STEP_S = 10.0  # of the series of an operator's counters
DEPTH_LIFE_S = 5.0  # for which an answer of GET /prices/depth is kept
PRICE_SAMPLE_S = 15.0  # between two samples of all listed tokens' prices
PUBLIC_ROUNDS_S = 1.0  # for which the public list of closed rounds is kept

# --- Readiness -------------------------------------------------------------------------------------
READY_LOOK_S = 0.5  # between two looks at a chain's nodes; between two probes of the store, at least
READY_ANSWER_S = 1.4  # for a node or the store to answer; an order needs three answers within ORDER_CHECK_S
READY_AGAIN_S = 0.25  # between two looks while a node or the store is away
READY_STEADY_S = 1.0  # without a refusal, before a store that refused a write counts as back

# --- WebSocket -------------------------------------------------------------------------------------
WEBSOCKET_OPEN_S = 10.0
WEBSOCKET_PING_EVERY_S = 20.0
WEBSOCKET_PONG_S = 20.0
WEBSOCKET_CLOSE_S = 5.0
WEBSOCKET_STAND_IN_S = 5.0  # without a `receive` of the application until the driver reads in its place

# --- Outgoing HTTP ---------------------------------------------------------------------------------
DIAL_S = 5.0
HTTP_REQUEST_S = 10.0
HTTP_POOL_LOOK_S = 1.0  # between two looks at whether idle connections have ended
HTTP_POOL_IDLE_S = 30.0  # an older idle connection is not reused; most servers keep it longer

# --- Market maker ----------------------------------------------------------------------------------
KILL_SWITCH_LOOK_S = 0.04  # between two looks at the halt file
MAKER_TICK_S = 0.1  # between two looks for stale prices and expired quotes
SOURCE_PAUSE_S = 0.5  # before a price source that failed is started again; doubles
SOURCE_PAUSE_S_MAX = 30.0
CLOCK_LOOK_S = 1.0  # between two looks at the system's clock
CLOCK_STEP_S_MAX = 5.0  # largest difference between the system's clock and the process's own
GC_FREEZE_AFTER_S = 2.0
GC_FREEZE_EVERY_S = 1.0
GC_COUNT_EVERY = 60  # of these, between two counts of all exempt objects

# --- Store -----------------------------------------------------------------------------------------
STORE_LEASE_S = 10.0  # life of a shard's lease without a renewal
STORE_LEASE_EVERY_S = 1.0  # between two renewals, at most
STORE_LEASE_SOON_S = 0.25  # between two renewals of a holder that has less than its share
STORE_DEAD_S = 2.0  # a holder with an ended connection is dead if it renews no lease for so long
STORE_OUTCOME_S = 15.0  # for the outcome of a batch, a restart of the store process included
STORE_LOCK_S = 2.0  # for the previous process to release the database
STORE_OPEN_S = 30.0  # for a store process to open and migrate its database
STORE_READ_S = 10.0
STORE_PAUSE_S = 0.1  # before a store process that died is started again; doubles
STORE_PAUSE_S_MAX = 2.0
STORE_END_S = 10.0  # for a store process to end after its socket was closed
STORE_DIAL_S = 5.0  # for a database server to take a connection
STORE_DIAL_SEVERAL_S = 2.0  # for each of several database servers, dialled at once
STORE_STATEMENT_S = 10.0  # for one statement of a database server, locks included
STORE_SILENCE_S = 15.0  # without data from a database server, which ends any statement sooner
STORE_DOUBT_S = 1.0  # without data, before another server is looked for if there are several
STORE_STUCK_S = 5.0  # for a writer that hangs in a transaction to lose its connection
WEBHOOK_POST_S = 10.0  # for one delivery to be answered
WEBHOOK_AGAIN_S = 5.0  # before a delivery that failed is tried again; doubles with each try
WEBHOOK_AGAIN_S_MAX = 3_600.0
WEBHOOK_GIVE_UP_S = 86_400.0  # after the event, before a delivery is dead
WEBHOOK_LOOK_S = 5.0  # between two looks for deliveries that are due
WEBHOOK_PLACE_S = 5.0  # between two writes of the read position in events that do not concern the webhook
FOLLOW_LOOK_S = 1.0  # between two looks for events that were not announced
EVENT_BEAT_S = 15.0  # between two heartbeats of a stream without events
EVENT_STALL_S = 20.0  # for the other side of a WebSocket to take the events that were written
PRUNE_EVERY_S = 60.0

# --- Chain -----------------------------------------------------------------------------------------
INDEX_LOOK_S = 1.5  # between two looks for blocks when the node announces none
INDEX_PAUSE_S = 0.5  # before a failed step is tried again
INDEX_STEP_S = 60.0  # for one step
TRANSACTION_S = 60.0  # for a transaction to be mined while a caller waits for it
TRANSACTION_FOLLOW_S = 180.0  # for a transaction to be mined
TRANSACTION_LOOK_S = 1.0  # between two looks for a transaction's receipt
TRANSACTION_AGAIN_S = 10.0  # before the same bytes are handed in again
NODE_CALL_S = 10.0  # for a node to answer one request
NODE_POLL_S = 2.0  # between two looks for a new head, with or without a subscription
NODE_LOOK_S = 0.25  # until the first further look for a head that was announced elsewhere; doubles
NODE_REST_S = 0.25  # a node that failed is not asked for so long; doubles with each failure in a row
NODE_REST_S_MAX = 30.0
NODE_PROBE_S = 1.0  # while all nodes rest, each is asked again after this time, however long its rest
NODE_BACK_S = 30.0  # a head far behind is believed once no head has been accepted for so long
NODE_SUBSCRIPTION_S = 60.0  # a subscription without a head for so long is renewed
DEVNET_SYNC_S = 2.0  # for a receipt, of a sent transaction that is waited for (EIP-7966 names 2 s)
ANVIL_START_S = 20.0  # for an anvil to listen
ANVIL_END_S = 5.0  # for an anvil to end after its termination signal
DEV_BRIDGE_AGAIN_S = 1.0  # before a dev relayer or attester tries again what failed
DEV_BRIDGE_LOOK_S = 30.0  # between two looks of a dev relayer or attester with open work, beside new blocks
RELAY_STUCK_S = 30.0  # for the next transaction to be mined before it is replaced
RELAY_HEAD_S = 0.5  # greatest age of the look at which a relayer takes a block as the latest
RELAY_LOOK_S = 1.0  # between two looks at the chain while transactions are open
RELAY_AGAIN_S = 10.0  # before the same bytes are handed in again
RELAY_TAKEN_S = 3.0  # for nodes to show the transaction that used a nonce, before it counts as a foreign one
RELAY_NODE_S = 20.0  # for each part of one look's requests to the chain
RELAY_REASON_S = 5.0  # for a node to say why a transaction was reverted
RELAY_PAUSE_S = 0.5  # before looking again when the chain or the store is away; doubles
RELAY_PAUSE_S_MAX = 1.0  # so that waiting transactions go on soon after the return

# --- Trader ----------------------------------------------------------------------------------------
TRADER_REQUEST_S = 15.0  # for a venue to answer one request, firm quotes of makers included
TRADER_PAUSE_S = 0.5  # before a request that may be repeated is sent again; doubles
TRADER_RETRY_AFTER_S_MAX = 10.0  # a venue that asks to wait longer is not waited for
TRADER_DEADLINE_S = 600  # from the answer's time to the deadline of a swap
TRADER_ORDER_S = 1_200  # from the build of a Delta order to its deadline
TRADER_LIMIT_ORDER_S = 7 * 86_400  # from the build of a limit order to its deadline
TRADER_WATCH_S = 600  # for a Delta order to end
TRADER_ORDER_LOOK_S = 1.0  # between two looks at an order; half as much again with each
TRADER_ORDER_LOOK_S_MAX = 5.0
TRADER_ORDER_LOOK_PUSHED_S = 30.0  # between two looks at an order whose changes the venue pushes
TRADER_TWAP_SLACK_S = 60  # the least from the last slice's time to the deadline, beyond the venue's minimum
TRADER_RECEIPT_S = 60.0  # for our node to show a settlement that the venue reports
TRADER_FOUND_S = 10.0  # for an order to appear after its submission got no answer

# --- Venue -----------------------------------------------------------------------------------------
MAKER_RULES_LOOK_S = 0.25  # between two looks at the file of maker rules
FEED_TOKENS_EVERY_S = 60.0  # between two polls of a maker's /tokens
FEED_PAIRS_EVERY_S = 30.0
FEED_PRICES_EVERY_S = 1.0
FEED_BLACKLIST_EVERY_S = 60.0
FEED_REQUEST_S = 5.0  # for a maker to answer one poll
FEED_PAUSE_S = 0.5  # before a feed's WebSocket, task or fee request is tried again; doubles, with jitter
FEED_PAUSE_S_MAX = 30.0
FEED_REST_AFTER = 5  # failures of a poll in a row, from which on its polls come FEED_REST_S apart
FEED_REST_S = 60.0
SOCKET_GRACE_S = 1.0  # a disconnect longer than this takes the maker's books out
FIRST_MESSAGE_S = 10.0  # for a maker's complete first message
FEED_REFUSALS_EVERY_S = 5.0  # between two lines of the log about a maker's refused pairs
FEED_REMARK_EVERY_S = 1.0  # between two messages of a maker that are logged
BOOK_STALE_S = 10.0  # a book that was not confirmed for so long leaves routing
BOOK_LOOK_S = 0.25  # between two looks at the age of books
BOOK_REST_S = 1.0  # likewise, while no book, rest or bound of a polled maker ends sooner
FIRM_SOFT_S = 0.5  # ARCHITECTURE.md, "Firm quotes": after this time no further maker is asked
FIRM_HARD_S = 0.75  # after this time no answer is waited for
FIRM_BEAT_S = 0.025  # between two looks at the clock during a round; a look later by another beat is a stall
MAKER_NOTIFY_S = 5.0  # for a maker to take a notice of its faults
FIRM_PROBE_LOOK_S = 0.5  # between a desk's looks for resting pairs that are due for a probe
FIRM_CHAIN_S = 2.0  # for a node to answer about makers' funds and contract signatures
GAS_LOOK_S = 3.0  # between two looks at the price of gas and the head
GAS_STALE_S = 60.0  # a price of gas that old does not count
AGENT_SIMULATION_S = 2.0  # for the bids of an agent in one round to be simulated
SIMULATION_S = 5.0  # for a node to simulate a swap, balances included
QUOTE_STREAM_LOOK_S = 0.1  # least time between two changes of a streamed quote
QUOTE_STREAM_BEAT_S = 15.0  # between two sends of a streamed quote that does not change
TAPE_S = 86_400.0  # age of the oldest trade in memory
TAPE_PAUSE_S = 1.0  # before trades are read again when the store is away
TAPE_WORTH_S = 60.0  # from the start, in which trades without a value are valued again as prices come
TAPE_WORTH_LOOK_S = 1.0  # between two looks for such prices
TAPE_STATISTICS_S = 60.0  # for which statistics are served without a new trade
TAPE_BEAT_S = 15.0  # between two comments on a stream of trades without a trade
ISSUED_ROUTES_EVERY_S = 0.05  # between two writes of issued routes
ISSUED_ROUTES_SHOWN_S = 0.5  # for a route that another engine has just issued to appear in the store
ISSUED_ROUTES_PAUSE_S = 1.0  # before issued routes are written again when the store is away
ISSUED_ROUTES_SWEEP_EVERY_S = 60.0  # between two looks for expired routes
ISSUED_ROUTES_END_S = 3.0  # for the last issued routes to be written when the venue ends
RECENT_BLOCK_S = 1.0  # greatest age of the look at which a request's checks take a block as the latest
ORDER_CHECK_S = 5.0  # for a node to answer the checks of a submitted order or cancellation
AUCTION_ROUND_S = 1.0  # ARCHITECTURE.md, "Auction": a round, in which agents may bid
AUCTION_GATHER_S = 0.05  # an order waits for others to share its first round with
AUCTION_AGAIN_S = 1.0  # before an order without a bid is auctioned again; doubles
AUCTION_AGAIN_S_MAX = 30.0
SLICE_LOOK_S = 5.0  # at most between two looks at a chain's clock while a slice of a TWAP waits for it
SLICE_LOOK_S_MIN = 0.25  # at least between two such looks
AUCTION_VOID_S = 1.0  # at most between two rounds that failed because the chain or store was away
AGENT_PROBE_S_FIRST = 0.125  # between two requests to an agent that does not answer; doubles
AGENT_PROBE_S = 1.0
AGENT_SLOW_REST_S = 30.0  # longest rest of an agent that answers late or not at all while others answer
RESTING_LOOK_S = 0.05  # between two looks at limit orders whose prices have changed
RESTING_RETRY_S = 0.25  # before a limit order that was not fillable at its size is looked at again; doubles
RESTING_RETRY_S_MAX = 5.0
RESTING_AWAY_S = 10.0  # time without a fillable rate until a limit order's best rate and pauses are forgotten
RESTING_SWEEP_S = 2.0  # between two looks at all end pairs of limit orders, changed or not
SETTLEMENT_S = 120.0  # for a settlement to be mined, before it is given up
SETTLING_LOOK_S = 0.25  # between two looks whether a mined settlement has been indexed
SETTLING_PAUSE_S = 0.5  # before a settlement continues when the chain or the store is away; doubles
SETTLING_PAUSE_S_MAX = 2.0
SETTLING_STUCK_S = 10.0  # before a settlement that failed by a bug is tried again
AGENT_NOTIFY_S = 5.0  # for an agent to take a notice
FUNDS_RECHECK_S = 60.0  # for the funds of all live orders to be read again, with or without logs of changes
STRATEGY_LOOK_S = 60.0  # between two reads of the share prices of yield strategies
STRATEGY_SAMPLE_S = 3_600  # of a chain's time, between two share prices that are kept
STRATEGY_AGE_S_MIN = 86_400  # of a history of share prices before it shows an APR
VAULT_LOOK_S = 1.0  # between two looks at the vaults from which orders sell, if the chain has a new block
FUNDS_SLICE_S = 1.0  # between two parts of the check of all funds (FUNDS_RECHECK_S)
FUNDS_PAUSE_S = 0.5  # before funds are read again when the chain or the store is away; doubles
FUNDS_STEP_REST_S = 0.01  # rest of an account for each of its orders, after many changed at once
FUNDS_STEPS_REST_S_MAX = 10.0  # longest such rest
FUNDS_PAUSE_S_MAX = 2.0
DRAFT_LOOK_S = 1.0  # between two looks at OTC orders whose makers' contracts have not signed yet
EXPIRY_GRACE_S = 2  # from an order's deadline to its expiry, since blocks arrive late

BRIDGE_FEE_EVERY_S = 15.0  # between two requests for the fee of a bridge's lane
BRIDGE_FEE_STALE_S = 120.0  # a fee of that age does not count
BRIDGE_FEE_REQUEST_S = 5.0  # for a bridge's API to answer
BRIDGE_LOOK_S = 2.0  # at most between two looks at the transfers to or from a chain
BRIDGE_ROUND_S = 30.0  # for a look, before it is given up and begun anew
BRIDGE_SEARCH_S = 10.0  # for the requests of a look; afterwards the look writes what it has found
BRIDGE_PAUSE_S = 0.5  # before the next look when the chain or the store is away; doubles
BRIDGE_PAUSE_S_MAX = 10.0
BRIDGE_ATTEST_S = 2.0  # between two requests for the attestation of a burn; grows with the burn's age
BRIDGE_ATTEST_S_MAX = 30.0
BRIDGE_RECEIVE_LOOK_S = 5.0  # between two looks whether an attested message was handed in
BRIDGE_LATE_S_MIN = 300.0  # least age at which a transfer under way is alarmed, unless the settings say so
BRIDGE_REFUND_LATE_S = 14_400.0  # from a transfer's failure until a missing refund is alarmed
ARRIVAL_LOOK_S = 5.0  # between two looks whether an arrival's swap was mined
ARRIVAL_PAUSE_S = (
    2.0  # before another try of a swap that no maker fills, or whose transaction failed; doubles
)
ARRIVAL_PAUSE_S_MAX = 30.0
ARRIVAL_SWAP_S = 3_600  # from an order's deadline to the end of the tries of the swap after its bridge
ARRIVAL_LATE_S = 300.0  # from the end of its swap's tries until an arrival that is not paid out is alarmed

# --- Agent -----------------------------------------------------------------------------------------
AGENT_ROUTE_LEFT_S = 60.0  # a signed route that expires sooner is not bid again
AGENT_RESERVE_S = 0.1  # from the answer to the close of its round
AGENT_SOLVE_S_MAX = 10.0  # longest solving time; a round that closes later is answered by then all the same
