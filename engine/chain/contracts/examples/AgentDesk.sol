// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {AgentCaller} from "../AgentCaller.sol";
import {Eip712} from "../lib/Eip712.sol";
import {Owned} from "../lib/Owned.sol";
import {Signatures} from "../lib/Signatures.sol";
import {Tokens} from "../lib/Tokens.sol";

/// An agent's stock, which only that agent's settlements can trade with, on terms that its own key signed.
///
/// It trusts nobody on the way: not another agent (the caller is this agent's own), not the venue's relayer (terms name
/// the order, and what the desk gets is here before anything leaves).
contract AgentDesk is Owned, Eip712 {
    error NotOurCaller();
    error AnotherOrder(bytes32 orderHash);
    error TermsExpired();
    error TermsUsed();
    error NotSigned();
    error TransferFailed(address token);

    /// The desk gets `taken` of a token from the caller, and gives `given` of another to `receiver`: while the order is
    /// settled, until the deadline (Unix seconds), once.
    struct Terms {
        bytes32 orderHash;
        address takes;
        uint256 taken;
        address gives;
        uint256 given;
        address receiver;
        uint256 deadline;
        uint256 nonce;
    }

    bytes32 private constant TERMS_TYPE = keccak256(
        "Terms(bytes32 orderHash,address takes,uint256 taken,address gives,uint256 given,address receiver,uint256 deadline,uint256 nonce)"
    );

    AgentCaller public immutable caller;
    /// The key that signs terms.
    address public immutable signer;
    mapping(bytes32 digest => bool) public isUsed;

    constructor(AgentCaller caller_, address signer_, address owner_) Owned(owner_) Eip712("Agent desk", "1") {
        caller = caller_;
        signer = signer_;
    }

    /// Trade on signed terms. The caller allows `taken` before.
    function trade(Terms calldata terms, bytes calldata signature) external {
        if (msg.sender != address(caller)) revert NotOurCaller();
        bytes32 settled = caller.orderHash();
        if (settled != terms.orderHash) revert AnotherOrder(settled);
        if (block.timestamp > terms.deadline) revert TermsExpired();
        bytes32 digest = digestOf(keccak256(abi.encode(TERMS_TYPE, terms)));
        if (isUsed[digest]) revert TermsUsed();
        isUsed[digest] = true;
        if (!Signatures.isBy(signer, digest, signature)) revert NotSigned();
        if (!Tokens.pull(terms.takes, msg.sender, address(this), terms.taken)) revert TransferFailed(terms.takes);
        if (!Tokens.send(terms.gives, terms.receiver, terms.given)) revert TransferFailed(terms.gives);
    }

    function withdraw(address token, address to, uint256 amount) external onlyOwner {
        if (!Tokens.send(token, to, amount)) revert TransferFailed(token);
    }
}
