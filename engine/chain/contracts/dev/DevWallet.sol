// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Signatures} from "../lib/Signatures.sol";

/// A smart wallet of one key (EIP-1271), which can do whatever that key's account asks of it.
contract DevWallet {
    error NotKey();
    error CallFailed(bytes reason);

    address public key;

    constructor(address key_) {
        key = key_;
    }

    receive() external payable {}

    function setKey(address key_) external {
        if (msg.sender != key) revert NotKey();
        key = key_;
    }

    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        return Signatures.isBy(key, digest, signature) ? this.isValidSignature.selector : bytes4(0);
    }

    function execute(address target, uint256 value, bytes calldata data) external returns (bytes memory) {
        if (msg.sender != key) revert NotKey();
        (bool done, bytes memory returned) = target.call{value: value}(data);
        if (!done) revert CallFailed(returned);
        return returned;
    }
}
