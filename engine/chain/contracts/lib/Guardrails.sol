// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Owned} from "./Owned.sol";

/// Bounds that are on until the owner lifts them: the contract starts paused, and no token may be given until it has
/// a cap of its own.
abstract contract Guardrails is Owned {
    error Paused();
    error CapExceeded(address token, uint256 amount, uint256 cap);

    event PauseChanged(bool isPaused);
    event CapChanged(address indexed token, uint256 cap);

    bool public isPaused = true;
    /// Most raw units of a token that one call may give.
    mapping(address token => uint256) public capOf;

    function setPaused(bool paused) external onlyOwner {
        isPaused = paused;
        emit PauseChanged(paused);
    }

    function setCap(address token, uint256 cap) external onlyOwner {
        capOf[token] = cap;
        emit CapChanged(token, cap);
    }

    function checkRails(address token, uint256 amount) internal view {
        if (isPaused) revert Paused();
        uint256 cap = capOf[token];
        if (amount > cap) revert CapExceeded(token, amount, cap);
    }
}
