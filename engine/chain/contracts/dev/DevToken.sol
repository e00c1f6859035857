// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// An ERC-20 for devnets and tests: anyone mints, and it can be as odd as tokens are.
contract DevToken {
    error InsufficientBalance(address owner, uint256 balance);
    error InsufficientAllowance(address spender, uint256 allowance);
    error Blocked(address account);
    error PermitExpired();
    error PermitInvalid();

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    bytes32 private constant DOMAIN_TYPE =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant PERMIT_TYPE =
        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
    bytes32 private constant DAI_PERMIT_TYPE =
        keccak256("Permit(address holder,address spender,uint256 nonce,uint256 expiry,bool allowed)");

    string public name;
    string public symbol;
    uint8 public immutable decimals;
    uint256 public totalSupply;
    mapping(address owner => uint256) public balanceOf;
    mapping(address owner => mapping(address spender => uint256)) public allowance;
    mapping(address owner => uint256) public nonces;

    /// Of each transfer, burnt.
    uint128 public transferFeeBps;
    /// Raw units that a transfer brings less than was sent, as where balances are shares and round.
    uint128 public rounding;
    mapping(address account => bool) public isBlocked;
    /// Called in the middle of each transfer, with `hookData`: what a hostile token would do.
    address public hook;
    bytes public hookData;

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

    function setTransferFee(uint256 bps) external {
        transferFeeBps = uint128(bps);
    }

    function setRounding(uint256 units) external {
        rounding = uint128(units);
    }

    function setBlocked(address account, bool blocked) external {
        isBlocked[account] = blocked;
    }

    function setHook(address target, bytes calldata data) external {
        hook = target;
        hookData = data;
    }

    function approve(address spender, uint256 amount) external virtual returns (bool) {
        allow(msg.sender, spender, amount);
        return true;
    }

    function transfer(address to, uint256 amount) external virtual returns (bool) {
        move(msg.sender, to, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external virtual returns (bool) {
        useAllowance(from, amount);
        move(from, to, amount);
        return true;
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(
            abi.encode(DOMAIN_TYPE, keccak256(bytes(name)), keccak256("1"), block.chainid, address(this))
        );
    }

    /// EIP-2612.
    function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external
    {
        if (block.timestamp > deadline) revert PermitExpired();
        bytes32 structHash = keccak256(abi.encode(PERMIT_TYPE, owner, spender, value, nonces[owner]++, deadline));
        checkSigned(owner, structHash, v, r, s);
        allow(owner, spender, value);
    }

    /// As DAI has it: all or nothing.
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
        if (nonce != nonces[holder]++) revert PermitInvalid();
        checkSigned(holder, keccak256(abi.encode(DAI_PERMIT_TYPE, holder, spender, nonce, expiry, allowed)), v, r, s);
        allow(holder, spender, allowed ? type(uint256).max : 0);
    }

    function allow(address owner, address spender, uint256 amount) internal {
        allowance[owner][spender] = amount;
        emit Approval(owner, spender, amount);
    }

    function useAllowance(address from, uint256 amount) internal {
        uint256 allowed = allowance[from][msg.sender];
        if (allowed == type(uint256).max) return;
        if (allowed < amount) revert InsufficientAllowance(msg.sender, allowed);
        allowance[from][msg.sender] = allowed - amount;
    }

    function move(address from, address to, uint256 amount) internal {
        if (isBlocked[from]) revert Blocked(from);
        if (isBlocked[to]) revert Blocked(to);
        uint256 balance = balanceOf[from];
        if (balance < amount) revert InsufficientBalance(from, balance);
        uint256 fee = amount * transferFeeBps / 10_000 + rounding;
        balanceOf[from] = balance - amount;
        balanceOf[to] += amount - fee;
        emit Transfer(from, to, amount - fee);
        if (fee > 0) {
            totalSupply -= fee;
            emit Transfer(from, address(0), fee);
        }
        if (hook != address(0)) {
            (bool done, bytes memory reason) = hook.call(hookData);
            if (!done) {
                assembly ("memory-safe") {
                    revert(add(reason, 32), mload(reason))
                }
            }
        }
    }

    function checkSigned(address owner, bytes32 structHash, uint8 v, bytes32 r, bytes32 s) private view {
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", DOMAIN_SEPARATOR(), structHash));
        address recovered = ecrecover(digest, v, r, s);
        if (recovered == address(0) || recovered != owner) revert PermitInvalid();
    }
}

/// One that returns nothing, and whose allowance must be zero before it is set, as USDT's.
contract DevTokenWithoutReturn is DevToken {
    error AllowanceNotZero();
    error AllowanceTooLarge(uint256 most);

    /// The largest amount that may be allowed: some tokens keep it in fewer bits.
    uint256 public allowanceMax = type(uint256).max;

    constructor(string memory name_, string memory symbol_, uint8 decimals_) DevToken(name_, symbol_, decimals_) {}

    function setAllowanceMax(uint256 amount) external {
        allowanceMax = amount;
    }

    function approve(address spender, uint256 amount) external override returns (bool) {
        if (amount > allowanceMax) revert AllowanceTooLarge(allowanceMax);
        if (amount > 0 && allowance[msg.sender][spender] > 0) revert AllowanceNotZero();
        allow(msg.sender, spender, amount);
        nothing();
    }

    function transfer(address to, uint256 amount) external override returns (bool) {
        move(msg.sender, to, amount);
        nothing();
    }

    function transferFrom(address from, address to, uint256 amount) external override returns (bool) {
        useAllowance(from, amount);
        move(from, to, amount);
        nothing();
    }

    function nothing() private pure {
        assembly {
            return(0, 0)
        }
    }
}
