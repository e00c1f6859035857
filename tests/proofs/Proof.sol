// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// The calls of halmos that foundry has too.
interface Vm {
    function assume(bool condition) external pure;
    function deal(address account, uint256 amount) external;
    function getCode(string calldata path) external view returns (bytes memory code);
    function prank(address sender) external;
    function warp(uint256 time) external;
}

/// The calls of halmos that make symbols: values of which nothing is known.
interface Svm {
    function createAddress(string calldata name) external returns (address);
    function createBool(string calldata name) external returns (bool);
    function createBytes(uint256 size, string calldata name) external returns (bytes memory);
    function createBytes32(string calldata name) external returns (bytes32);
    function createBytes4(string calldata name) external returns (bytes4);
    function createCalldata(string calldata contractName) external returns (bytes memory);
    function createUint256(string calldata name) external returns (uint256);
    function enableSymbolicStorage(address account) external;
}

/// A claim is a function `check_...`: halmos runs it for all arguments at once, and searches for some that make an
/// assertion fail. A path that reverts claims nothing.
///
/// The code of the contracts is that of the committed artifacts, byte for byte. Opened.sol calls what they do inside.
abstract contract Proof {
    Vm internal constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);
    Svm internal constant svm = Svm(0xF3993A62377BCd56AE39D773740A5390411E8BC9);

    /// Create a contract of the product's by its artifact.
    function deployed(string memory name, bytes memory arguments) internal returns (address at) {
        bytes memory code = bytes.concat(vm.getCode(string.concat("codes/", name, ".json")), arguments);
        assembly ("memory-safe") {
            at := create(0, add(code, 32), mload(code))
        }
        require(at != address(0), "not deployed");
    }

    /// A key's signature of 65 bytes that is not `account`'s, of a digest.
    function foreignSignature(address account, bytes32 digest) internal returns (bytes memory signature) {
        bytes32 r = svm.createBytes32("r");
        bytes32 s = svm.createBytes32("s");
        uint8 v = svm.createBool("parity") ? 28 : 27;
        vm.assume(ecrecover(digest, v, r, s) != account);
        signature = bytes.concat(r, s, bytes1(v));
    }
}

/// An ERC-20 without oddities.
contract Coin {
    mapping(address owner => uint256) public balanceOf;
    mapping(address owner => mapping(address spender => uint256)) public allowance;

    function mint(address to, uint256 amount) external {
        balanceOf[to] += amount;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        return true;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        return move(msg.sender, to, amount);
    }

    /// Everybody has allowed everybody everything: what no proof allows then needs no allowance.
    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        return move(from, to, amount);
    }

    function move(address from, address to, uint256 amount) private returns (bool) {
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        return true;
    }
}

/// A smart wallet (EIP-1271) that accepts every signature, or none.
contract Wallet {
    bool private immutable accepts;

    constructor(bool accepts_) {
        accepts = accepts_;
    }

    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        return accepts ? this.isValidSignature.selector : bytes4(0);
    }
}
