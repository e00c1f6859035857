// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IPermit2} from "../lib/Permits.sol";
import {Signatures} from "../lib/Signatures.sol";
import {Tokens} from "../lib/Tokens.sol";

/// Permit2 as far as our contracts use it: the same types, hashes and calls as the one at its canonical address, which
/// devnets do not have.
contract DevPermit2 is IPermit2 {
    error SignatureExpired(uint256 deadline);
    error InvalidNonce();
    error InvalidSigner();
    error AllowanceExpired(uint256 expiration);
    error InsufficientAllowance(uint256 amount);
    error InvalidAmount(uint256 most);
    error TransferFailed();

    struct Allowance {
        uint160 amount;
        uint48 expiration;
        uint48 nonce;
    }

    bytes32 private constant DOMAIN_TYPE =
        keccak256("EIP712Domain(string name,uint256 chainId,address verifyingContract)");
    bytes32 private constant DETAILS_TYPE =
        keccak256("PermitDetails(address token,uint160 amount,uint48 expiration,uint48 nonce)");
    bytes32 private constant SINGLE_TYPE = keccak256(
        "PermitSingle(PermitDetails details,address spender,uint256 sigDeadline)PermitDetails(address token,uint160 amount,uint48 expiration,uint48 nonce)"
    );
    bytes32 private constant PERMISSIONS_TYPE = keccak256("TokenPermissions(address token,uint256 amount)");
    bytes32 private constant TRANSFER_TYPE = keccak256(
        "PermitTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline)TokenPermissions(address token,uint256 amount)"
    );

    mapping(address owner => mapping(address token => mapping(address spender => Allowance))) public allowance;
    mapping(address owner => mapping(uint256 word => uint256)) public nonceBitmap;

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPE, keccak256("Permit2"), block.chainid, address(this)));
    }

    function approve(address token, address spender, uint160 amount, uint48 expiration) external {
        Allowance storage kept = allowance[msg.sender][token][spender];
        kept.amount = amount;
        kept.expiration = expiration == 0 ? uint48(block.timestamp) : expiration;
    }

    function permit(address owner, PermitSingle calldata single, bytes calldata signature) external {
        if (block.timestamp > single.sigDeadline) revert SignatureExpired(single.sigDeadline);
        PermitDetails calldata details = single.details;
        bytes32 detailsHash = keccak256(
            abi.encode(DETAILS_TYPE, details.token, details.amount, details.expiration, details.nonce)
        );
        checkSigned(
            owner,
            keccak256(abi.encode(SINGLE_TYPE, detailsHash, single.spender, single.sigDeadline)),
            signature
        );
        Allowance storage kept = allowance[owner][details.token][single.spender];
        if (kept.nonce != details.nonce) revert InvalidNonce();
        kept.nonce++;
        kept.amount = details.amount;
        kept.expiration = details.expiration == 0 ? uint48(block.timestamp) : details.expiration;
    }

    function transferFrom(address from, address to, uint160 amount, address token) external {
        Allowance storage kept = allowance[from][token][msg.sender];
        if (block.timestamp > kept.expiration) revert AllowanceExpired(kept.expiration);
        if (kept.amount != type(uint160).max) {
            if (amount > kept.amount) revert InsufficientAllowance(kept.amount);
            kept.amount -= amount;
        }
        if (!Tokens.pull(token, from, to, amount)) revert TransferFailed();
    }

    function permitTransferFrom(
        PermitTransferFrom calldata transfer,
        SignatureTransferDetails calldata details,
        address owner,
        bytes calldata signature
    ) external {
        if (block.timestamp > transfer.deadline) revert SignatureExpired(transfer.deadline);
        if (details.requestedAmount > transfer.permitted.amount) {
            revert InvalidAmount(transfer.permitted.amount);
        }
        uint256 bit = 1 << (transfer.nonce & 0xFF);
        if (nonceBitmap[owner][transfer.nonce >> 8] & bit != 0) revert InvalidNonce();
        nonceBitmap[owner][transfer.nonce >> 8] |= bit;
        bytes32 permitted =
            keccak256(abi.encode(PERMISSIONS_TYPE, transfer.permitted.token, transfer.permitted.amount));
        checkSigned(
            owner,
            keccak256(abi.encode(TRANSFER_TYPE, permitted, msg.sender, transfer.nonce, transfer.deadline)),
            signature
        );
        if (!Tokens.pull(transfer.permitted.token, owner, details.to, details.requestedAmount)) {
            revert TransferFailed();
        }
    }

    function checkSigned(address owner, bytes32 structHash, bytes calldata signature) private view {
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", DOMAIN_SEPARATOR(), structHash));
        if (!Signatures.isBy(owner, digest, signature)) revert InvalidSigner();
    }
}
