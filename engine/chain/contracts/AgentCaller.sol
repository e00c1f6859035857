// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// Makes the calls of one agent, in settlements of orders that this agent won, and no others.
///
/// Delta creates one for each agent, at an address that follows from Delta's and the agent's id. A contract of the
/// agent's that trusts this caller alone cannot be called by another agent, and can ask it which order is settled.
///
/// Who is trusted with what: Delta, with naming the agent and the order, as its relayers say. Nobody owns this contract,
/// no user allows it anything, and it is given nothing but what an agent has sent to it: what stays here, tokens or
/// allowances, is within reach of the same agent's later calls, and of nobody else's.
contract AgentCaller {
    error NotDelta();
    error TooMuchGas(uint256 gas);
    error StepFailed(uint256 step, bytes reason);

    /// Most gas of one call.
    uint256 public constant STEP_GAS_MAX = 5_000_000;
    uint256 private constant REASON_BYTES_MAX = 256;

    /// The Delta contract that created this caller, and the only account that may use it.
    address public immutable delta = msg.sender;
    /// The hash of the order that is being settled, for those who are called; else zero.
    bytes32 public transient orderHash;

    /// Make a call as it stands. By Delta; reverts with NotDelta, TooMuchGas, or StepFailed with the first 256 bytes of
    /// the target's reason.
    /// @param orderHash_ of the order that is settled.
    /// @param step the number of the call, for the error.
    /// @param target the contract that is called.
    /// @param gasMax units of gas, at most STEP_GAS_MAX.
    /// @param data the calldata of the call.
    function call(bytes32 orderHash_, uint256 step, address target, uint256 gasMax, bytes calldata data) external {
        if (msg.sender != delta) revert NotDelta();
        if (gasMax > STEP_GAS_MAX) revert TooMuchGas(gasMax);
        orderHash = orderHash_;
        bytes memory copied = data;
        bytes memory reason = new bytes(REASON_BYTES_MAX);
        bool done;
        assembly ("memory-safe") {
            done := call(gasMax, target, 0, add(copied, 32), mload(copied), 0, 0)
            let size := returndatasize()
            if gt(size, REASON_BYTES_MAX) { size := REASON_BYTES_MAX }
            returndatacopy(add(reason, 32), 0, size)
            mstore(reason, size)
        }
        if (!done) revert StepFailed(step, reason);
        orderHash = 0;
    }
}
