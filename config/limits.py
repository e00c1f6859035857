"""Constants for every number that the specification fixes, with its rule, and for our own bounds.

Names end with their units: `_bps` basis points (1/100 of a percent), `_s` seconds, `_ms` milliseconds,
`_bytes` bytes. Sources: `spec` is docs/reference/spec and `interop` docs/reference/interop.md.
"""

# --- Quotes, Market swaps, Delta orders ------------------------------------------------------------
BPS_ONE = 10_000  # spec 1.27.1: 10000 basis points are 100 %
SLIPPAGE_BPS_MIN = 0  # spec 1.27.1
SLIPPAGE_BPS_MAX = 10_000  # spec 1.27.1
BUILD_SLIPPAGE_BPS_DEFAULT = 100  # spec 1.27.2
PARTNER_FEE_BPS_MIN = 0  # spec 1.27.3
PARTNER_FEE_BPS_MAX = 200  # spec 1.27.3
ANON_FEE_BPS = 1  # spec 1.12.15: default `anon` (1 bps fee)
SURPLUS_CAP_BPS = 100  # spec 1.14.29: caps surplus at 1 %
TWAP_INTERVAL_MIN_S = 60  # spec 1.27.4
TWAP_SLICES_MIN = 2  # spec 1.27.5
CANCEL_IDS_MAX = 100  # spec 1.27.7
ROUTE_FRESH_MS = 30_000  # spec 1.27.8
MAX_IMPACT_PERCENT_DEFAULT = 15  # spec 1.27.9
ROUTE_TOKENS_MAX = 4  # spec 1.27.10
MARKET_VERSION_DEFAULT = "5"  # spec 1.28.4
MARKET_VERSIONS = ("5", "6.2")  # spec 1.28.3
NETWORK_DEFAULT = 1  # spec 1.13.8
QUOTE_CHAINS = (1, 10, 56, 100, 130, 137, 8453, 42161, 43114)  # spec 1.27.11
DELTA_CHAINS = (1, 10, 56, 130, 137, 8453, 42161)  # choices.md#chains-and-tokens: Delta not on 100 and 43114
MARKET_CHAINS = (1, 10, 56, 137, 8453, 42161, 43114, 100)  # spec 1.27.12: an open set
NATIVE_PLACEHOLDER = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"  # spec 1.1.24: mixed case exactly

# --- OTC orders ----------------------------------------------------------------------------------
RFQ_CHAINS = (1, 10, 56, 137, 8453, 42161, 43114, 100)  # spec 2.1.18
RFQ_DOMAIN_NAME = "AUGUSTUS RFQ"  # interop 1: clients hard-code it
RFQ_DOMAIN_VERSION = "1"  # spec 2.3.13
OTC_NONCE_BITS = 96  # spec 2.3.2: maker in the upper 160 bits, nonce in the lower 96
LISTING_LIMIT_DEFAULT = 100  # spec 2.15.1
LISTING_OFFSET_DEFAULT = 0  # spec 2.15.2
LISTING_LIMIT_MAX = 1_000  # spec 2.15.4

# --- Makers --------------------------------------------------------------------------------------
AUTH_TOLERANCE_MS = 30_000  # spec 3.13.1: either way
FIRM_EXPIRY_MIN_S = 120  # spec 3.13.2: at least 2 minutes ahead
FIRM_RANDOM_BITS = 96  # spec 3.13.3: below 2^96
TOKEN_TYPE = "ERC20"  # spec 3.13.4  # noqa: S105

# --- interop.md ------------------------------------------------------------------------------------
DELTA_DOMAIN_NAME = "Portikus"  # interop 2: clients hard-code name and version
DELTA_DOMAIN_VERSION = "2.0.0"
ORDER_PAGE_LIMIT_DEFAULT = 100  # interop 3, GET /v2/delta/orders
ORDER_PAGE_LIMIT_MAX = 1_000  # interop 3, GET /v2/delta/orders

# --- Amounts (ARCHITECTURE.md, "Amounts") ----------------------------------------------------------
UINT256_MAX = 2**256 - 1
AMOUNT_DIGITS_MAX = 78  # digits of 2^256 - 1
DECIMAL_WHOLE_DIGITS_MAX = 36
DECIMAL_FRACTION_DIGITS_MAX = 36
TOKEN_DECIMALS_MAX = 36  # finer tokens exist only as jokes; keeps every scale within the decimals above

# --- Outside input: our bounds ---------------------------------------------------------------------
JSON_BYTES_MAX = 1 << 20  # a request body of the trading surface
UNIX_SECONDS_MAX = 253_402_300_799  # the last second of the year 9999: every client can parse its date
ORDER_BODY_BYTES_MAX = 512 << 10  # a route or 16 signed orders of the longest signatures, and half as much
JSON_VALUES_MAX = 16_384  # commas and opening brackets of an order body: comparing its keys takes 6 ms
CHECKSUMS_KEPT_MAX = 8_192  # formatted addresses in memory, 300 bytes each: one takes 0.1 us instead of 6
MAKER_ENTRIES_MAX = 10_000  # tokens, pairs or prices in one message of a maker
MAKER_BLACKLIST_MAX = 100_000  # addresses in one message of a maker
MAKER_REMARK_CHARS_MAX = 500  # of one `message` of a maker, in the log
MAKER_LEVELS_MAX = 1_000  # levels of one side of a price grid
MAKER_REQUEST_BYTES_MAX = 64 << 10  # a request to a maker: POST /firm is below 2 KiB
STORE_QUEUE_MAX = 8_192  # writes that may wait for the store
STORE_BATCH_MAX = 1_024  # writes of one transaction
WEBHOOK_POSTS_MAX = 64  # posts of one webhook under way at a time
WEBHOOK_SECRET_BYTES_MIN = 24  # Standard Webhooks, "Signature scheme"
WEBHOOK_SECRET_BYTES_MAX = 64
WEBHOOK_ROWS_MAX = 100  # deliveries that are written, or read, at once
WEBHOOK_WAITING_MAX = 10_000  # deliveries of one webhook that wait; further events wait in the log
WEBHOOK_DEAD_MAX = 100_000  # deliveries of one webhook that are kept for a replay
WEBHOOK_REASON_CHARS_MAX = 300  # of the recorded reason for a failed delivery
WEBHOOK_ANSWER_BYTES_MAX = 64 << 10  # of a receiver's answer; the answer's content is not used
WEBHOOK_PAGE_MAX = 100  # deliveries of one listing, and ids of one replay
FOLLOW_EVENTS_MAX = 256  # events that a follower reads at once
FOLLOW_RING_MAX = 10_000  # events in memory, for followers that are up to date
FOLLOW_REPLAYS_MAX = 4  # followers that read older events from the store at the same time
FOLLOW_REPLAY_EVENTS_MAX = 64  # older events that a follower reads at once, and holds until they are sent
BOOT_PAGE_ROWS = 500  # rows that are read at once at the start
PRUNE_ROWS_MAX = 500  # rows of each kind that one step of retention deletes
STORE_UNIT_BYTES_MAX = 4 << 20  # of one write: a request's body and the rows that belong to it
STORE_PART_BYTES_MAX = 16 << 20  # of a batch, in one message to the store process
STORE_FRAME_BYTES_MAX = 256 << 20  # of one message to or from the store process
STORE_READS_MAX = 1_024  # reads that may wait for the store process
MAKER_SOCKETS_UNSENT_BYTES_MAX = 256 << 20  # of all WebSockets of a chain; the slowest is closed first
SOCKET_UNSENT_BYTES_MAX = 16 << 20  # for the slow reader of one WebSocket; at least a first message
MAKER_JSON_BYTES_MAX = 16 << 20  # a maker's /prices or first socket message
TYPED_DATA_BYTES_MAX = 1 << 20
TYPED_DATA_DEPTH_MAX = 32  # structs and arrays inside one another
TYPED_DATA_MEMBERS_MAX = 1_024  # members over all struct types of one document
TYPED_DATA_VALUES_MAX = 100_000  # values of one message, array elements included
JSON_INT_MAX = 2**53 - 1  # the largest integer that every JSON reader keeps exact
REFUSED_ENTRIES_MAX = 1_000  # bad tokens, pairs, grids in one maker's body; beyond, the whole body is refused
MAKER_REFUSALS_SHOWN_MAX = 100  # refused pairs of a maker in its scores
NAME_CHARS_MAX = 128  # partner, agent, bridge and token names
QUERY_BYTES_MAX = 8_192
QUERY_PARAMETERS_MAX = 100
ROUTE_BYTES_MAX = 256 << 10

# --- Server ----------------------------------------------------------------------------------------
SERVER_HEALTH_CONNECTIONS_MAX = 64  # of the listener for health and metrics

# --- Admission -------------------------------------------------------------------------------------
ADMISSION_CALLERS_MAX = 100_000  # buckets that are kept for each tier: about 20 MB
ADMISSION_KEY_BYTES_MAX = 256  # of the X-API-KEY header
ADMISSION_STREAMS_PER_CALLER_MAX = 32  # open streams of each kind, for one address or key

# --- HMAC credentials ------------------------------------------------------------------------------
AUTH_KEYS_PER_DOMAIN_MAX = 2  # two live keys, so that a secret can be rotated without a gap
REPLAY_ENTRIES_MAX = 4_000_000  # with the replay window on: 60 s at 60,000 requests a second

# --- Keys ------------------------------------------------------------------------------------------
KEY_FILE_BYTES_MAX = 64 << 10
KEYSTORE_KDF_BYTES_MAX = 1 << 29  # memory that a keystore's scrypt parameters may ask for
KEYSTORE_PBKDF2_ROUNDS_MAX = 10_000_000
KEYSTORE_SCRYPT_P_MAX = 16

# --- Chain -----------------------------------------------------------------------------------------
RLP_BYTES_MAX = 128 << 10  # of a signed transaction, as nodes take them
RLP_DEPTH_MAX = 8  # lists inside one another: an access list needs 4
LOG_DATA_BYTES_MAX = 64 << 10  # of one log of a bridge: a deposit's message or a burn's hook data is in it
CCTP_BODY_BYTES_MAX = 8_192  # of a message, as CCTP's transmitters take them (maxMessageBodySize)
REVERT_REASON_CHARS_MAX = 512  # of a contract's words in our errors; the data is kept whole
EMBEDDED_BLOCK_GAS = 30_000_000  # of one block of the embedded chain, as anvil's
EMBEDDED_UNDO_BLOCKS = 4_096  # blocks of the embedded chain that can be undone, and whose state can be read
EMBEDDED_KEPT_BLOCKS = 100_000  # blocks of the embedded chain whose headers, receipts and logs are kept
EMBEDDED_WAITING_MAX = 4_096  # transactions that may wait for a block of the embedded chain
EMBEDDED_ARRIVALS_MAX = 4_096  # executable transactions whose arrival filters and sockets can still read
EMBEDDED_SNAPSHOTS_MAX = 1_024  # snapshots of the embedded chain that are not used up yet
EMBEDDED_MINE_BLOCKS_MAX = 100_000  # blocks that the embedded chain makes at once
INDEX_RING_BLOCKS = 256  # least number of remembered blocks: depth of re-organisations followed
INDEX_RANGE_BLOCKS_MAX = 2_000  # heights of one request for logs
INDEX_RANGES_MAX = 6  # ranges that are read at the same time
INDEX_STEP_BLOCKS_MAX = 256  # blocks that are read one by one in one step
INDEX_STEP_ROWS_MAX = 10_000  # rows that one step writes or takes back, about
INDEX_QUESTIONS_MAX = 8  # batches of one kind at the same time, divided among the ranges
INDEX_TRIES_MAX = 5  # for a step whose orders other writers change meanwhile
WATCH_TOKENS_PER_FILTER_MAX = 500  # in one request for logs; nodes take 1,000 addresses at most
CHAIN_ANSWER_BYTES_MAX = 32 << 20  # a node's answer to one request
CHAIN_BATCH_CALLS_MAX = 100  # calls of one request
CHAIN_TOKEN_GAS_MAX = 1_000_000  # for a token's balanceOf or allowance: the token may be hostile
CHAIN_COUNT_MAX = 2**63 - 1  # a height, timestamp, gas amount or index: largest value of a store column
CHAIN_TIME_S_MAX = CHAIN_COUNT_MAX // 1_000  # a timestamp: it is kept in milliseconds
CHAIN_NODES_MAX = 16  # nodes of one chain
CHAIN_HEAD_BYTES_MAX = 64 << 10  # one message of a subscription to new heads
RELAY_FEE_CAP_WEI = 500 * 10**9  # per unit of gas, unless set
RELAY_TIP_WEI_MAX = 5 * 10**9  # first tip per unit of gas, unless set
RELAY_WEI_MAX = 10**21  # of a setting: a larger value is a mistake
RELAY_BUMP_BPS = 1_250  # of a replacement's fees, unless set
RELAY_RECEIPTS_KEPT_MAX = 1_024  # of a relayer's last mined transactions, in memory
RELAY_QUESTIONS_MAX = 16  # requests of a relayer to its node at a time
RELAY_IN_FLIGHT_MAX = 16  # transactions of one relayer that wait to be mined; nodes queue 16 of an account
RELAY_GAS_MAX = 1 << 24  # of one transaction, unless set: more is no valid transaction (EIP-7825)
RELAY_DATA_BYTES_MAX = 96 << 10  # calldata of one transaction: nodes take transactions of 128 KiB
RELAY_REASON_CHARS_MAX = 1_000  # of the recorded reason for a failure

# --- Devnet ----------------------------------------------------------------------------------------
DEVNET_REQUEST_BYTES_MAX = 5 << 20  # of one request or socket message, as geth takes them
DEVNET_ANSWER_BYTES_MAX = 25 << 20  # of one answer, a batch's as a whole
DEVNET_BATCH_CALLS_MAX = 1_000  # calls of one request
DEVNET_LOGS_MAX = 10_000  # logs of one answer
DEVNET_FILTER_ITEMS_MAX = 1_000  # addresses of a filter, or values of one of its topics
DEVNET_FILTERS_MAX = 1_024  # filters that are kept; the least recently read filter is dropped first
DEVNET_SUBSCRIPTIONS_MAX = 128  # subscriptions of one socket
DEVNET_MOVES_MAX = 8_192  # added and removed blocks that are kept for filters and sockets to read
DEVNET_FEE_BLOCKS_MAX = 1_024  # blocks of one fee history
DEVNET_PERCENTILES_MAX = 100  # percentiles of one fee history
DEVNET_ACCOUNTS = 10  # accounts that have funds from the start
DEV_BRIDGE_DEPOSITS_MAX = 1_024  # deposits that a dev relayer watches; the oldest is dropped first
DEV_BRIDGE_MESSAGES_MAX = 4_096  # transactions whose messages a dev attester keeps; the oldest goes first

# --- Venue -----------------------------------------------------------------------------------------
VENUE_ISSUED_MAX = 1_000_000  # digests of Delta routes in memory, about 150 bytes each
VENUE_ISSUED_WAITING_MAX = 100_000  # digests of Delta routes that may wait for the store
VENUE_METADATA_BYTES_MAX = 4 << 10  # of a Delta order
VENUE_ISSUED_BATCH_MAX = 500  # issued routes in one write
VENUE_SIGNATURE_BYTES_MAX = 4_096  # of an order or cancellation: a contract's (EIP-1271) has no fixed length
OTHER_DOMAINS_MAX = 16  # signing domains over which a wrong signature is tried, to name the mistake
VENUE_DEPLOY_GAS_MAX = 4_000_000  # of a simulated deployment of a wallet, and its isValidSignature
VENUE_SIGNATURE_GAS_MAX = 1_000_000  # for a contract's isValidSignature, as the Delta contract gives it
VENUE_PERMIT_GAS_MAX = 1_000_000  # for a token or Permit2 to take a permit
VENUE_ORDER_AGENTS_MAX = 100  # names of includeAgents, and of excludeAgents
VENUE_ORDER_IDS_MAX = 100  # of one listing
VENUE_LIVE_ORDERS_PER_OWNER_MAX = 10_000  # in memory of one process: each costs a few kilobytes
VENUE_LIVE_BEYOND_FUNDS_MAX = 16  # of these, if together they sell more of a token than the owner has
VENUE_LIVE_ORDER_BYTES = 8 << 10  # counted for a Delta order in memory, besides its own data
VENUE_LIVE_BYTES_MAX = 2 << 30  # of all Delta orders in memory of one process
VENUE_GIVING_WAY_MAX = 8  # orders that one new order ends, where all places or all memory is taken
VENUE_UNBACKED_ORDERS_MAX = 50_000  # Delta orders in memory that wait for a signature or funds
AS_OF_CHARS_MAX = 4_096  # of a listing's `asOf`: a PostgreSQL snapshot names the transactions under way
OTC_LIVE_MAX = 200_000  # OTC orders in memory of one process: each costs a few kilobytes
OTC_LIVE_UNFUNDED_MAX = 50_000  # OTC orders in memory that lack signature or funds: posting these is free
OTC_LIVE_UNLISTED_MAX = 20_000  # with a token that the operator has not listed: its contract may say anything
OTC_LIVE_UNLISTED_PER_MAKER_MAX = 100  # of these, of one maker
OTC_LIVE_UNLISTED_ENDLESS_MAX = 2_000  # of these, without an expiry within the next seconds:
OTC_LIVE_UNLISTED_EXPIRY_S = 30 * 86_400
OTC_LIVE_ORDERS_PER_MAKER_MAX = 1_000  # every order gets its share of the maker's funds
OTC_LIVE_DRAFTS_PER_MAKER_MAX = 100  # drafts of one maker: anybody may post a draft in a contract's name
OTC_LIVE_PURGE_ROWS_MAX = 1_000  # open OTC orders that one request of an operator looks at
OTC_LIVE_PURGE_STEP_ROWS = 50  # of these, those that are ended in one unit of the store
OTC_LIVE_TOKENS_SHOWN_MAX = 100  # tokens of an account's orders whose fillable balances one answer holds
VENUE_LOAD_ORDERS = 500  # orders whose documents and fills are read at once when an engine loads its orders
VENUE_FUNDS_ACCOUNTS_MAX = 50  # accounts whose balances and allowances are read at once
VENUE_FUNDS_STEPS_FREE = 50  # orders of one account that change at once before the account has to rest
VENUE_FUNDS_ORDERS_MAX = 100  # orders whose fills are read, or that are suspended, at once
VENUE_DRAFTS_MAX = 64  # OTC drafts whose makers' contracts are asked at once for their signature
VENUE_SWAP_ORDERS_MAX = 16  # signed orders that one Market swap fills
VENUE_STEP_TRIES_MAX = 8  # for a step of an order that other writers change meanwhile
VENUE_RESTING_PAIRS_MAX = 128  # end pairs of limit orders that one look at prices covers
VENUE_RESTING_SWEPT_MAX = 16  # of these pairs, reserved for the sweep even while other pairs change
VENUE_RESTING_PRICED_MAX = 64  # limit orders of an end pair that one look prices
MAKER_FIRM_ANSWER_BYTES_MAX = 64 << 10  # of an answer to POST /firm, which is below 1 KiB
MAKER_FIRM_EXPIRY_GRACE_S = 5  # by which a firm quote's expiry may fall short of FIRM_EXPIRY_MIN_S
MAKER_FIRM_EXPIRY_MAX_S = 86_400  # ahead: a later expiry is a mistake
MAKER_SIGNATURE_BYTES_MAX = 4_096  # of a firm quote: a contract's (EIP-1271) has no fixed length
MAKER_SIGNATURE_GAS_MAX = 1_000_000  # for a contract's isValidSignature: the user pays for that as well
MAKER_HEALTH_QUOTES_MAX = 100  # ARCHITECTURE.md, "Firm quotes": quotes in a score
MAKER_HEALTH_MEMORY_S = 3_600  # older quotes leave the score
MAKER_FAULTS_A_PAIR = 2  # faults of one pair that count towards resting the whole maker
MAKER_LAST_FAULTS_MAX = 10  # faults of a maker on a chain that are shown with reasons
MAKER_FAULTS_WAITING_MAX = 64  # faults that wait to be sent to a maker, per chain; the oldest is dropped
MAKER_FAULT_CHARS_MAX = 300  # of a fault's reason
MAKER_PROBES_MAX = 8  # probes that one firm desk begins at a time
MAKER_QUOTES_A_CALLER = 10  # quotes in a score that one caller has caused
MAKER_ASKERS_MAX = 20  # callers for whom the desk remembers whether a maker served them
MAKER_UNSERVING_S = 60  # rest of a maker that blacklists most of these callers
MAKER_REFUSALS_MAX = 32  # refusals in a row that still lengthen a bound
MAKER_REASONS_MAX = 8  # makers whose failures one error lists

BRIDGE_ANSWER_BYTES_MAX = 64 << 10  # of a bridge's API; its answers are below 4 KiB
BRIDGE_CHAINS_MAX = 32  # chains of one token of a bridge: each pair of them is a lane
BRIDGE_TOKENS_LISTED_MAX = 32  # tokens of one bridge
BRIDGE_TOKENS_MAX = 10**12  # whole tokens in a setting: a larger amount is a mistake
BRIDGE_RECOMMENDED_BPS = 10  # loss against the best return that a faster bridge may have to be recommended
BRIDGE_SCALING_MAX = 30  # difference of decimals of a bridge's two tokens, as the contract takes it
CCTP_DOMAIN_MAX = 2**32 - 1  # Circle's number of a chain
BRIDGE_FILL_MIN_S = 60  # from a deposit to its refund: a shorter time misses most fills
BRIDGE_FILL_MAX_S = 21_600  # Across refuses a deposit with a later fill deadline (`fillDeadlineBuffer`)
BRIDGE_CONNECTIONS_MAX = 4  # connections to one bridge's API
BRIDGE_ORDERS_READ = 64  # orders with transfers that one read of the store takes
BRIDGE_IDS_PER_FILTER = 64  # deposits or nonces that one request for logs names
BRIDGE_RANGE_BLOCKS_MAX = 2_000  # heights of one request for a bridge's logs
BRIDGE_RANGES_PER_ROUND = 32  # requests for a bridge's logs before the other transfers have their turn
BRIDGE_CLOCK_SLACK_S = 3_600  # by which a destination's clock may be behind the origin's
BRIDGE_MESSAGES_MAX = 4_096  # messages of one transaction: a settlement may call contracts that send others
BRIDGE_MESSAGES_BYTES_MAX = 16 << 20  # an answer with the messages of a transaction, each of up to 8 KiB
BRIDGE_RECEIVE_GAS = 500_000  # of a call that hands in an attested message; dev contracts use 102,000
BRIDGE_RECEIVE_GAS_USED = 200_000  # expected of such a call
BRIDGE_RECEIVES_MAX = 5  # tries to hand in one attested message, each after the last has failed
BRIDGE_ONLY_GAS_USED = 300_000  # expected of a bridge-only order's settlement, with a permit or a wallet
ARRIVAL_UNTIL_MAX_S = 86_400  # from an order's deadline to the end of the swap after its bridge
ARRIVAL_SWAP_GAS_USED = 500_000  # expected of a call that swaps what a bridge delivered by one fill
ARRIVAL_WRAP_GAS_USED = 400_000  # expected of a call that wraps what a bridge delivered, and pays it out
ARRIVAL_SWAP_GAS_MAX = 1 << 23  # of a call that swaps what a bridge delivered; one fill takes 410,000
ARRIVAL_PAY_OUT_GAS = 500_000  # of a call that pays out what a bridge delivered; it may create the account
ARRIVAL_TRIES_MAX = 32  # transactions that try the swap of one arrival, each after the last has failed
ARRIVAL_REVERTS_MAX = 3  # of these, that may be mined and revert: the relayer has paid for them
ARRIVAL_MAKER_REVERTS_MAX = 2  # of these, that may be mined and revert in a fill by the same maker
ARRIVALS_AT_ONCE = 8  # arrivals of a chain for which firm quotes are asked at the same time

# --- Agents ----------------------------------------------------------------------------------------
AGENT_REQUEST_BYTES_MAX = 4 << 20  # of POST /solve: AGENT_ORDERS_MAX orders, and some room
AGENT_ANSWER_BYTES_MAX = 4 << 20  # of an answer to POST /solve
AGENT_ORDERS_MAX = 256  # orders of one round, and of all open rounds of a chain together
AGENT_GAS_COVERED_MAX = 4_000_000  # of a settlement, for each order, that a gain over the limit covers
AGENT_GAS_IN_DOUBT_MAX = 4_000_000  # an hour, of an agent's calls that failed as owners acted in their blocks
AGENT_ORDERS_AT_FIRST = 32  # orders of an agent's request before the venue knows how many the agent manages
AGENT_BIDS_MAX = 512  # bids of one answer
AGENT_BIDS_PER_ORDER_MAX = 3  # simulated bids of an agent on one order: alone, and as many crossings
AGENT_SIMULATED_AT_ONCE = 32  # bids of an agent, in one request to the chain
AGENT_REVERTS_JUDGED = 32  # last simulated bids of an agent among which its reverts are counted
AGENT_REVERTS_MAX = 24  # of these bids, that may revert while another agent's bid on the order did not
AGENT_REVERTS_OWNERS = 3  # distinct owners before reverts count: one owner can make its own settlements fail
AGENT_OWNERS_KEPT_MAX = 16_384  # owners of a chain whose failed settlements, or settled ones, are remembered
AGENT_PARTS_MAX = 8  # orders that are crossed with each other in one bid, as the contract takes them
AGENT_STEPS_MAX = 32  # steps of one order's settlement
AGENT_STRATEGIES_MAX = 16  # strategies of one agent
AGENT_ROUTES_KEPT_MAX = 4_096  # orders of a chain whose signed route an agent keeps for the next round
STRATEGIES_MAX = 64  # vaults of a chain
STRATEGY_APR_PERCENT_MAX = 1_000_000  # a larger APR, up or down, is not shown
STRATEGY_SAMPLES_MAX = 720  # share prices of a vault that the venue remembers, at least an hour apart
DELTA_SHARES_MAX = 2**128 - 1  # shares of a vault that one order gives
VENUE_VAULT_ORDERS_MAX = 64  # orders whose vaults are asked at a time, those read longest ago first
VENUE_VAULTS_LOOKED_MAX = 50  # owners' shares of vaults that are read again at a time, with their orders
VAULT_GAS_MAX = 3_000_000  # contracts/lib/Vaults.sol: units that one call of a vault may use
HANDLER_DATA_BYTES_MAX = 16_384  # of an order, for its handler: calldata of every settlement
OWN_ROUND_ORDERS_MAX = 64  # orders that no agent trades in one round
OWN_BIDS_KEPT_MAX = 4_096  # pairs of trader and owner whose failures the venue remembers, and their orders
AGENT_STEP_GAS_MAX = 5_000_000  # contracts/AgentCaller.sol: units that one step may use
CONTRACT_CAP_MAX = 2**112 - 2  # contracts/lib/Guardrails.sol: raw units, of a set cap
AGENT_NOTICES_WAITING_MAX = 256  # notices that one agent has not taken yet; the oldest goes first
AGENT_SOFT_FAULTS_MAX = 5  # answers in a row that may be late, malformed or none, before an agent rests
AGENT_STRIKES_MAX = 32  # strikes that still lengthen a rest
AGENT_GAS_DRIFT_BPS = 1_000  # gas that a settlement may take above its simulation; AGENT_GAS_DRIFT is added
AGENT_GAS_DRIFT = 25_000  # units: a first write to a storage slot costs 22,100
VENUE_STOCK_REFILL_S = 600  # in which the share of makers' stock returns that a network used and did not fill
VENUE_SETTLED_CONSENT_S = (
    86_400  # for which a filled swap shows that its user and its caller's network belong together
)
VENUE_SETTLED_CONSENTS_MAX = (
    65_536  # pairs of network and user that a chain remembers, those that filled last
)
VENUE_PAST_SWAPS_MAX = 4_096  # swaps of a chain whose quotes have expired, which may have been filled
VENUE_CONSENT_S_MAX = 86_400  # from now to the deadline of a user's consent to a swap
VENUE_UNFILLED_S_MAX = 300  # a signed quote counts as unfilled until its expiry, at most for this time
AGENT_DRIFT_BPS = 10  # loss that a settlement may have against its simulation a moment before: markets move
VENUE_UNSIGNED_ORDERS_PER_OWNER_MAX = 100  # anybody may submit such an order in a contract's name
VENUE_ROUNDS_OPEN_MAX = 8  # open rounds of a chain at which no other opens; most requests to an agent at once
VENUE_AUCTION_BIDS_MAX = 64  # bids on one order that a round's record keeps, the best first
VENUE_AUCTION_DETAIL_CHARS_MAX = 300  # of a bid's detail in such a record
PRICE_HISTORY_SAMPLES_MAX = 5_760  # prices of a token that are kept: a day at PRICE_SAMPLE_S
PRICE_HISTORY_TOKENS_MAX = 512  # listed tokens with a history of prices, 46 KB each
PRICE_HISTORY_POINTS_MAX = 1_500  # of one answer of GET /prices/history
DEPTH_UNIT_USD = 2_500  # worth of the least size of GET /prices/depth, about
PRICE_HISTORY_POINTS_DEFAULT = 600  # at most, where the query names no step
SHARED_ANSWERS_MAX = 64  # encoded answers that one endpoint keeps for all who ask alike
OPERATOR_SERIES_STEPS_MAX = 360  # of the venue's counters: an hour at SERIES_STEP_S
MAKER_RECENT_QUOTES_MAX = 100  # last requests for firm quotes that the maker's operator sees
VENUE_AUCTIONS_MAX = 200  # orders of closed rounds in one answer of GET /v2/delta/auctions
VENUE_EXPLAINED_ROUNDS_MAX = 5  # rounds that an order's explanation looks back on
TAPE_TRADES_MAX = 20_000  # trades of a chain in memory, the latest ones of TAPE_S
TAPE_ROWS_MAX = 100_000  # fills of a chain that a start reads from the store for its tape
TAPE_PAGE_ROWS = 500  # fills of each kind in one such read
TAPE_BLOCK_ROWS_MAX = 8_000  # fills of each kind that are read of one block
TAPE_ARRIVALS_MAX = 1_000  # trades that a stream may lag behind, and that a reconnect gets at most
TAPE_LISTED_DEFAULT = 50  # trades in an answer of GET /v2/delta/trades
TAPE_LISTED_MAX = 500  # likewise, at most
MAKER_ACCOUNTS_MAX = 16  # addresses that one maker signs quotes with
