// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IERC20, Tokens} from "./Tokens.sol";

interface IPermit2 {
    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct SignatureTransferDetails {
        address to;
        uint256 requestedAmount;
    }

    struct PermitDetails {
        address token;
        uint160 amount;
        uint48 expiration;
        uint48 nonce;
    }

    struct PermitSingle {
        PermitDetails details;
        address spender;
        uint256 sigDeadline;
    }

    function permit(address owner, PermitSingle calldata single, bytes calldata signature) external;
    function allowance(address owner, address token, address spender)
        external
        view
        returns (uint160 amount, uint48 expiration, uint48 nonce);
    function transferFrom(address from, address to, uint160 amount, address token) external;
    function permitTransferFrom(
        PermitTransferFrom calldata transfer,
        SignatureTransferDetails calldata details,
        address owner,
        bytes calldata signature
    ) external;
}

/// Permits, told by their length: 0 none, 1 an allowance that Permit2 has, 96 a transfer by Permit2 (nonce and
/// compact signature), 192 an allowance for Permit2 (amount, expiration, nonce, sigDeadline and compact
/// signature), 224 EIP-2612, 256 DAI-style (both as the words of the token's own call).
///
/// A permit sets an allowance, whatever it was: shown beside an unlimited one, a permit of the exact amount would
/// leave nothing to the owner's other orders. So a permit that grants no more than the allowance is not shown.
library Permits {
    uint256 internal constant PERMIT2_ALLOWED = 1;
    uint256 internal constant PERMIT2_TRANSFER = 96;
    uint256 internal constant PERMIT2_ALLOWANCE = 192;
    uint256 internal constant EIP2612 = 224;
    uint256 internal constant DAI = 256;

    bytes4 private constant EIP2612_SELECTOR =
        bytes4(keccak256("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)"));
    bytes4 private constant DAI_SELECTOR =
        bytes4(keccak256("permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)"));

    /// Show a token its own permit, of 224 or 256 bytes, if it grants more than the allowance; other lengths do nothing.
    ///
    /// Whoever sees a permit can show it first; then it fails here although the allowance is there. So a failure
    /// only counts where the allowance does not cover `amount`; it leaves the allowance as it was read.
    function show(address token, address owner, uint256 amount, bytes calldata permit) internal returns (bool) {
        bytes4 selector = EIP2612_SELECTOR;
        uint256 granted;
        if (permit.length == EIP2612) {
            granted = word(permit, 2);
        } else if (permit.length == DAI) {
            selector = DAI_SELECTOR;
            if (word(permit, 4) > 0) granted = type(uint256).max;
        } else {
            return true;
        }
        (uint256 allowed,) = Tokens.ask(token, abi.encodeCall(IERC20.allowance, (owner, address(this))));
        return (granted > allowed && shown(token, selector, permit)) || allowed >= amount;
    }

    /// Take `amount` of an owner's tokens by whatever the permit is.
    ///
    /// `whole` is what the owner permitted by a Permit2 transfer, which can be used once only; `deadline` is that
    /// transfer's. Anything but the six lengths fails.
    function take(
        address permit2,
        address token,
        address owner,
        address to,
        uint256 amount,
        uint256 whole,
        uint256 deadline,
        bytes calldata permit
    ) internal returns (bool) {
        uint256 length = permit.length;
        if (length == PERMIT2_TRANSFER) {
            return transferOnce(permit2, token, owner, to, amount, whole, deadline, permit);
        }
        if (length == PERMIT2_ALLOWED || length == PERMIT2_ALLOWANCE) {
            if (length == PERMIT2_ALLOWANCE) allowPermit2(permit2, token, owner, permit);
            if (amount > type(uint160).max) return false;
            try IPermit2(permit2).transferFrom(owner, to, uint160(amount), token) {
                return true;
            } catch {
                return false;
            }
        }
        if (length != 0 && length != EIP2612 && length != DAI) return false;
        return show(token, owner, amount, permit) && Tokens.pull(token, owner, to, amount);
    }

    /// The token's answer is not copied.
    function shown(address token, bytes4 selector, bytes calldata permit) private returns (bool done) {
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, selector)
            calldatacopy(add(data, 4), permit.offset, permit.length)
            done := call(gas(), token, 0, data, add(permit.length, 4), 0, 0)
        }
    }

    /// The word number `at`, which is within the permit by its length.
    function word(bytes calldata permit, uint256 at) private pure returns (uint256 value) {
        assembly ("memory-safe") {
            value := calldataload(add(permit.offset, mul(at, 32)))
        }
    }

    function transferOnce(
        address permit2,
        address token,
        address owner,
        address to,
        uint256 amount,
        uint256 whole,
        uint256 deadline,
        bytes calldata permit
    ) private returns (bool) {
        try IPermit2(permit2).permitTransferFrom(
            IPermit2.PermitTransferFrom(
                IPermit2.TokenPermissions(token, whole), word(permit, 0), deadline
            ),
            IPermit2.SignatureTransferDetails(to, amount),
            owner,
            permit[32:]
        ) {
            return true;
        } catch {
            return false;
        }
    }

    /// Unless as much is allowed there already. A failure does not matter here: what counts is the transfer that follows.
    function allowPermit2(address permit2, address token, address owner, bytes calldata permit) private {
        uint256 amount = uint160(word(permit, 0));
        (uint256 allowed, uint256 until) =
            Tokens.ask(permit2, abi.encodeCall(IPermit2.allowance, (owner, token, address(this))));
        if (amount <= allowed && block.timestamp <= until) return;
        try IPermit2(permit2).permit(
            owner,
            IPermit2.PermitSingle(
                IPermit2.PermitDetails(
                    token, uint160(amount), uint48(word(permit, 1)), uint48(word(permit, 2))
                ),
                address(this),
                word(permit, 3)
            ),
            permit[128:]
        ) {} catch {}
    }
}
