"""Descriptions of parameters, bodies and answers, for the OpenAPI and the AsyncAPI document: tables of words.

Types, bounds, defaults and enums are not here: they come from the structs.
"""

from typing import Any

from ....config.limits import MAX_IMPACT_PERCENT_DEFAULT, NATIVE_PLACEHOLDER, NETWORK_DEFAULT

_ADDRESS = "^0[xX][0-9a-fA-F]{40}$"
_DIGITS = "^[0-9]{1,78}$"

KEY_TEXT = "Optional, but for webhooks: a known caller has a rate limit of its own."
"""Description of the header X-API-KEY."""
PARAMETERS: dict[str, tuple[str, dict[str, Any]]] = {
    "chainId": ("Chain id.", {}),
    "network": (f"Chain id; the same as `chainId`; {NETWORK_DEFAULT} where neither is given.", {}),
    "destChainId": ("Chain id of the destination; absent or equal for a swap on one chain.", {}),
    "category": ("Category of the tokens, an id of GET /fiat/tokens/categories; all tokens if absent.", {}),
    "user": ("Address of the account.", {"pattern": _ADDRESS}),
    "token": (f"Token address; {NATIVE_PLACEHOLDER} is the native token.", {}),
    "srcToken": (f"Token to give: address or symbol; {NATIVE_PLACEHOLDER} is the native token.", {}),
    "destToken": ("Token to receive, as `srcToken`.", {}),
    "amount": ("Raw units: of the source for SELL, of the destination for BUY.", {"pattern": _DIGITS}),
    "srcDecimals": ("Decimals of the source token.", {}),
    "destDecimals": ("Decimals of the destination token.", {}),
    "side": ("SELL fixes the source amount, BUY the destination amount; in any case.", {}),
    "mode": ("ALL prices Delta and falls back to Market; in any case.", {}),
    "userAddress": ("The trading account.", {"pattern": _ADDRESS}),
    "beneficiary": ("Account that receives; the user unless set.", {"pattern": _ADDRESS}),
    "receiver": ("Account that receives; the user unless set.", {"pattern": _ADDRESS}),
    "txOrigin": ("Sender of the transaction, if it is not the user.", {"pattern": _ADDRESS}),
    "partner": (
        "Partner key: its registered fee is charged. An unregistered partner pays 1 bps as `anon` does.",
        {},
    ),
    "partnerAddress": (
        "Account that receives the fee; refused beside a registered partner, which has its own address.",
        {"pattern": _ADDRESS},
    ),
    "partnerFeeBps": ("Basis points on top of the registered fee.", {}),
    "maxImpact": (
        f"Percent of price impact at which `maxImpactReached` is true; else {MAX_IMPACT_PERCENT_DEFAULT}.",
        {"minimum": 0},
    ),
    "maxUSDImpact": ("US dollars of price impact at which `maxImpactReached` is true.", {"minimum": 0}),
    "otherExchangePrices": ("Adds `others`: the best route of each maker alone.", {}),
    "includeDEXS": ("Names of GET /adapters/list: only these.", {}),
    "excludeDEXS": ("Names of GET /adapters/list: all but these.", {}),
    "excludeRFQ": ("Leaves out market makers.", {}),
    "includeContractMethods": ("Functions of the router: only these.", {}),
    "excludeContractMethods": ("Functions of the router: all but these.", {}),
    "excludeContractMethodsWithoutFeeModel": ("Leaves out functions that take no fee.", {}),
    "route": ("The tokens to go through, joined by dashes, at most 4.", {}),
    "srcTokenTransferFee": ("Basis points that the source token withholds from a transfer.", {}),
    "destTokenTransferFee": ("Basis points that the destination token withholds from a transfer.", {}),
    "srcTokenDexTransferFee": ("Basis points withheld at the first exchange.", {}),
    "destTokenDexTransferFee": ("Basis points withheld at the last exchange.", {}),
    "version": ("Version of the router; a transaction needs 6.2.", {}),
    "ignoreBadUsdPrice": ("A missing price in US dollars is not counted as an impact.", {}),
    "slippage": ("Basis points by which the other amount may be worse.", {}),
    "permit": ("Signed permit payload, hexadecimal.", {"pattern": "^0x([0-9a-fA-F]{2})*$"}),
    "deadline": ("Unix seconds after which the transaction is invalid.", {}),
    "isCapSurplus": ("Caps the shared surplus at 1 %.", {}),
    "takeSurplus": ("The partner shares in the surplus.", {}),
    "isSurplusToUser": ("All surplus is the user's.", {}),
    "isDirectFeeTransfer": ("Pays the fee at once instead of accruing it.", {}),
    "gasPrice": ("Wei for a unit of gas.", {"pattern": _DIGITS}),
    "ignoreChecks": (
        "Skips balance, allowance and simulation; no `gas`. Without a key, within a share of makers' stock.",
        {},
    ),
    "ignoreGasEstimate": ("No `gas` in the answer.", {}),
    "onlyParams": ("Only the parameters of the contract call.", {}),
    "eip1559": ("Two EIP-1559 fields in place of `gasPrice`.", {}),
    "includeAgents": ("Names of agents: only these.", {}),
    "excludeAgents": ("Names of agents: all but these.", {}),
    "includeBridges": ("Names of bridges: only these.", {}),
    "excludeBridges": ("Names of bridges: all but these.", {}),
    "bridges": ("Names of bridges: only their lanes.", {}),
    "allowBridgeAndSwap": ("Whether a bridge may be followed by a swap.", {}),
    "orderId": ("Id of an order, as its record has it.", {}),
    "auctionId": ("Id of a closed round, as agents and explanations name it.", {}),
    "hash": ("Hash of an order, as in the answer of its build.", {}),
    "orderHash": ("Hashes of orders, at most 100: only these orders, and the orders of `orderId`.", {}),
    "maker": ("Maker of the orders.", {"pattern": _ADDRESS}),
    "taker": ("Orders for this taker, or with it in their nonceAndMeta.", {"pattern": _ADDRESS}),
    "after": ("Token of an event: later events are sent first.", {"pattern": "^[0-9a-f]{32}$"}),
    "ids": ("Ids of orders, at most 100: only these.", {}),
    "name": ("Name of a webhook.", {}),
    "makerName": ("Name of a maker, as GET /makers/scores lists it.", {}),
    "pair": ("Pair id of the maker, such as WETH/USDC, whose levels the answer then has.", {}),
    "type": ("MARKET or LIMIT orders only.", {}),
    "onChainOrderType": ("Orders of this kind only.", {}),
    "status": ("Orders in one of these states only.", {}),
    "kind": ("DELTA or MARKET trades only; in any case.", {}),
    "page": ("Page, from 1.", {}),
    "limit": ("Orders of a page.", {}),
    "account": ("Address of the account.", {"pattern": _ADDRESS}),
    "offset": ("Number of orders to skip.", {}),
    "orderBy": ("Sort key, the latest first; an order without expiry is the last.", {}),
    "hideSmallBalances": ("Leaves out orders with little or no fillable amount now.", {}),
    "base": ("Token whose price is shown: address or symbol.", {}),
    "quote": ("Token in which the price is shown: address or symbol.", {}),
    "span": ("Seconds, up to now, that the answer covers; at most a day.", {}),
    "step": (
        "Seconds of a point: 15, 60, 300, 900 or 3600, for 1500 points at most; absent: the least for 600.",
        {},
    ),
    "asOf": ("`asOf` of an earlier page: the listing as it was, without later orders.", {}),
}
OF_QUERIES = {
    "OrdersQuery": {"userAddress": "Owner of the orders. This, `ids` or an operator's key is needed."},
    "OrderEventsQuery": {
        "orderId": "Ids of orders, at most 100: only these orders, and the orders of `orderHash`.",
        "partner": "The partner of the orders, as their records have it; alone with the partner's key.",
        "userAddress": "Owner of the orders. This, an order or an operator's key is needed.",
    },
    "OtcListingQuery": {"type": "P2P (a named taker) or LIMIT (anyone) only."},
    "AuctionsQuery": {"limit": "Most orders in the rounds."},
    "OtcBalanceQuery": {"token": "Address of the token; all tokens if absent."},
    "OtcEventsQuery": {"orderHash": "Hashes of orders, at most 100: only these."},
    "TradesQuery": {"limit": "Trades in the answer."},
    "TradeStreamQuery": {"after": "Token of a trade: later trades are sent first."},
    "DeliveriesQuery": {
        "status": "Deliveries in this state.",
        "after": "Token of the last delivery that the caller knows.",
        "limit": "Deliveries of a page.",
    },
}
"""Name of a query struct -> {parameter: description}, where a description differs from `PARAMETERS`."""
MEMBERS = {
    "MakerAct": {
        "act": "`exclude` leaves the maker out of routes at once; `release` admits it again and clears its "
        "faults.",
        "chainId": "The chain to act on; null or absent for all chains.",
    },
    "ConsentBody": {
        "srcAmount": "The most of the source token that the user gives, in raw units.",
        "deadline": "Unix seconds, at most a day ahead.",
        "signature": "Of EIP-712 `SwapConsent` by the user's key, or one that the user's contract accepts.",
    },
    "TransactionBody": {
        "consent": "The user's signed consent: with it the user's own share of makers' stock counts.",
        "priceRoute": "The quoted route, unchanged to the digit; either this or `orders`.",
        "orders": "Signed RFQ orders of the pair in place of a route, tried in turn: open to all, or made "
        "out to the Router's executor for this user.",
        "side": "Side of the route. With orders BUY if only `destAmount` is sent, else SELL, unless set.",
        "srcAmount": "Raw units. For SELL the route's amount; for BUY the most to give, in place of "
        "`slippage`.",
        "destAmount": "Raw units. For BUY the route's amount; for SELL the least to receive, in place of "
        "`slippage`.",
    },
    "BuildBody": {
        "route": "The quoted route, unchanged to the digit.",
        "owner": "Account that signs and gives the source token.",
        "deadline": "Unix seconds; the order is unfillable after it.",
        "side": "SELL unless set; `orderType` may fix it.",
        "beneficiary": "Account that receives; the owner unless set.",
        "nonce": "Number that no other order of the owner has; random unless set.",
        "limitAmount": "The limit price, raw units: the least to receive, or for BUY the most to give.",
        "metadata": "Free bytes, hexadecimal.",
        "partiallyFillable": "Whether the order may be filled in parts; repeated in the submission.",
        "partnerTakesSurplus": "The partner shares in the surplus.",
        "capSurplus": "The shared surplus is at most 1 % of the expected amount.",
        "orderType": "Type of the signed order.",
        "handler": "ExternalOrder: the contract that trades it for the owner.",
        "data": "ExternalOrder: input of its handler, hexadecimal.",
        "strategy": "ProductiveOrder: the vault from whose shares it sells.",
        "useShares": "ProductiveOrder: whether it sells shares, and not an amount of the source.",
        "interval": "TWAP: seconds between slices, at least 60.",
        "numSlices": "TWAP: at least 2.",
        "totalSrcAmount": "TWAPOrder: raw units; the route is priced for one slice.",
        "totalDestAmount": "TWAPBuyOrder: raw units; the route is priced for one slice.",
        "maxSrcAmount": "TWAPBuyOrder: largest total spending, raw units.",
    },
    "SubmitBody": {
        "order": "`toSign.value` of the build, as it came.",
        "signature": "The owner's signature over `toSign`: 64 or 65 bytes; any bytes of a contract, or `0x` "
        "if it signs by a call.",
        "partner": "Partner of the order: the partner of the signed fee, or any unregistered name.",
        "type": "LIMIT rests until makers' books reach its price.",
        "onChainOrderType": "Type of the signed order; it follows from `order`, and may not contradict it.",
        "referrerAddress": "Account that referred the owner.",
        "partiallyFillable": "Whether the order may be filled in parts.",
        "includeAgents": "Names of agents: only these may bid.",
        "excludeAgents": "Names of agents that may not bid.",
    },
    "CancelBody": {
        "orderIds": "1 to 100 ids of orders of one owner and chain.",
        "signature": "The owner's signature over `toSign` of the cancellation's build with the same ids.",
    },
    "CancellationBuildBody": {"orderIds": "1 to 100 ids of orders of one owner and chain."},
    "OtcOrderBody": {
        "nonceAndMeta": "uint256, decimal; `maker << 96 | nonce`, or any other.",
        "expiry": "Unix seconds after which the order cannot be filled; 0 is never.",
        "makerAsset": "ERC-20 token that the maker sells.",
        "takerAsset": "ERC-20 token that the maker wants.",
        "makerAmount": "Offered raw units.",
        "takerAmount": "Wanted raw units.",
        "maker": "Account that signs.",
        "taker": "Account that may fill; the zero address for anyone.",
        "signature": "The maker's signature over the order: 64 or 65 bytes; any bytes of a contract.",
        "permitMakerAsset": "Permit of the maker's asset for the RFQ contract, of 224 or 256 bytes.",
    },
    "OtcPurgeBody": {
        "chainId": "Chain of the orders; all chains if absent.",
        "token": "Token that the orders sell or buy.",
        "state": "State of the orders: DRAFT, SUSPENDED or PENDING.",
        "unlisted": "Orders with a token that the operator has not listed.",
        "dryRun": "Count the orders, and end none.",
        "after": "`after` of the answer before; absent in the first request.",
    },
    "ReplayBody": {"tokens": "Tokens of dead deliveries; empty replays the oldest ones."},
}
"""Name of a body struct -> {member: description}, for members that `PARAMETERS` does not describe."""
OF_PATHS = {"orderHash": "Hash of an OTC order."}
"""Path placeholder -> description, where it differs from that of the query parameter of the same name."""
PATH_SCHEMAS: dict[str, dict[str, Any]] = {
    "chainId": {"type": "integer", "minimum": 1},
    "auctionId": {"type": "integer", "minimum": 0},
}
"""Path placeholder -> JSON schema, for placeholders that are not strings."""
SHAPES = {
    "QuoteResponse": "`delta` or `market`, never both; `fallbackReason` gives the reason against `delta`.",
    "FallbackReason": "Reason why Delta could not price.",
    "DeltaBlock": "A price to build an order from: `route` goes to the build as it is. `spender` is to be "
    "approved for the source token.",
    "Route": "Input and output on the source and on the destination chain, after gas and fee.",
    "Leg": "Input and output on one chain.",
    "AmountEntry": 'Raw units, and US dollars as a decimal string; "0" without a price.',
    "Fees": "Costs that the amounts of the route include.",
    "Partner": "`feePercent`: fee of the partner, registered and requested fee together.",
    "PriceRoute": "A Market route. It is sealed by `hmac` for half a minute, to the digit.",
    "RoutePart": "One path, and its share of the amount in percent.",
    "Swap": "One hop of a path.",
    "SwapExchange": "Share of one market maker in a hop.",
    "OtherRoute": "The best route of one market maker alone.",
    "TransactionBody": "`priceRoute` as it was quoted, or `orders`. Amounts are strings of raw units.",
    "ConsentBody": "The user's consent to a swap; it moves no tokens.",
    "SwapOrder": "An order as it was signed and posted, and the amount that may be filled: "
    "`takerTokenFillAmount`, raw units of `takerAsset`; the whole order if absent.",
    "BuildBody": "`route` as it was quoted. Amounts are strings of raw units.",
    "SubmitBody": "`order` is `toSign.value` of the build, as it came.",
    "OrderRecord": "A Delta order and its state. Amounts are strings of raw units; the amount that "
    "is not fixed is expected, bounded (`minAmount`, `maxAmount`) and, after a settlement, executed.",
    "OrderInput": "Given tokens: `amount` of a sale; else the expected, executed and greatest amount.",
    "OrderOutput": "Received tokens: `amount` of a purchase; else the expected, executed and least amount.",
    "OrderTransaction": "One settlement; `filledPercent` is its own share of the order.",
    "Refund": "Tokens returned from an order across chains.",
    "OrderPage": "`total` counts all matching orders.",
    "CancelBody": "All of the orders are cancelled, or none.",
    "CancelResponse": "The orders that are being cancelled, or are cancelled already.",
    "CancellationBuildResponse": "`toSign` as wallets take it; a contract may sign `hash` by a call.",
    "BuildResponse": "`toSign` as wallets take it; `orderHash` finds the order before it has an id.",
    "ToSign": "EIP-712 typed data: `value` is submitted unchanged.",
    "TypedDomain": "The signing domain of the chain's Delta contract.",
    "TypedMember": "One member of a struct type.",
    "TransactionEnvelope": "A transaction to be sent by `from`; `to` is to be approved for the source token.",
    "ContractParams": "The call of the Router in parts, with `onlyParams=true`.",
    "UserToken": "A token with the user's balance and its allowance for the Router, in raw units.",
    "PartnerFee": "`partnerFee` in percent.",
    "MakerScore": "Record of a maker's last firm quotes: the share of clean quotes in percent, the kinds "
    "of faults, and the end of its rest (Unix milliseconds).",
    "PairScore": "Record of a pair with faults.",
    "PriceHistoryAnswer": "Prices of one `base` token in `quote` tokens. A point is the start of its step "
    "(Unix seconds), and the step's first, highest, lowest and last price as decimal texts.",
    "ErrorRow": "`match` is the fixed beginning of the error text.",
    "Auction": "A closed round; amounts are strings of raw units, times ISO 8601.",
    "ListedRound": "A closed round. `auctionId` is null, and times are cut to the second, for callers who "
    "may not see whose orders they were.",
    "ListedOrder": "One order of a closed round, the best bid first. `orderHash`, `orderId` and `txHash` are "
    "null, texts and `crossedWith` empty, for callers who may not see whose order it is. `marginAmount` is "
    "the winner's surplus less that of the next bid, in raw units.",
    "AuctionedOrder": "One order of a closed round: its amounts, and the bids on it, the best first.",
    "AgentScore": "Record of an agent since the venue's start; `restsUntil` is Unix milliseconds.",
    "AuctionSettlement": "Outcome of a bid: `state` is settling, settled, reverted or notSent.",
    "AuctionBid": "Bid of an agent on an order: `promisedAmount` is the least that the user gets (SELL) or "
    "the most that it spends (BUY), `simulatedAmount` the simulated amount, `netAmount` the promise less gas "
    "(SELL) or plus gas (BUY), "
    "`surplusAmount` its improvement over the limit; `partAmount` the settled part of the order, "
    "null for the whole order.",
    "OrderRound": "A closed round as one order saw it.",
    "Explanation": "Reasons why an order is not filled, the weightiest first.",
    "ExplainedReason": "`code` for programs, `text` for people.",
    "WebhookList": "The webhooks that a key manages.",
    "WebhookEntry": "A webhook's filter and state: `waiting` and `dead` are deliveries that "
    "it has not accepted, `failures` failed tries in a row, `reason` that of the last failure.",
    "DeliveryPage": "Deliveries that were not accepted, in the order of their events.",
    "DeliveryEntry": "`token` is sent as `webhook-id`, `body` as it is; `reason`: that of the last failure.",
    "DeliveryState": "WAITING is tried again by itself; DEAD waits for a replay.",
    "ReplayBody": "Dead deliveries to deliver anew.",
    "ReplayResponse": "Deliveries that are made anew; repeat the request if there are `more`.",
    "OpenMessage": "The stream has begun, and sends all events after `token`.",
    "BeatMessage": "No recent event: the stream has sent all events up to `token`.",
    "OrderEventMessage": "An order has changed: its new state. `version` counts its changes from 1. A "
    "member that this kind of order lacks is absent; `type`, `side` and amounts are as in its record.",
    "TradeMessage": "A trade. Amounts are strings of raw units; `srcUSD` and `destUSD` are values when the "
    "venue first saw it, null if unknown. `makers` are those that filled a part; `surplusBps` is the "
    "improvement over the quoted amount in basis points; `fillMs` is the time from submission to the block, "
    "of an order that is due at once.",
    "TradeStatistics": "The trades of the 24 hours from `from` to `to`; volumes in US dollars. Medians are "
    "null without a number.",
    "MakerVolume": "Fills of a maker within the trades; `share` is its percent of the volume of all makers.",
    "AgentVolume": "Delta trades of an agent; `share` is its percent of the volume of all agents.",
    "HourVolume": "Trades of the hour that begins at `from`.",
    "OtcOrderBody": "The order that the maker signed, and its signature. Amounts are strings of raw units.",
    "StoredOrder": "An OTC order and its state at the venue. `fillableBalance` is unfilled, "
    "`swappableBalance` can be filled now, `reservedBalance` is its share of the maker's funds, "
    "`makerBalance` the least of the maker's balance, its allowance and the unfilled amount.",
    "PostedOrder": "The stored order, with a copy of itself under `order`.",
    "OtcListing": "`total` counts all matching orders; `asOf` reads later pages of the same listing.",
    "OtcError": "Every error of a path under /ft.",
    "TradingError": "Every error: `details`, `description` and `error` are the same text.",
}
"""Name of a struct in an answer or a body -> its description in the OpenAPI document."""
MESSAGES = {
    "quote": "The price as GET /v2/quote answers it: first, when its amounts have changed, and every 15 "
    "seconds without a change.",
    "error": "The venue cannot price the quote now. The stream goes on.",
    "open": "The stream has begun. A later request with this token goes on from here.",
    "order": "An order has changed.",
    "trade": "A trade was mined.",
    "beat": "The stream had nothing to send for 15 seconds: a message of a WebSocket, and a comment with an "
    "id among server-sent events.",
}
"""Name of a message of a stream -> its description in the AsyncAPI document."""
