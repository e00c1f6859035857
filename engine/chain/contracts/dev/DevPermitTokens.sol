// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// ERC-20 tokens for tests whose permits differ from EIP-2612 in one point each, as permits of tokens in use do.
abstract contract DevPermitToken {
    error PermitExpired();
    error PermitInvalid();

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    bytes32 internal constant FULL_DOMAIN =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant PERMIT_TYPE =
        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");

    string public name;
    string public symbol;
    uint8 public immutable decimals;
    uint256 public totalSupply;
    mapping(address owner => uint256) public balanceOf;
    mapping(address owner => mapping(address spender => uint256)) public allowance;
    mapping(address owner => uint256) internal nonceOf;

    constructor(string memory name_, string memory symbol_, uint8 decimals_) {
        name = name_;
        symbol = symbol_;
        decimals = decimals_;
    }

    function mint(address to, uint256 amount) external {
        totalSupply += amount;
        balanceOf[to] += amount;
        emit Transfer(address(0), to, amount);
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allow(msg.sender, spender, amount);
        return true;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        move(msg.sender, to, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        if (allowed != type(uint256).max) allowance[from][msg.sender] = allowed - amount;
        move(from, to, amount);
        return true;
    }

    function domain() internal view virtual returns (bytes32) {
        return keccak256(
            abi.encode(FULL_DOMAIN, keccak256(bytes(name)), keccak256("1"), block.chainid, address(this))
        );
    }

    function permitExact(
        address owner,
        address spender,
        uint256 value,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) internal {
        if (block.timestamp > deadline) revert PermitExpired();
        checkSigned(
            owner, keccak256(abi.encode(PERMIT_TYPE, owner, spender, value, nonceOf[owner]++, deadline)), v, r, s
        );
        allow(owner, spender, value);
    }

    function checkSigned(address owner, bytes32 structHash, uint8 v, bytes32 r, bytes32 s) internal view {
        address recovered = ecrecover(keccak256(abi.encodePacked(hex"1901", domain(), structHash)), v, r, s);
        if (recovered == address(0) || recovered != owner) revert PermitInvalid();
    }

    function allow(address owner, address spender, uint256 amount) internal {
        allowance[owner][spender] = amount;
        emit Approval(owner, spender, amount);
    }

    function move(address from, address to, uint256 amount) private {
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        emit Transfer(from, to, amount);
    }
}

/// All or nothing, by a permit that names its nonce; no other permit. As DAI on Ethereum.
contract DevTokenPermitsAll is DevPermitToken {
    bytes32 public constant PERMIT_TYPEHASH =
        keccak256("Permit(address holder,address spender,uint256 nonce,uint256 expiry,bool allowed)");

    constructor(string memory name_, string memory symbol_, uint8 decimals_) DevPermitToken(name_, symbol_, decimals_) {}

    function nonces(address owner) external view returns (uint256) {
        return nonceOf[owner];
    }

    function version() external pure returns (string memory) {
        return "1";
    }

    function DOMAIN_SEPARATOR() external view returns (bytes32) {
        return domain();
    }

    function permit(
        address holder,
        address spender,
        uint256 nonce,
        uint256 expiry,
        bool allowed,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        if (expiry != 0 && block.timestamp > expiry) revert PermitExpired();
        if (nonce != nonceOf[holder]++) revert PermitInvalid();
        checkSigned(holder, keccak256(abi.encode(PERMIT_TYPEHASH, holder, spender, nonce, expiry, allowed)), v, r, s);
        allow(holder, spender, allowed ? type(uint256).max : 0);
    }
}

/// With the permit of EIP-2612, whose domain and functions beside it the tokens below vary.
abstract contract DevTokenPermitsExactly is DevPermitToken {
    function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external
    {
        permitExact(owner, spender, value, deadline, v, r, s);
    }
}

/// The chain's id is the domain's salt, and the separator's function is misspelt. As bridged USDC (USDC.e) on Polygon.
contract DevTokenSalted is DevTokenPermitsExactly {
    constructor(string memory name_, string memory symbol_, uint8 decimals_) DevPermitToken(name_, symbol_, decimals_) {}

    function nonces(address owner) external view returns (uint256) {
        return nonceOf[owner];
    }

    function EIP712_VERSION() external pure returns (string memory) {
        return "1";
    }

    function getDomainSeperator() external view returns (bytes32) {
        return domain();
    }

    function domain() internal view override returns (bytes32) {
        return keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,address verifyingContract,bytes32 salt)"),
                keccak256(bytes(name)),
                keccak256("1"),
                address(this),
                bytes32(block.chainid)
            )
        );
    }
}

/// A domain without a version, and no function that tells it. As UNI.
contract DevTokenUnversioned is DevTokenPermitsExactly {
    constructor(string memory name_, string memory symbol_, uint8 decimals_) DevPermitToken(name_, symbol_, decimals_) {}

    function nonces(address owner) external view returns (uint256) {
        return nonceOf[owner];
    }

    function domain() internal view override returns (bytes32) {
        return keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,uint256 chainId,address verifyingContract)"),
                keccak256(bytes(name)),
                block.chainid,
                address(this)
            )
        );
    }
}

/// The domain has another name and version than the token, and EIP-5267 tells them. As OpenZeppelin's ERC20Permit in
/// tokens that were renamed.
contract DevTokenRenamed is DevTokenPermitsExactly {
    constructor(string memory name_, string memory symbol_, uint8 decimals_) DevPermitToken(name_, symbol_, decimals_) {}

    function nonces(address owner) external view returns (uint256) {
        return nonceOf[owner];
    }

    function DOMAIN_SEPARATOR() external view returns (bytes32) {
        return domain();
    }

    function eip712Domain()
        external
        view
        returns (bytes1, string memory, string memory, uint256, address, bytes32, uint256[] memory)
    {
        return (hex"0f", "Old Name", "2.1", block.chainid, address(this), 0, new uint256[](0));
    }

    function domain() internal view override returns (bytes32) {
        return keccak256(
            abi.encode(FULL_DOMAIN, keccak256("Old Name"), keccak256("2.1"), block.chainid, address(this))
        );
    }
}

/// Nonces by another function. As Aave's first aTokens.
contract DevTokenOwnNonces is DevTokenPermitsExactly {
    constructor(string memory name_, string memory symbol_, uint8 decimals_) DevPermitToken(name_, symbol_, decimals_) {}

    function _nonces(address owner) external view returns (uint256) {
        return nonceOf[owner];
    }

    function DOMAIN_SEPARATOR() external view returns (bytes32) {
        return domain();
    }
}

/// A domain of a name that no function tells. As Yearn's vaults, whose shares are all of the domain "Yearn Vault".
contract DevTokenUntold is DevTokenPermitsExactly {
    constructor(string memory name_, string memory symbol_, uint8 decimals_) DevPermitToken(name_, symbol_, decimals_) {}

    function nonces(address owner) external view returns (uint256) {
        return nonceOf[owner];
    }

    function DOMAIN_SEPARATOR() external view returns (bytes32) {
        return domain();
    }

    function domain() internal view override returns (bytes32) {
        return keccak256(
            abi.encode(FULL_DOMAIN, keccak256("Untold"), keccak256("1"), block.chainid, address(this))
        );
    }
}

/// Any call succeeds, and a permit does nothing. As WETH on Ethereum, with whose approvals Multichain's router was emptied
/// by permits that nobody had signed; and nonces, so that it looks like a token with permits.
contract DevTokenDeaf is DevPermitToken {
    constructor(string memory name_, string memory symbol_, uint8 decimals_) DevPermitToken(name_, symbol_, decimals_) {}

    fallback() external {}

    function nonces(address owner) external view returns (uint256) {
        return nonceOf[owner];
    }

    function DOMAIN_SEPARATOR() external view returns (bytes32) {
        return domain();
    }
}
