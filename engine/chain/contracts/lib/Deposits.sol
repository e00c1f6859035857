// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {NonReentrant} from "./NonReentrant.sol";

/// Native tokens that owners leave for orders of theirs, by the order's hash: nobody else's order can use them.
abstract contract Deposits is NonReentrant {
    error InsufficientDeposit(uint256 deposited);
    error NativeTransferFailed(address to);

    event Deposited(bytes32 indexed orderHash, address indexed owner, uint256 amount);
    event DepositWithdrawn(bytes32 indexed orderHash, address indexed owner, uint256 amount);

    /// Gas that a receiver of native tokens may use.
    uint256 internal constant NATIVE_GAS = 100_000;

    mapping(bytes32 orderHash => mapping(address owner => uint256)) public deposits;

    /// Deposit native tokens for an order that the caller owns. Not within a settlement, which on chains where the
    /// native token is an ERC-20 as well could count them as received.
    function deposit(bytes32 orderHash) external payable nonReentrant {
        deposits[orderHash][msg.sender] += msg.value;
        emit Deposited(orderHash, msg.sender, msg.value);
    }

    /// Take back what is left of the caller's deposit.
    function withdraw(bytes32 orderHash) external nonReentrant {
        uint256 amount = deposits[orderHash][msg.sender];
        if (amount == 0) revert InsufficientDeposit(0);
        deposits[orderHash][msg.sender] = 0;
        if (!sendNative(msg.sender, amount, gasleft())) revert NativeTransferFailed(msg.sender);
        emit DepositWithdrawn(orderHash, msg.sender, amount);
    }

    function drawDeposit(bytes32 orderHash, address account, uint256 amount) internal {
        uint256 deposited = deposits[orderHash][account];
        if (deposited < amount) revert InsufficientDeposit(deposited);
        deposits[orderHash][account] = deposited - amount;
    }

    /// A filled order's deposit goes back to its owner, or stays to be withdrawn where that fails.
    function returnDeposit(bytes32 orderHash, address account) internal {
        uint256 amount = deposits[orderHash][account];
        if (amount == 0) return;
        deposits[orderHash][account] = 0;
        if (sendNative(account, amount, NATIVE_GAS)) {
            emit DepositWithdrawn(orderHash, account, amount);
        } else {
            deposits[orderHash][account] = amount;
        }
    }

    function sendNative(address to, uint256 amount, uint256 gasMax) internal returns (bool done) {
        assembly ("memory-safe") {
            done := call(gasMax, to, amount, 0, 0, 0, 0)
        }
    }
}
