// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {FeeVault} from "./FeeVault.sol";
import {IRfq} from "./IRfq.sol";
import {RfqExecutor} from "./RfqExecutor.sol";
import {Guardrails} from "./lib/Guardrails.sol";
import {NonReentrant} from "./lib/NonReentrant.sol";
import {Owned} from "./lib/Owned.sol";
import {Permits} from "./lib/Permits.sol";
import {Proceeds} from "./lib/Proceeds.sol";
import {ProtocolFees} from "./lib/ProtocolFees.sol";
import {IWETH, Tokens} from "./lib/Tokens.sol";

/// Market swaps of whoever calls it, over one or more hops of RFQ fills. A hop tries its orders in turn.
///
/// Who is trusted with what: the caller's bounds bind, and what is taken is the caller's alone. The owner pauses, caps,
/// and names a pauser and the receiver of the protocol's fees; it moves nobody's tokens.
///
/// Swaps revert with Paused, CapExceeded, InvalidFee, NoOrders, MixedPair, NotTheUsers, StepFailed, or in words:
/// "DEADLINE_PASSED", "SAME_TOKEN", "WRONG_VALUE", "TRANSFER_FROM_FAILED", "BOTH_AMOUNTS", "INSUFFICIENT_OUTPUT",
/// "TRANSFER_FAILED", "NATIVE_TRANSFER_FAILED"; purchases with AboveMaximum too.
///
/// The user address inside a firm quote must be the caller. Native tokens come with the call and are sent unwrapped;
/// fees stay wrapped.
contract Router is Guardrails, NonReentrant, ProtocolFees {
    event Swapped(
        address indexed sender,
        address indexed receiver,
        address srcToken,
        address destToken,
        uint256 spent,
        uint256 received,
        uint256 fee,
        uint256 share
    );

    /// Orders of one pair. `takerAmount` is what it sells of the token it gives, `makerAmount` what it buys; at most
    /// one of them is above 0. Both 0 sells all that is there. Paths stand one after the other: a hop that says how
    /// much leaves the rest to the hops after it.
    struct Hop {
        uint256 takerAmount;
        uint256 makerAmount;
        IRfq.OrderInfo[] orders;
    }

    /// `expectedAmount` is what was quoted of the side that is not fixed, after fees; 0 for none. `partnerAndFee` as
    /// in Proceeds. `receiver` 0 is the caller.
    struct Swap {
        address srcToken;
        address destToken;
        uint256 srcAmount;
        uint256 destAmount;
        uint256 expectedAmount;
        address receiver;
        uint256 deadline;
        uint256 partnerAndFee;
        bytes permit;
        Hop[] hops;
    }

    /// The taker of firm quotes.
    RfqExecutor public immutable executor;
    /// The contract that keeps fees and shares of surplus.
    FeeVault public immutable feeVault;
    /// The wrapped native token.
    IWETH public immutable weth;
    /// The Permit2 contract.
    address public immutable permit2;

    constructor(
        RfqExecutor executor_,
        FeeVault feeVault_,
        IWETH weth_,
        address permit2_,
        address protocol_,
        address owner_
    ) Owned(owner_) {
        executor = executor_;
        feeVault = feeVault_;
        weth = weth_;
        permit2 = permit2_;
        changeProtocol(protocol_);
    }

    /// Only what the wrapped token gives back when it is unwrapped; reverts with "NOT_WETH" for other senders.
    receive() external payable {
        require(msg.sender == address(weth), "NOT_WETH");
    }

    /// Name the receiver of the protocol's share of surplus, and of fees without a partner, from now on. By the owner;
    /// reverts with NotOwner.
    /// @param protocol_ the account that gets them.
    function setProtocol(address protocol_) external onlyOwner {
        changeProtocol(protocol_);
    }

    /// Sell srcAmount for at least destAmount. Reverts as all swaps do, or with Reentered.
    /// @param swap what is given, what is wanted at least, and the hops.
    /// @return received raw units of the destination that the receiver got.
    function swapExactIn(Swap calldata swap) external payable nonReentrant returns (uint256 received) {
        (address src, address dest) = begin(swap);
        uint256 before = Tokens.balance(dest, address(this));
        trade(swap, src, dest, msg.sender);
        uint256 gross = Tokens.balance(dest, address(this)) - before;
        Proceeds.Cut memory cut =
            Proceeds.ofSale(gross, swap.expectedAmount, swap.destAmount, swap.partnerAndFee);
        received = gross - cut.fee - 2 * cut.share;
        checkOutput(swap, received);
        received = finish(swap, dest, cut, swap.srcAmount, received);
    }

    /// Buy destAmount for at most srcAmount. Reverts as all swaps do, with AboveMaximum, or with Reentered.
    /// @param swap what is wanted, what may be given at most, and the hops.
    /// @return spent raw units of the source, fees and shares included.
    function swapExactOut(Swap calldata swap) external payable nonReentrant returns (uint256 spent) {
        (address src, address dest) = begin(swap);
        uint256 destBefore = Tokens.balance(dest, address(this));
        uint256 srcBefore = Tokens.balance(src, address(this));
        trade(swap, src, dest, address(this));
        uint256 received = Tokens.balance(dest, address(this)) - destBefore;
        checkOutput(swap, received);
        uint256 unspent = Tokens.balance(src, address(this)) - srcBefore;
        Proceeds.Cut memory cut = Proceeds.ofPurchase(
            swap.srcAmount - unspent, swap.expectedAmount, swap.srcAmount, swap.partnerAndFee
        );
        uint256 rest = unspent - cut.fee - 2 * cut.share;
        spent = swap.srcAmount - rest;
        finish(swap, src, cut, spent, received);
        if (rest > 0) pay(swap.srcToken, msg.sender, rest);
    }

    function begin(Swap calldata swap) private view returns (address src, address dest) {
        require(block.timestamp <= swap.deadline, "DEADLINE_PASSED");
        src = wrapped(swap.srcToken);
        dest = wrapped(swap.destToken);
        require(src != dest, "SAME_TOKEN");
        checkCall(src, swap.srcAmount);
    }

    function takeIn(Swap calldata swap, address src, address to) private {
        if (swap.srcToken == Tokens.NATIVE) {
            require(msg.value == swap.srcAmount, "WRONG_VALUE");
            weth.deposit{value: msg.value}();
            require(Tokens.send(src, to, msg.value), "TRANSFER_FAILED");
            return;
        }
        require(msg.value == 0, "WRONG_VALUE");
        require(
            Permits.take(
                permit2,
                src,
                msg.sender,
                to,
                swap.srcAmount,
                swap.srcAmount,
                swap.deadline,
                swap.permit
            ),
            "TRANSFER_FROM_FAILED"
        );
    }

    /// Hop by hop. What hops that say how much leave of the token they give goes to the caller, of the source to
    /// `srcRest`.
    function trade(Swap calldata swap, address src, address dest, address srcRest) private {
        for (uint256 i = 0; i < swap.hops.length; i++) {
            Hop calldata hop = swap.hops[i];
            if (hop.orders.length == 0) revert RfqExecutor.NoOrders();
            require(hop.takerAmount == 0 || hop.makerAmount == 0, "BOTH_AMOUNTS");
            sweep(hop.orders[0].order.takerAsset);
        }
        takeIn(swap, src, address(executor));
        for (uint256 i = 0; i < swap.hops.length; i++) {
            Hop calldata hop = swap.hops[i];
            address receiver = hop.orders[0].order.makerAsset == dest ? address(this) : address(executor);
            bytes memory data = abi.encode(hop.orders, hop.takerAmount, hop.makerAmount, receiver);
            executor.fill(msg.sender, i, data);
        }
        for (uint256 i = 0; i < swap.hops.length; i++) {
            Hop calldata hop = swap.hops[i];
            if (hop.takerAmount > 0 || hop.makerAmount > 0) {
                address given = hop.orders[0].order.takerAsset;
                executor.collect(given, given == src ? srcRest : msg.sender);
            }
        }
    }

    /// What somebody left with the executor is the caller's, and no part of the swap: a unit more than the orders
    /// take would make it fail.
    function sweep(address token) private {
        if (Tokens.balance(token, address(executor)) > 0) executor.collect(token, msg.sender);
    }

    function checkOutput(Swap calldata swap, uint256 received) private pure {
        require(received > 0 && received >= swap.destAmount, "INSUFFICIENT_OUTPUT");
    }

    /// Pays fees and the receiver. Returns what arrived there.
    function finish(
        Swap calldata swap,
        address feeToken,
        Proceeds.Cut memory cut,
        uint256 spent,
        uint256 received
    ) private returns (uint256 arrived) {
        address partner = Proceeds.partnerOf(swap.partnerAndFee);
        if (partner == address(0) && cut.fee + cut.share > 0) partner = protocol;
        bool directly = swap.partnerAndFee & Proceeds.PAYS_DIRECTLY != 0;
        payFee(feeToken, partner, cut.fee + cut.share, directly);
        if (cut.share > 0) payFee(feeToken, protocol, cut.share, directly);
        address receiver = swap.receiver == address(0) ? msg.sender : swap.receiver;
        arrived = pay(swap.destToken, receiver, received);
        checkOutput(swap, arrived);
        emit Swapped(
            msg.sender, receiver, swap.srcToken, swap.destToken, spent, arrived, cut.fee, cut.share
        );
    }

    function payFee(address token, address receiver, uint256 amount, bool directly) private {
        if (amount == 0) return;
        require(Tokens.send(token, directly ? receiver : address(feeVault), amount), "TRANSFER_FAILED");
        if (!directly) feeVault.credit(receiver, token, amount);
    }

    /// Returns what arrived, which is less than was sent where a token takes a fee on transfers.
    function pay(address token, address to, uint256 amount) private returns (uint256) {
        if (token == Tokens.NATIVE) {
            weth.withdraw(amount);
            (bool done,) = to.call{value: amount}("");
            require(done, "NATIVE_TRANSFER_FAILED");
            return amount;
        }
        uint256 before = Tokens.balance(token, to);
        require(Tokens.send(token, to, amount), "TRANSFER_FAILED");
        return Tokens.balance(token, to) - before;
    }

    function wrapped(address token) private view returns (address) {
        return token == Tokens.NATIVE ? address(weth) : token;
    }
}
