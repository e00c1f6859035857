// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IOrderHandler} from "../IOrderHandler.sol";
import {Tokens} from "../lib/Tokens.sol";

/// A handler that delivers from its stock as an order's data says, or acts against those who call it.
contract DevHandler is IOrderHandler {
    error Refused();
    error TransferFailed();

    enum Mode {
        DELIVER,
        REFUSE,
        WASTE, // uses up its gas
        BOMB, // fails with `delivered` bytes
        CALL // calls `target` with `data` too, and goes on whatever comes of it
    }

    /// `delivered` of the destination and `back` of the source, raw units.
    struct Acts {
        Mode mode;
        uint256 delivered;
        uint256 back;
        address target;
        bytes data;
    }

    event Handled_(address caller, Handled handled, bool called);

    function handle(Handled calldata handled, bytes calldata data) external {
        Acts memory acts = abi.decode(data, (Acts));
        if (acts.mode == Mode.REFUSE) revert Refused();
        while (acts.mode == Mode.WASTE) {}
        if (acts.mode == Mode.BOMB) {
            uint256 size = acts.delivered;
            assembly {
                revert(0, size)
            }
        }
        bool called;
        if (acts.mode == Mode.CALL) (called,) = acts.target.call(acts.data);
        if (!Tokens.send(handled.destToken, handled.deliverTo, acts.delivered)) revert TransferFailed();
        if (!Tokens.send(handled.srcToken, handled.deliverTo, acts.back)) revert TransferFailed();
        emit Handled_(msg.sender, handled, called);
    }
}
