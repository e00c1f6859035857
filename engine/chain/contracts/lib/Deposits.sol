// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// Native tokens that owners leave for orders of theirs, an account for each owner.
abstract contract Deposits {
    error InsufficientDeposit(uint256 deposited);
    error NativeTransferFailed(address to);

    event NativeDeposited(address indexed owner, uint256 amount);
    event NativeWithdrawn(address indexed owner, address to, uint256 amount);

    /// Gas that a receiver of native tokens may use in a settlement.
    uint256 internal constant NATIVE_GAS = 100_000;

    /// Native tokens of an owner, in wei.
    mapping(address owner => uint256) public deposits;

    function credit(address account, uint256 amount) internal {
        deposits[account] += amount;
        emit NativeDeposited(account, amount);
    }

    /// Take `most` of an owner's deposit, or all of it where that is `least` or more. Reverts with InsufficientDeposit.
    function draw(address account, uint256 least, uint256 most) internal returns (uint256 drawn) {
        uint256 deposited = deposits[account];
        if (deposited < least) revert InsufficientDeposit(deposited);
        drawn = deposited < most ? deposited : most;
        deposits[account] = deposited - drawn;
    }

    /// Reverts with InsufficientDeposit or NativeTransferFailed.
    function payOut(address account, uint256 amount, address to) internal {
        draw(account, amount, amount);
        if (!sendNative(to, amount, gasleft())) revert NativeTransferFailed(to);
        emit NativeWithdrawn(account, to, amount);
    }

    /// Native tokens go to their owner, or to the owner's deposit where the owner does not take them.
    function giveNative(address account, uint256 amount) internal {
        if (!sendNative(account, amount, NATIVE_GAS)) credit(account, amount);
    }

    function sendNative(address to, uint256 amount, uint256 gasMax) internal returns (bool done) {
        assembly ("memory-safe") {
            done := call(gasMax, to, amount, 0, 0, 0, 0)
        }
    }
}
