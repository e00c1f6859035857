// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {DeltaOrders} from "./lib/DeltaOrders.sol";
import {Math} from "./lib/Math.sol";
import {Settling} from "./lib/Settling.sol";

/// Settles slices of scheduled orders for Delta, which runs this code as its own.
///
/// Who is trusted with what: nobody, where this code is called itself: it is paused, has no owner and no relayer, and no
/// user allows it anything. As Delta's code it checks the signed terms, and trusts relayers, agents and makers as Delta
/// does.
contract TwapSettler is Settling {
    using DeltaOrders for *;

    constructor(string memory name, string memory version, Places memory places) Settling(name, version, places) {}

    /// As Delta says it; reverts as Delta's function.
    /// @param order as its owner signed it.
    /// @param signature of the owner; empty where the owner has pre-signed the order.
    /// @param execution how the slice is traded, as the winning bid says.
    /// @return spent raw units of the source that the owner gave, fees and shares included.
    /// @return received raw units of the destination that the beneficiary got.
    /// @return gasUsed units of gas between the settlement's first line and its last.
    function settleTwap(
        DeltaOrders.TWAPOrder calldata order,
        bytes calldata signature,
        Execution calldata execution
    ) external onlyRelayer nonReentrant returns (uint256 spent, uint256 received, uint256 gasUsed) {
        gasUsed = gasleft();
        (spent, received) = settlePart(partOf(order, false), order.permit, signature, execution);
        gasUsed -= gasleft();
    }

    /// As Delta says it; reverts as Delta's function.
    /// @param order as its owner signed it.
    /// @param signature of the owner; empty where the owner has pre-signed the order.
    /// @param execution how the slice is traded, as the winning bid says.
    /// @return spent raw units of the source that the owner gave, fees and shares included.
    /// @return received raw units of the destination that the beneficiary got.
    /// @return gasUsed units of gas between the settlement's first line and its last.
    function settleTwapBuy(
        DeltaOrders.TWAPBuyOrder calldata order,
        bytes calldata signature,
        Execution calldata execution
    ) external onlyRelayer nonReentrant returns (uint256 spent, uint256 received, uint256 gasUsed) {
        gasUsed = gasleft();
        (spent, received) = settlePart(partOf(order.asSale(), true), order.permit, signature, execution);
        gasUsed -= gasleft();
    }

    /// Counts the next slice as settled; the last one is the remainder. A purchase, read as a sale, has the two amounts
    /// totalDestAmount and maxSrcAmount, of which each slice may spend its part.
    function partOf(DeltaOrders.TWAPOrder calldata order, bool isPurchase) private returns (Part memory part) {
        bytes32 orderHash = digestOf(order.structHash(isPurchase));
        uint256 done = nextSlice(order, orderHash);
        bool isLast = done == order.numSlices;
        uint256 whole = isPurchase ? order.destAmountPerSlice : order.totalSrcAmount;
        uint256 slice = whole / order.numSlices;
        if (slice == 0) revert InvalidSlices();
        uint256 amount = isLast ? whole - slice * (done - 1) : slice;
        uint256 destAmount = amount;
        if (!isPurchase) {
            destAmount =
                isLast ? Math.ceilDiv(order.destAmountPerSlice * amount, slice) : order.destAmountPerSlice;
        }
        setParties(part, orderHash, order.owner, order.beneficiary, order.srcToken, order.destToken);
        part.srcAmount = isPurchase ? order.totalSrcAmount * amount / whole : amount;
        part.destAmount = destAmount;
        part.srcPermitted = order.totalSrcAmount;
        part.deadline = order.deadline;
        part.nonce = order.nonce;
        part.partnerAndFee = order.partnerAndFee;
        part.filled = done;
        part.isPurchase = isPurchase;
        part.isClosed = isLast;
        part.isWhole = order.numSlices == 1;
        if (!order.bridge.isSameChain()) addBridge(part, order.bridge);
    }

    /// Counts a slice, if it is due. Returns how many are done with it.
    function nextSlice(DeltaOrders.TWAPOrder calldata order, bytes32 orderHash) private returns (uint256 done) {
        uint256 before = progressOf(order.owner, order.nonce, orderHash);
        done = uint256(uint64(before)) + 1;
        if (order.numSlices == 0) revert InvalidSlices();
        uint256 notBefore = done == 1 ? 0 : (before >> 64) + order.interval;
        if (block.timestamp < notBefore) revert TooEarly(notBefore);
        bool isLast = done == order.numSlices;
        advance(order.owner, order.nonce, orderHash, before, block.timestamp << 64 | done, isLast);
    }
}
