// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Tokens} from "./Tokens.sol";

/// Native tokens that owners leave for orders of theirs, an account for each owner.
abstract contract Deposits {
    error InsufficientDeposit(uint256 deposited);
    error NativeTransferFailed(address to);

    event NativeDeposited(address indexed owner, uint256 amount);
    event NativeWithdrawn(address indexed owner, address to, uint256 amount);

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
        if (!Tokens.sendNative(to, amount, gasleft())) revert NativeTransferFailed(to);
        emit NativeWithdrawn(account, to, amount);
    }

    /// Native tokens go to their owner, or to the owner's deposit where the owner does not take them.
    function giveNative(address account, uint256 amount) internal {
        if (!Tokens.sendNative(account, amount, Tokens.NATIVE_GAS)) credit(account, amount);
    }
}
