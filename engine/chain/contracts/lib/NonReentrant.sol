// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// Nothing guarded is entered again before it has ended.
abstract contract NonReentrant {
    error Reentered();

    bool private transient entered;

    modifier nonReentrant() {
        if (entered) revert Reentered();
        entered = true;
        _;
        entered = false;
    }
}
