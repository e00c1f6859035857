// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IOrderHandler} from "./IOrderHandler.sol";
import {DeltaOrders} from "./lib/DeltaOrders.sol";
import {Settling} from "./lib/Settling.sol";
import {Tokens} from "./lib/Tokens.sol";

/// Settles orders that a contract of the owner's choice trades, for Delta, which runs this code as its own.
///
/// Who is trusted with what: nobody, where this code is called itself: it is paused, has no owner and no relayer, and no
/// user allows it anything. As Delta's code it checks the signed terms, and trusts relayers as Delta does. A handler is
/// trusted with nothing: it is called by a caller that holds nothing and that no agent has, and what it delivers is
/// measured here.
contract ExternalSettler is Settling {
    using DeltaOrders for *;

    /// Most gas of the handler's call.
    uint256 private constant HANDLER_GAS = 5_000_000;

    constructor(string memory name, string memory version, Places memory places) Settling(name, version, places) {}

    /// As Delta says it; reverts as Delta's function.
    /// @param order as its owner signed it.
    /// @param signature of the owner; empty where the owner has pre-signed the order.
    /// @param amount raw units: of the source of a sale, of the destination of a purchase.
    /// @param execution the promise, and of a purchase what is given; without steps.
    /// @return spent raw units of the source that the owner gave, fees and shares included.
    /// @return received raw units of the destination that the owner got.
    /// @return gasUsed units of gas between the settlement's first line and its last.
    function settleExternal(
        DeltaOrders.ExternalOrder calldata order,
        bytes calldata signature,
        uint256 amount,
        Execution calldata execution
    ) external onlyRelayer nonReentrant returns (uint256 spent, uint256 received, uint256 gasUsed) {
        gasUsed = gasleft();
        if (execution.steps.length > 0) revert InvalidSteps();
        Part memory part = partOf(order.asOrder(), digestOf(order.structHash()), amount, order.owner);
        begin(part, signature, execution);
        address src = wrapped(part.srcToken);
        uint256 srcBefore = Tokens.balance(src, address(this));
        uint256 destBefore = Tokens.balance(wrapped(part.destToken), address(this));
        uint256 given = part.isPurchase ? execution.srcGiven : part.taken;
        take(part, src, part.isPurchase ? address(this) : order.handler, order.permit);
        if (part.isPurchase) send(src, order.handler, given);
        handle(part, order, src, given);
        received = Tokens.balance(wrapped(part.destToken), address(this)) - destBefore;
        (spent, received) = finish(part, received, Tokens.balance(src, address(this)) - srcBefore);
        gasUsed -= gasleft();
    }

    function handle(Part memory part, DeltaOrders.ExternalOrder calldata order, address src, uint256 given)
        private
    {
        IOrderHandler.Handled memory handled = IOrderHandler.Handled({
            orderHash: part.orderHash,
            owner: part.owner,
            srcToken: src,
            given: given,
            destToken: wrapped(part.destToken),
            wanted: part.destAmount,
            deliverTo: address(this)
        });
        bytes memory data = abi.encodeCall(IOrderHandler.handle, (handled, order.data));
        callerOf(HANDLERS).call(part.orderHash, 0, order.handler, HANDLER_GAS, data);
    }
}
