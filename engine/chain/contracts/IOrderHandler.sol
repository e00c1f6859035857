// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// A contract that trades external orders: what their owners choose as the handler.
interface IOrderHandler {
    /// An order that is being settled. Native tokens are handled in the wrapped form.
    struct Handled {
        bytes32 orderHash;
        address owner;
        address srcToken;
        uint256 given; // raw units of the source, sent to the handler; fewer arrive where a token takes a fee
        address destToken;
        uint256 wanted; // raw units of the destination, the least that has to be delivered, fees not included
        address deliverTo;
    }

    /// Trade an order. Called by the AgentCaller of the id zero of the Delta contract, which no agent has. Whatever of the
    /// destination and of the source is at `deliverTo` afterwards is counted; the settlement reverts if it is too little.
    /// @param handled the order.
    /// @param data the order's member `data`, which its owner signed.
    function handle(Handled calldata handled, bytes calldata data) external;
}
