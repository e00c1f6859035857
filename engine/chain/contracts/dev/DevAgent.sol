// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Tokens} from "../lib/Tokens.sol";

/// A solver's own contract: it is sent what an order gives, and delivers from its stock what it was told to.
contract DevAgent {
    error TransferFailed();
    error Refused();

    receive() external payable {}

    function deliver(address token, address to, uint256 amount) external {
        if (!Tokens.send(token, to, amount)) revert TransferFailed();
    }

    function refuse() external pure {
        revert Refused();
    }

    /// Uses up all the gas it was given.
    function waste() external pure {
        while (true) {}
    }
}
