// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Guardrails} from "./lib/Guardrails.sol";
import {Owned} from "./lib/Owned.sol";
import {Proceeds} from "./lib/Proceeds.sol";
import {Settling} from "./lib/Settling.sol";

/// Inner functions of the contracts, open to calls. `make proofs` copies this file to the contracts, and compiles it as they
/// are compiled.

/// How Delta counts what is settled.
contract Counting is Settling {
    constructor(Places memory places) Settling("Proof", "1", places) {}

    function settleSome(address account, uint256 nonce, bytes32 orderHash, uint256 amount, uint256 whole)
        external
        returns (uint256)
    {
        return count(account, nonce, orderHash, amount, whole);
    }

    function invalidateOne(address account, uint256 nonce) external {
        invalidate(account, nonce);
    }

    function settledOf(address account, uint256 nonce, bytes32 orderHash) external view returns (uint256) {
        return progressOf(account, nonce, orderHash);
    }
}

/// The bounds of Delta and the Router.
contract Railed is Guardrails {
    constructor() Owned(msg.sender) {}

    function give(address token, uint256 amount) external {
        countGiven(token, amount);
    }

    function checkOne(address token, uint256 amount) external view {
        checkCall(token, amount);
    }
}

/// Fees and shares of surplus.
contract Cuts {
    function ofSale(uint256 received, uint256 expected, uint256 minimum, uint256 partnerAndFee)
        external
        pure
        returns (uint256 fee, uint256 share)
    {
        Proceeds.Cut memory cut = Proceeds.ofSale(received, expected, minimum, partnerAndFee);
        return (cut.fee, cut.share);
    }

    function ofPurchase(uint256 spent, uint256 expected, uint256 maximum, uint256 partnerAndFee)
        external
        pure
        returns (uint256 fee, uint256 share)
    {
        Proceeds.Cut memory cut = Proceeds.ofPurchase(spent, expected, maximum, partnerAndFee);
        return (cut.fee, cut.share);
    }

    function mostOfPurchase(uint256 given, uint256 expected, uint256 maximum, uint256 partnerAndFee)
        external
        pure
        returns (uint256)
    {
        return Proceeds.mostOfPurchase(given, expected, maximum, partnerAndFee);
    }
}
