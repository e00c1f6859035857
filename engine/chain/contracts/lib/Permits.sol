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

    /// Show a token its own permit, of 224 or 256 bytes; other lengths do nothing.
    ///
    /// Whoever sees a permit can show it first; then it fails here although the allowance is there. So a failure
    /// only counts where the allowance does not cover `amount`.
    function show(address token, address owner, uint256 amount, bytes calldata permit) internal returns (bool) {
        if (permit.length != EIP2612 && permit.length != DAI) return true;
        bytes4 selector = permit.length == EIP2612 ? EIP2612_SELECTOR : DAI_SELECTOR;
        (bool done,) = token.call(abi.encodePacked(selector, permit));
        return done || IERC20(token).allowance(owner, address(this)) >= amount;
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
                IPermit2.TokenPermissions(token, whole), uint256(bytes32(permit[:32])), deadline
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

    /// A failure does not matter here: what counts is the transfer that follows.
    function allowPermit2(address permit2, address token, address owner, bytes calldata permit) private {
        (uint256 amount, uint256 expiration, uint256 nonce, uint256 deadline) =
            abi.decode(permit[:128], (uint256, uint256, uint256, uint256));
        try IPermit2(permit2).permit(
            owner,
            IPermit2.PermitSingle(
                IPermit2.PermitDetails(token, uint160(amount), uint48(expiration), uint48(nonce)),
                address(this),
                deadline
            ),
            permit[128:]
        ) {} catch {}
    }
}
