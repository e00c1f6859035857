// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IRfq} from "contracts/IRfq.sol";
import {Rfq} from "contracts/Rfq.sol";
import {Coin, Proof, Wallet} from "./Proof.sol";

/// Orders of makers: cancelled, unsigned, filled in parts. `way` is the function that fills, one of nine, of which the last
/// one is the contract's own.
contract RfqProofs is Proof {
    uint8 private constant WAYS = 9;

    Rfq private rfq;
    Coin private made;
    Coin private taken;
    address private agreeing;
    address private refusing;

    function setUp() public {
        rfq = Rfq(deployed("Rfq", abi.encode("Proof")));
        made = new Coin();
        taken = new Coin();
        agreeing = address(new Wallet(true));
        refusing = address(new Wallet(false));
    }

    /// One of the functions that fill fails at least, of orders that a wallet agrees to.
    /// @custom:bound 60 s
    function check_SomeFunctionFillsNothing() public {
        IRfq.Order memory order;
        order.maker = agreeing;
        (order.makerAmount, order.takerAmount) = (8, 4);
        stock(order, address(this));
        for (uint8 way = 0; way < WAYS - 1; way++) {
            order.nonceAndMeta = way;
            if (!filled(way, order, "", 2, address(this), address(0x44))) return;
        }
        assert(false);
    }

    /// No signature of a key fills an order.
    /// @custom:bound 60 s
    function check_NoKeySignsAnOrder(IRfq.Order memory order, uint256 amount, address caller) public {
        vm.assume(order.maker == address(0x44));
        stock(order, caller);
        assert(!filled(0, order, svm.createBytes(65, "signature"), amount, caller, caller));
    }

    /// Any account's cancellation ends an order.
    /// @custom:bound 60 s
    function check_AnybodyCancelsAnOrder(IRfq.Order memory order, uint256 amount, address caller) public {
        order.maker = agreeing;
        stock(order, caller);
        bytes32 orderHash = rfq.getOrderHash(order);
        vm.prank(caller);
        rfq.cancelOrder(orderHash);
        assert(!filled(0, order, "", amount, caller, caller));
    }

    /// A cancelled order is filled by no account, by no function.
    /// @custom:widths full; one order in a batch
    /// @custom:bound 60 s
    function check_CancelledOrderIsNotFilled(
        IRfq.Order memory order,
        uint8 way,
        uint256 amount,
        address caller,
        address target
    ) public {
        stock(order, caller);
        bytes32 orderHash = rfq.getOrderHash(order);
        vm.prank(order.maker);
        rfq.cancelOrder(orderHash);
        assert(!filled(way, order, svm.createBytes(65, "signature"), amount, caller, target));
    }

    /// An order that expires until its maker's `cancelOrdersUntil`, or never, is filled by no account, by no function.
    /// @custom:widths full; one order in a batch
    /// @custom:bound 60 s
    /// @custom:quick
    function check_OrderCancelledUntilIsNotFilled(
        IRfq.Order memory order,
        uint128 until,
        uint8 way,
        uint256 amount,
        address caller,
        address target
    ) public {
        vm.assume(order.expiry <= until);
        stock(order, caller);
        vm.prank(order.maker);
        rfq.cancelOrdersUntil(until);
        assert(!filled(way, order, svm.createBytes(65, "signature"), amount, caller, target));
    }

    /// Only a maker cancels its orders.
    /// @custom:widths full; one hash in a list
    /// @custom:bound 60 s
    /// @custom:quick
    function check_OnlyItsMakerCancelsAnOrder(
        address maker,
        bytes32 orderHash,
        address caller,
        uint8 way,
        bytes32 cancelled,
        uint128 until
    ) public {
        vm.assume(caller != maker);
        vm.prank(caller);
        if (way == 0) {
            rfq.cancelOrder(cancelled);
        } else if (way == 1) {
            bytes32[] memory hashes = new bytes32[](1);
            hashes[0] = cancelled;
            rfq.cancelOrders(hashes);
        } else {
            rfq.cancelOrdersUntil(until);
        }
        assert(rfq.remaining(maker, orderHash) == 0);
        assert(rfq.cancelledUntil(maker) == 0);
    }

    /// An order is not filled with a signature of another key.
    /// @custom:widths full, for any taker, without an expiry; signatures of 65 bytes; one order in a batch
    /// @custom:bound 120 s
    function check_FillNeedsTheMakersKey(
        IRfq.Order memory order,
        uint8 way,
        uint256 amount,
        address caller,
        address target
    ) public {
        vm.assume(order.maker != agreeing && order.maker != address(0));
        (order.expiry, order.taker) = (0, address(0));
        stock(order, caller);
        bytes memory signature = foreignSignature(order.maker, rfq.getOrderHash(order));
        assert(!filled(way, order, signature, amount, caller, target));
    }

    /// An order of a smart wallet that refuses the signature is not filled, whatever the signature is.
    /// @custom:widths full, for any taker, without an expiry; signatures of 65 bytes of another key, and of 66 bytes; one order in a batch
    /// @custom:bound 120 s
    function check_FillNeedsTheWalletsConsent(
        IRfq.Order memory order,
        uint8 way,
        uint256 amount,
        address caller,
        address target,
        bool isLong
    ) public {
        order.maker = refusing;
        (order.expiry, order.taker) = (0, address(0));
        stock(order, caller);
        bytes memory signature = isLong
            ? svm.createBytes(66, "signature")
            : foreignSignature(refusing, rfq.getOrderHash(order));
        assert(!filled(way, order, signature, amount, caller, target));
    }

    /// An order for one taker is filled by no other account.
    /// @custom:widths full; one order in a batch
    /// @custom:bound 60 s
    /// @custom:quick
    function check_OnlyTheNamedTakerFills(
        IRfq.Order memory order,
        uint8 way,
        uint256 amount,
        address caller,
        address target
    ) public {
        vm.assume(order.taker != address(0) && order.taker != caller);
        stock(order, caller);
        assert(!filled(way, order, svm.createBytes(65, "signature"), amount, caller, target));
    }

    /// No order is filled after its expiry.
    /// @custom:widths full; one order in a batch
    /// @custom:bound 60 s
    /// @custom:quick
    function check_ExpiredOrderIsNotFilled(
        IRfq.Order memory order,
        uint8 way,
        uint256 amount,
        address caller,
        address target,
        uint256 time
    ) public {
        vm.assume(order.expiry > 0 && order.expiry < time);
        vm.warp(time);
        stock(order, caller);
        assert(!filled(way, order, svm.createBytes(65, "signature"), amount, caller, target));
    }

    /// A filled order is not filled again.
    /// @custom:widths full; one order in a batch
    /// @custom:bound 120 s
    function check_FilledOrderIsNotFilledAgain(
        IRfq.Order memory order,
        uint8 way,
        uint256 amount,
        address caller
    ) public {
        order.maker = agreeing;
        stock(order, caller);
        vm.prank(caller);
        rfq.fillOrder(order, "");
        assert(!filled(way, order, "", amount, caller, caller));
    }

    /// Two parts of an order give no more than the order.
    /// @custom:widths full
    /// @custom:bound 120 s
    function check_PartsGiveNoMoreThanTheOrder(
        IRfq.Order memory order,
        uint256 first,
        uint256 second,
        address caller
    ) public {
        order.maker = agreeing;
        stock(order, caller);
        vm.assume(caller != agreeing);
        vm.prank(caller);
        uint256 gave = rfq.partialFillOrder(order, "", first);
        vm.prank(caller);
        gave += rfq.partialFillOrder(order, "", second);
        assert(gave <= order.makerAmount);
        assert(made.balanceOf(agreeing) >= type(uint256).max - order.makerAmount);
    }

    /// Gives maker and taker the most of their assets, so that no fill fails for want of them.
    function stock(IRfq.Order memory order, address caller) private {
        order.makerAsset = address(made);
        order.takerAsset = address(taken);
        made.mint(order.maker, type(uint256).max);
        taken.mint(caller, type(uint256).max);
    }

    /// Whether a call fills some of the order. A batch of nothing is no fill.
    function filled(
        uint8 way,
        IRfq.Order memory order,
        bytes memory signature,
        uint256 amount,
        address caller,
        address target
    ) private returns (bool done) {
        vm.assume(way < WAYS && amount > 0 && caller != address(rfq));
        bytes memory data = calldataOf(way, order, signature, amount, caller, target);
        vm.prank(caller);
        (done,) = address(rfq).call(data);
    }

    function calldataOf(
        uint8 way,
        IRfq.Order memory order,
        bytes memory signature,
        uint256 amount,
        address caller,
        address target
    ) private pure returns (bytes memory) {
        if (way == 0) return abi.encodeCall(Rfq.fillOrder, (order, signature));
        if (way == 1) return abi.encodeCall(Rfq.fillOrderWithTarget, (order, signature, target));
        if (way == 2) return abi.encodeCall(Rfq.partialFillOrder, (order, signature, amount));
        if (way == 3) return abi.encodeCall(Rfq.partialFillOrderWithTarget, (order, signature, amount, target));
        if (way == 4) {
            return
                abi.encodeCall(
                    Rfq.partialFillOrderWithTargetPermit, (order, signature, amount, target, "", "")
                );
        }
        IRfq.OrderInfo[] memory infos = new IRfq.OrderInfo[](1);
        infos[0] = IRfq.OrderInfo(order, signature, amount, "", "");
        if (way == 5) return abi.encodeCall(Rfq.batchFillOrderWithTarget, (infos, target));
        if (way == 6) return abi.encodeCall(Rfq.tryBatchFillOrderTakerAmount, (infos, amount, target));
        if (way == 7) return abi.encodeCall(Rfq.tryBatchFillOrderMakerAmount, (infos, amount, target));
        return abi.encodeCall(Rfq.tryFill, (infos[0], caller, target, amount, amount));
    }
}
