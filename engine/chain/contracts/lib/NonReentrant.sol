// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// Nothing guarded is entered again before it has ended.
abstract contract NonReentrant {
    error Reentered();

    uint256 private entered = 1;

    modifier nonReentrant() {
        if (entered == 2) revert Reentered();
        entered = 2;
        _;
        entered = 1;
    }
}
