// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IRfq} from "./IRfq.sol";
import {Eip712} from "./lib/Eip712.sol";
import {NonReentrant} from "./lib/NonReentrant.sol";
import {Permits} from "./lib/Permits.sol";
import {Signatures} from "./lib/Signatures.sol";
import {Tokens} from "./lib/Tokens.sol";

/// Settles orders that a maker signed, whole or in parts, between the maker and whoever fills them.
///
/// Nobody owns it and nothing in it can be changed; it holds no tokens. What is left of an order is kept by maker
/// and hash: 0 never seen, 1 filled or cancelled, else the remaining makerAmount + 1.
///
/// Who is trusted with what: nobody. A maker's signature binds it to its order's terms and lasts until the order
/// expires, is filled, or is cancelled by the maker itself; a filler gives what the order asks, or nothing happens.
///
/// Fills revert in words that clients match: "Order expired", "Access denied" (another taker's), "Order already filled or
/// expired" (cancelled too), "Invalid Signature", "Invalid Taker amount", "Maker token fill amount cannot be 0",
/// "Invalid amount" (more than is left), "Permit failed", "TRANSFER_FROM_FAILED", "Token takes a fee on transfers".
/// A fill within another one reverts with Reentered.
///
/// A part of `takerFill` gets floor(takerFill * makerAmount / takerAmount). Tokens must arrive as they are sent, but for
/// two units where balances are shares of something and round: one that takes a fee on transfers is refused.
contract Rfq is IRfq, Eip712, NonReentrant {
    event OrderFilled(
        bytes32 indexed orderHash,
        address indexed maker,
        address makerAsset,
        uint256 makerAmount,
        address indexed taker,
        address takerAsset,
        uint256 takerAmount
    );
    event OrderCancelled(bytes32 indexed orderHash, address indexed maker);
    event OrdersCancelledUntil(address indexed maker, uint128 expiry);

    /// The type hash of an order, as EIP-712 has it.
    bytes32 public constant RFQ_ORDER_TYPEHASH = keccak256(
        "Order(uint256 nonceAndMeta,uint128 expiry,address makerAsset,address takerAsset,address maker,address taker,uint256 makerAmount,uint256 takerAmount)"
    );

    uint256 private constant CLOSED = 1;
    /// Raw units that may be missing, or too many, where a token rounds.
    uint256 private constant ROUNDING = 2;

    /// The state of an order: 0 never seen, 1 filled or cancelled, else the remaining makerAmount + 1.
    mapping(address maker => mapping(bytes32 orderHash => uint256)) public remaining;
    /// A maker's orders that expire until then, in Unix seconds, are cancelled; above 0, those that never expire as well.
    mapping(address maker => uint128) public cancelledUntil;

    constructor(string memory name) Eip712(name, "1") {}

    /// Fill a whole order of which nothing was filled yet; the caller gives and receives. Reverts as all fills do.
    /// @param order as its maker signed it.
    /// @param signature of the maker: 65 or 64 bytes, or whatever a contract accepts (EIP-1271).
    function fillOrder(Order calldata order, bytes calldata signature) external nonReentrant {
        fillWhole(order, signature, msg.sender);
    }

    /// As fillOrder, with a target. Reverts as all fills do.
    /// @param order as its maker signed it.
    /// @param signature of the maker, as for fillOrder.
    /// @param target receives the maker's asset.
    function fillOrderWithTarget(Order calldata order, bytes calldata signature, address target)
        external
        nonReentrant
    {
        fillWhole(order, signature, target);
    }

    /// Fill a part; the caller gives and receives. Reverts as all fills do.
    /// @param order as its maker signed it.
    /// @param signature of the maker, as for fillOrder.
    /// @param takerTokenFillAmount raw units of the taker's asset.
    /// @return raw units that the maker gave.
    function partialFillOrder(Order calldata order, bytes calldata signature, uint256 takerTokenFillAmount)
        external
        nonReentrant
        returns (uint256)
    {
        return fillPart(order, signature, takerTokenFillAmount, msg.sender);
    }

    /// As partialFillOrder, with a target. Reverts as all fills do.
    /// @param order as its maker signed it.
    /// @param signature of the maker, as for fillOrder.
    /// @param takerTokenFillAmount raw units of the taker's asset.
    /// @param target receives the maker's asset.
    /// @return raw units that the maker gave.
    function partialFillOrderWithTarget(
        Order calldata order,
        bytes calldata signature,
        uint256 takerTokenFillAmount,
        address target
    ) external nonReentrant returns (uint256) {
        return fillPart(order, signature, takerTokenFillAmount, target);
    }

    /// As partialFillOrderWithTarget, with permits of the two sides' tokens: 224 bytes EIP-2612, 256 DAI-style, others
    /// are ignored. Reverts as all fills do.
    /// @param order as its maker signed it.
    /// @param signature of the maker, as for fillOrder.
    /// @param takerTokenFillAmount raw units of the taker's asset.
    /// @param target receives the maker's asset.
    /// @param permitTakerAsset of the caller, for this contract.
    /// @param permitMakerAsset of the maker, for this contract.
    /// @return raw units that the maker gave.
    function partialFillOrderWithTargetPermit(
        Order calldata order,
        bytes calldata signature,
        uint256 takerTokenFillAmount,
        address target,
        bytes calldata permitTakerAsset,
        bytes calldata permitMakerAsset
    ) external nonReentrant returns (uint256) {
        return fillPartWithPermits(
            order, signature, takerTokenFillAmount, target, permitTakerAsset, permitMakerAsset
        );
    }

    /// Fill each order's `takerTokenFillAmount`, or nothing at all. Reverts as all fills do.
    /// @param orders each with its signature, amount and permits.
    /// @param target receives the makers' assets.
    function batchFillOrderWithTarget(OrderInfo[] calldata orders, address target) external nonReentrant {
        for (uint256 i = 0; i < orders.length; i++) {
            OrderInfo calldata info = orders[i];
            fillPartWithPermits(
                info.order,
                info.signature,
                info.takerTokenFillAmount,
                target,
                info.permitTakerAsset,
                info.permitMakerAsset
            );
        }
    }

    /// @inheritdoc IRfq
    function tryBatchFillOrderTakerAmount(OrderInfo[] calldata orders, uint256 takerFillAmount, address target)
        external
        nonReentrant
    {
        uint256 left = takerFillAmount;
        for (uint256 i = 0; i < orders.length && left > 0; i++) {
            try this.tryFill(orders[i], msg.sender, target, left, type(uint256).max) returns (
                uint256 takerFill, uint256
            ) {
                left -= takerFill;
            } catch {}
        }
        require(left == 0, "Couldn't swap the requested fill amount");
    }

    /// @inheritdoc IRfq
    function tryBatchFillOrderMakerAmount(OrderInfo[] calldata orders, uint256 makerFillAmount, address target)
        external
        nonReentrant
    {
        uint256 left = makerFillAmount;
        for (uint256 i = 0; i < orders.length && left > 0; i++) {
            try this.tryFill(orders[i], msg.sender, target, type(uint256).max, left) returns (
                uint256, uint256 makerFill
            ) {
                left -= makerFill;
            } catch {}
        }
        require(left == 0, "Couldn't swap the requested fill amount");
    }

    /// One order of a batch: its own call, so that all of it is undone when it fails. By this contract alone; reverts
    /// with "Access denied" for others, and as all fills do. One of the two bounds binds, the other is the largest
    /// number.
    /// @param info the order, with its signature, amount and permits.
    /// @param taker the account that fills the batch, and gives.
    /// @param target receives the maker's asset.
    /// @param takerMost raw units of the taker's asset that may be given.
    /// @param makerMost raw units of the maker's asset that may be received.
    /// @return takerFill raw units of the taker's asset that were given.
    /// @return makerFill raw units of the maker's asset that were received.
    function tryFill(OrderInfo calldata info, address taker, address target, uint256 takerMost, uint256 makerMost)
        external
        returns (uint256 takerFill, uint256 makerFill)
    {
        require(msg.sender == address(this), "Access denied");
        Order calldata order = info.order;
        (bytes32 orderHash, uint256 left) = open(order, info.signature, taker);
        takerFill = info.takerTokenFillAmount;
        require(takerFill > 0 && takerFill <= order.takerAmount, "Invalid Taker amount");
        if (makerMost == type(uint256).max) {
            uint256 takerLeft = left == order.makerAmount
                ? order.takerAmount
                : left * order.takerAmount / order.makerAmount;
            takerFill = least(takerFill, least(takerMost, takerLeft));
            makerFill = takerFill * order.makerAmount / order.takerAmount;
        } else {
            makerFill = least(takerFill * order.makerAmount / order.takerAmount, least(makerMost, left));
            takerFill = (makerFill * order.takerAmount + order.makerAmount - 1) / order.makerAmount;
        }
        book(order.maker, orderHash, left, makerFill);
        showPermits(order, taker, takerFill, makerFill, info.permitTakerAsset, info.permitMakerAsset);
        exchange(order, orderHash, taker, target, takerFill, makerFill);
    }

    /// Cancel an order of the caller's. A hash of another maker's order does nothing to that order.
    /// @param orderHash as getOrderHash has it.
    function cancelOrder(bytes32 orderHash) external {
        cancel(orderHash);
    }

    /// Cancel many orders of the caller's.
    /// @param orderHashes as getOrderHash has them.
    function cancelOrders(bytes32[] calldata orderHashes) external {
        for (uint256 i = 0; i < orderHashes.length; i++) cancel(orderHashes[i]);
    }

    /// Cancel all orders of the caller's that expire until a time, and those that never expire. It cannot be taken back.
    /// Reverts with "Cancelled already" where `expiry` is not later than the time of an earlier call.
    /// @param expiry in Unix seconds, later than that of the caller's earlier calls; the largest ends the account's
    /// orders for good.
    function cancelOrdersUntil(uint128 expiry) external {
        require(expiry > cancelledUntil[msg.sender], "Cancelled already");
        cancelledUntil[msg.sender] = expiry;
        emit OrdersCancelledUntil(msg.sender, expiry);
    }

    /// `remaining` of many orders of one maker.
    /// @param maker the account that signed the orders.
    /// @param orderHashes as getOrderHash has them.
    /// @return amounts in the order of the hashes: 0 never seen, 1 filled or cancelled, else the remaining makerAmount
    /// plus 1.
    function getRemainingOrderBalance(address maker, bytes32[] calldata orderHashes)
        external
        view
        returns (uint256[] memory amounts)
    {
        amounts = new uint256[](orderHashes.length);
        for (uint256 i = 0; i < orderHashes.length; i++) amounts[i] = remaining[maker][orderHashes[i]];
    }

    /// The digest that the maker signs.
    /// @param order as its maker signed it.
    /// @return the EIP-712 digest of the order in this contract's domain.
    function getOrderHash(Order calldata order) public view returns (bytes32) {
        bytes32 orderType = RFQ_ORDER_TYPEHASH;
        bytes32 structHash;
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, orderType)
            calldatacopy(add(data, 32), order, 256)
            structHash := keccak256(data, 288)
        }
        return digestOf(structHash);
    }

    function fillWhole(Order calldata order, bytes calldata signature, address target) private {
        (bytes32 orderHash, uint256 left) = open(order, signature, msg.sender);
        require(left == order.makerAmount, "Order already filled or expired");
        require(order.takerAmount > 0, "Invalid Taker amount");
        book(order.maker, orderHash, left, order.makerAmount);
        exchange(order, orderHash, msg.sender, target, order.takerAmount, order.makerAmount);
    }

    function fillPart(Order calldata order, bytes calldata signature, uint256 takerFill, address target)
        private
        returns (uint256 makerFill)
    {
        bytes32 orderHash;
        (orderHash, makerFill) = bookPart(order, signature, takerFill);
        exchange(order, orderHash, msg.sender, target, takerFill, makerFill);
    }

    function fillPartWithPermits(
        Order calldata order,
        bytes calldata signature,
        uint256 takerFill,
        address target,
        bytes calldata permitTakerAsset,
        bytes calldata permitMakerAsset
    ) private returns (uint256 makerFill) {
        bytes32 orderHash;
        (orderHash, makerFill) = bookPart(order, signature, takerFill);
        showPermits(order, msg.sender, takerFill, makerFill, permitTakerAsset, permitMakerAsset);
        exchange(order, orderHash, msg.sender, target, takerFill, makerFill);
    }

    function bookPart(Order calldata order, bytes calldata signature, uint256 takerFill)
        private
        returns (bytes32 orderHash, uint256 makerFill)
    {
        uint256 left;
        (orderHash, left) = open(order, signature, msg.sender);
        require(takerFill > 0 && takerFill <= order.takerAmount, "Invalid Taker amount");
        makerFill = takerFill * order.makerAmount / order.takerAmount;
        book(order.maker, orderHash, left, makerFill);
    }

    /// The order's hash and what is left of it. The signature is asked for as long as nothing was filled.
    function open(Order calldata order, bytes calldata signature, address taker)
        private
        view
        returns (bytes32 orderHash, uint256 left)
    {
        require(order.expiry == 0 || block.timestamp <= order.expiry, "Order expired");
        require(order.taker == address(0) || order.taker == taker, "Access denied");
        uint256 until = cancelledUntil[order.maker];
        require(until == 0 || order.expiry > until, "Order already filled or expired");
        orderHash = getOrderHash(order);
        uint256 kept = remaining[order.maker][orderHash];
        require(kept != CLOSED, "Order already filled or expired");
        if (kept == 0) {
            require(Signatures.isBy(order.maker, orderHash, signature), "Invalid Signature");
            return (orderHash, order.makerAmount);
        }
        return (orderHash, kept - 1);
    }

    /// Take a fill off what is left: before any token is called, which could cancel in between.
    function book(address maker, bytes32 orderHash, uint256 left, uint256 makerFill) private {
        require(makerFill > 0, "Maker token fill amount cannot be 0");
        require(makerFill <= left, "Invalid amount");
        remaining[maker][orderHash] = left - makerFill + 1;
    }

    function exchange(
        Order calldata order,
        bytes32 orderHash,
        address taker,
        address target,
        uint256 takerFill,
        uint256 makerFill
    ) private {
        move(order.takerAsset, taker, order.maker, takerFill);
        move(order.makerAsset, order.maker, target, makerFill);
        emit OrderFilled(
            orderHash, order.maker, order.makerAsset, makerFill, target, order.takerAsset, takerFill
        );
    }

    function move(address token, address from, address to, uint256 amount) private {
        uint256 before = Tokens.balance(token, to);
        require(Tokens.pull(token, from, to, amount), "TRANSFER_FROM_FAILED");
        uint256 arrived = Tokens.balance(token, to) - before;
        uint256 sent = from == to ? 0 : amount;
        uint256 apart = arrived > sent ? arrived - sent : sent - arrived;
        require(apart <= ROUNDING, "Token takes a fee on transfers");
    }

    function showPermits(
        Order calldata order,
        address taker,
        uint256 takerFill,
        uint256 makerFill,
        bytes calldata permitTakerAsset,
        bytes calldata permitMakerAsset
    ) private {
        bool shown = Permits.show(order.takerAsset, taker, takerFill, permitTakerAsset)
            && Permits.show(order.makerAsset, order.maker, makerFill, permitMakerAsset);
        require(shown, "Permit failed");
    }

    function cancel(bytes32 orderHash) private {
        if (remaining[msg.sender][orderHash] == CLOSED) return;
        remaining[msg.sender][orderHash] = CLOSED;
        emit OrderCancelled(orderHash, msg.sender);
    }

    function least(uint256 a, uint256 b) private pure returns (uint256) {
        return a < b ? a : b;
    }
}
