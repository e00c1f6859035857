// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Tokens} from "../lib/Tokens.sol";

/// One end of a lock-and-release bridge: what is locked at one end is released at the other, by its operator.
contract DevBridge {
    error NotOperator();
    error AlreadyReleased(bytes32 id);
    error TransferFailed();

    event Locked(
        bytes32 indexed id, address indexed token, address indexed receiver, uint256 amount, uint256 chainId
    );
    event Released(bytes32 indexed id, address indexed token, address indexed receiver, uint256 amount);

    address public immutable operator;
    uint256 public count;
    mapping(bytes32 id => bool) public isReleased;

    constructor(address operator_) {
        operator = operator_;
    }

    /// Lock tokens here, for `receiver` on the chain of that id. `id` knows the transfer at both ends.
    function lock(address token, uint256 amount, address receiver, uint256 chainId)
        external
        returns (bytes32 id)
    {
        id = keccak256(abi.encode(block.chainid, address(this), ++count));
        if (!Tokens.pull(token, msg.sender, address(this), amount)) revert TransferFailed();
        emit Locked(id, token, receiver, amount, chainId);
    }

    function release(bytes32 id, address token, address receiver, uint256 amount) external {
        if (msg.sender != operator) revert NotOperator();
        if (isReleased[id]) revert AlreadyReleased(id);
        isReleased[id] = true;
        if (!Tokens.send(token, receiver, amount)) revert TransferFailed();
        emit Released(id, token, receiver, amount);
    }
}
