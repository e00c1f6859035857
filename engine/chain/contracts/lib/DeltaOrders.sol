// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// The orders that owners sign for Delta, and their hashes as EIP-712 structs.
library DeltaOrders {
    /// How what an order buys goes to another chain, as Bridges reads it; all zero for an order of one chain. With a bridge,
    /// the order's amounts of the destination are raw units of outputToken there, and destToken is what enters the bridge.
    struct Bridge {
        bytes4 protocolSelector;
        uint256 destinationChainId;
        address outputToken;
        int8 scalingFactor;
        bytes protocolData;
    }

    /// kind 0, SELL: srcAmount for at least destAmount. kind 1, BUY: at most srcAmount for destAmount.
    struct Order {
        address owner;
        address beneficiary;
        address srcToken;
        address destToken;
        uint256 srcAmount;
        uint256 destAmount;
        uint256 expectedAmount;
        uint256 deadline;
        uint8 kind;
        uint256 nonce;
        uint256 partnerAndFee;
        bytes permit;
        bytes metadata;
        Bridge bridge;
    }

    struct TWAPOrder {
        address owner;
        address beneficiary;
        address srcToken;
        address destToken;
        uint256 nonce;
        uint256 partnerAndFee;
        uint64 deadline;
        uint64 interval;
        uint32 numSlices;
        uint256 destAmountPerSlice;
        uint256 totalSrcAmount;
        bytes permit;
        bytes metadata;
        Bridge bridge;
    }

    struct TWAPBuyOrder {
        address owner;
        address beneficiary;
        address srcToken;
        address destToken;
        uint256 nonce;
        uint256 partnerAndFee;
        uint64 deadline;
        uint64 interval;
        uint32 numSlices;
        uint256 totalDestAmount;
        uint256 maxSrcAmount;
        bytes permit;
        bytes metadata;
        Bridge bridge;
    }

    /// A sale whose source rests in a vault (ERC-4626) until it is settled. `useShares`: all `shares` are sold, whatever
    /// they are worth by then, and srcAmount says nothing: destAmount alone bounds the price. Else srcAmount is sold, for at
    /// most `shares`, at most 2^128 - 1; a part takes its share of them, rounded up.
    struct ProductiveOrder {
        address owner;
        address beneficiary;
        address srcToken;
        address destToken;
        uint256 srcAmount;
        uint256 destAmount;
        uint256 expectedAmount;
        uint256 deadline;
        uint256 nonce;
        uint256 partnerAndFee;
        bytes permit;
        bytes metadata;
        address strategy;
        uint256 shares;
        bool useShares;
        Bridge bridge;
    }

    /// An order that a contract of the owner's choice trades, as `data` tells that contract.
    struct ExternalOrder {
        address owner;
        address handler;
        address srcToken;
        address destToken;
        uint256 srcAmount;
        uint256 destAmount;
        uint256 expectedAmount;
        uint256 deadline;
        uint8 kind;
        uint256 nonce;
        uint256 partnerAndFee;
        bytes permit;
        bytes metadata;
        bytes data;
    }

    string private constant BRIDGE =
        "Bridge(bytes4 protocolSelector,uint256 destinationChainId,address outputToken,int8 scalingFactor,bytes protocolData)";
    bytes32 private constant BRIDGE_TYPE = keccak256(bytes(BRIDGE));
    bytes32 private constant ORDER_TYPE = keccak256(
        abi.encodePacked(
            "Order(address owner,address beneficiary,address srcToken,address destToken,uint256 srcAmount,uint256 destAmount,uint256 expectedAmount,uint256 deadline,uint8 kind,uint256 nonce,uint256 partnerAndFee,bytes permit,bytes metadata,Bridge bridge)",
            BRIDGE
        )
    );
    bytes32 private constant TWAP_TYPE = keccak256(
        abi.encodePacked(
            "TWAPOrder(address owner,address beneficiary,address srcToken,address destToken,uint256 nonce,uint256 partnerAndFee,uint64 deadline,uint64 interval,uint32 numSlices,uint256 destAmountPerSlice,uint256 totalSrcAmount,bytes permit,bytes metadata,Bridge bridge)",
            BRIDGE
        )
    );
    bytes32 private constant TWAP_BUY_TYPE = keccak256(
        abi.encodePacked(
            "TWAPBuyOrder(address owner,address beneficiary,address srcToken,address destToken,uint256 nonce,uint256 partnerAndFee,uint64 deadline,uint64 interval,uint32 numSlices,uint256 totalDestAmount,uint256 maxSrcAmount,bytes permit,bytes metadata,Bridge bridge)",
            BRIDGE
        )
    );

    bytes32 private constant PRODUCTIVE_TYPE = keccak256(
        abi.encodePacked(
            "ProductiveOrder(address owner,address beneficiary,address srcToken,address destToken,uint256 srcAmount,uint256 destAmount,uint256 expectedAmount,uint256 deadline,uint256 nonce,uint256 partnerAndFee,bytes permit,bytes metadata,address strategy,uint256 shares,bool useShares,Bridge bridge)",
            BRIDGE
        )
    );
    bytes32 private constant EXTERNAL_TYPE = keccak256(
        "ExternalOrder(address owner,address handler,address srcToken,address destToken,uint256 srcAmount,uint256 destAmount,uint256 expectedAmount,uint256 deadline,uint8 kind,uint256 nonce,uint256 partnerAndFee,bytes permit,bytes metadata,bytes data)"
    );
    bytes32 private constant CANCELLATIONS_TYPE = keccak256("OrderCancellations(string[] orderIds)");

    /// Whether all members are zero: most orders have no bridge.
    function isSameChain(Bridge calldata bridge) internal pure returns (bool isEmpty) {
        bytes calldata data = bridge.protocolData;
        assembly ("memory-safe") {
            let first := or(calldataload(bridge), calldataload(add(bridge, 32)))
            let second := or(calldataload(add(bridge, 64)), calldataload(add(bridge, 96)))
            isEmpty := iszero(or(or(first, second), data.length))
        }
    }

    function structHash(Order calldata order) internal pure returns (bytes32) {
        return structHash(order, ORDER_TYPE, bridgeHash(order.bridge));
    }

    function structHash(ExternalOrder calldata order) internal pure returns (bytes32) {
        return structHash(asOrder(order), EXTERNAL_TYPE, keccak256(order.data));
    }

    /// The members of an external order as those of an order, but for the last one. Its handler is where an order has the
    /// beneficiary.
    function asOrder(ExternalOrder calldata external_) internal pure returns (Order calldata order) {
        assembly ("memory-safe") {
            order := external_
        }
    }

    /// Of both kinds; `last` is the hash of the last member.
    function structHash(Order calldata order, bytes32 orderType, bytes32 last) private pure returns (bytes32) {
        return keccak256(
            bytes.concat(
                abi.encode(
                    orderType,
                    order.owner,
                    order.beneficiary,
                    order.srcToken,
                    order.destToken,
                    order.srcAmount,
                    order.destAmount,
                    order.expectedAmount
                ),
                abi.encode(
                    order.deadline,
                    order.kind,
                    order.nonce,
                    order.partnerAndFee,
                    keccak256(order.permit),
                    keccak256(order.metadata),
                    last
                )
            )
        );
    }

    function structHash(ProductiveOrder calldata order) internal pure returns (bytes32) {
        return keccak256(
            bytes.concat(
                abi.encode(
                    PRODUCTIVE_TYPE,
                    order.owner,
                    order.beneficiary,
                    order.srcToken,
                    order.destToken,
                    order.srcAmount,
                    order.destAmount,
                    order.expectedAmount
                ),
                abi.encode(
                    order.deadline,
                    order.nonce,
                    order.partnerAndFee,
                    keccak256(order.permit),
                    keccak256(order.metadata),
                    order.strategy,
                    order.shares,
                    order.useShares,
                    bridgeHash(order.bridge)
                )
            )
        );
    }

    /// Both kinds of schedule have members of the same types at the same places: a purchase says its two amounts where a
    /// sale says destAmountPerSlice and totalSrcAmount.
    function asSale(TWAPBuyOrder calldata purchase) internal pure returns (TWAPOrder calldata order) {
        assembly ("memory-safe") {
            order := purchase
        }
    }

    /// Of a sale, or of a purchase that was read as one.
    function structHash(TWAPOrder calldata order, bool isPurchase) internal pure returns (bytes32) {
        return keccak256(
            bytes.concat(
                abi.encode(
                    isPurchase ? TWAP_BUY_TYPE : TWAP_TYPE,
                    order.owner,
                    order.beneficiary,
                    order.srcToken,
                    order.destToken,
                    order.nonce,
                    order.partnerAndFee,
                    order.deadline
                ),
                abi.encode(
                    order.interval,
                    order.numSlices,
                    order.destAmountPerSlice,
                    order.totalSrcAmount,
                    keccak256(order.permit),
                    keccak256(order.metadata),
                    bridgeHash(order.bridge)
                )
            )
        );
    }

    function bridgeHash(Bridge calldata bridge) private pure returns (bytes32) {
        return keccak256(
            abi.encode(
                BRIDGE_TYPE,
                bridge.protocolSelector,
                bridge.destinationChainId,
                bridge.outputToken,
                bridge.scalingFactor,
                keccak256(bridge.protocolData)
            )
        );
    }

    /// Of OrderCancellations, which an owner signs to cancel orders by their ids.
    function cancellationsHash(string[] calldata orderIds) internal pure returns (bytes32) {
        bytes32[] memory hashes = new bytes32[](orderIds.length);
        for (uint256 i = 0; i < hashes.length; i++) hashes[i] = keccak256(bytes(orderIds[i]));
        return keccak256(abi.encode(CANCELLATIONS_TYPE, keccak256(abi.encodePacked(hashes))));
    }

    function isAmong(bytes32 orderHash, string[] calldata orderIds) internal pure returns (bool) {
        bytes32 id = keccak256(bytes(idOf(orderHash)));
        for (uint256 i = 0; i < orderIds.length; i++) if (keccak256(bytes(orderIds[i])) == id) return true;
        return false;
    }

    /// The id of an order: the UUID of version 4 whose random bits are the first ones of the order's hash, in lower case.
    function idOf(bytes32 orderHash) private pure returns (string memory) {
        uint256 bits = uint256(orderHash) >> 128;
        bits = bits & ~(uint256(0xF) << 76) | uint256(4) << 76;
        bits = bits & ~(uint256(0x3) << 62) | uint256(2) << 62;
        bytes memory text = new bytes(36);
        uint256 shift = 128;
        for (uint256 i = 0; i < 36; i++) {
            if (i == 8 || i == 13 || i == 18 || i == 23) {
                text[i] = "-";
                continue;
            }
            shift -= 4;
            text[i] = bytes16("0123456789abcdef")[bits >> shift & 0xF];
        }
        return string(text);
    }
}
