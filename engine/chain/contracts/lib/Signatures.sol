// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

interface IERC1271 {
    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4);
}

/// Whether an account signed a digest: 65 bytes (r, s, v), 64 bytes (ERC-2098), or whatever a contract accepts
/// (EIP-1271). Signatures with s in the upper half are refused, so that there is one for a digest and key.
library Signatures {
    uint256 private constant HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;
    /// Most gas of a contract's answer: one that wastes it leaves enough for the orders that come after.
    uint256 private constant ANSWER_GAS_MAX = 1_000_000;

    /// The key's own signature counts first, also where the account has code: an EIP-7702 account has both.
    function isBy(address account, bytes32 digest, bytes calldata signature) internal view returns (bool) {
        address recovered = recover(digest, signature);
        if (recovered != address(0) && recovered == account) return true;
        return account.code.length > 0 && isAcceptedBy(account, digest, signature);
    }

    /// Zero where no key can have made it.
    function recover(bytes32 digest, bytes calldata signature) private pure returns (address) {
        uint256 s;
        uint256 v;
        if (signature.length == 65) {
            s = uint256(bytes32(signature[32:64]));
            v = uint8(signature[64]);
            if (v < 27) v += 27;
        } else if (signature.length == 64) {
            uint256 packed = uint256(bytes32(signature[32:64]));
            s = packed & type(uint256).max >> 1;
            v = 27 + (packed >> 255);
        } else {
            return address(0);
        }
        if (s > HALF_ORDER || (v != 27 && v != 28)) return address(0);
        return ecrecover(digest, uint8(v), bytes32(signature[:32]), bytes32(s));
    }

    /// One word of the answer is read, however much is returned.
    function isAcceptedBy(address account, bytes32 digest, bytes calldata signature) private view returns (bool) {
        bytes memory data = abi.encodeCall(IERC1271.isValidSignature, (digest, signature));
        bool done;
        bytes32 answer;
        assembly ("memory-safe") {
            mstore(0, 0)
            done := staticcall(ANSWER_GAS_MAX, account, add(data, 32), mload(data), 0, 32)
            done := and(done, gt(returndatasize(), 31))
            answer := mload(0)
        }
        return done && answer == bytes32(IERC1271.isValidSignature.selector);
    }
}
