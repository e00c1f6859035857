// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Owned} from "../lib/Owned.sol";
import {Tokens} from "../lib/Tokens.sol";
import {DevMessageTransmitter, IMessageHandlerV2} from "./DevMessageTransmitter.sol";
import {DevToken} from "./DevToken.sol";

/// Burns tokens on one chain and mints them on another as CCTP V2 does, for devnets and tests, never for production: its
/// calls, events, words of refusal and the bytes of a message's body are the public ones of a TokenMessengerV2, and the
/// calls of its owner that list tokens those of a TokenMinterV2. It mints what anybody may mint: a DevToken. What is burnt
/// goes to the zero address, and stays in the token's totalSupply.
///
///     version 4 | burnToken 32 | mintRecipient 32 | amount 32 | messageSender 32 | maxFee 32 | feeExecuted 32
///     | expirationBlock 32 | hookData
///
/// Source: circlefin/evm-cctp-contracts, TokenMessengerV2, TokenMinterV2 and BurnMessageV2.
contract DevTokenMessenger is Owned, IMessageHandlerV2 {
    event DepositForBurn(
        address indexed burnToken,
        uint256 amount,
        address indexed depositor,
        bytes32 mintRecipient,
        uint32 destinationDomain,
        bytes32 destinationTokenMessenger,
        bytes32 destinationCaller,
        uint256 maxFee,
        uint32 indexed minFinalityThreshold,
        bytes hookData
    );
    event MintAndWithdraw(
        address indexed mintRecipient, uint256 amount, address indexed mintToken, uint256 feeCollected
    );

    uint32 public constant messageBodyVersion = 1;
    uint32 private constant LEAST_FINALITY = 500;
    uint256 private constant HEAD = 228;

    DevMessageTransmitter public immutable localMessageTransmitter;
    address public immutable feeRecipient;
    mapping(uint32 domain => bytes32) public remoteTokenMessengers;
    /// Zero where the token is not burnt here.
    mapping(address token => uint256) public burnLimitsPerMessage;
    mapping(uint32 domain => mapping(bytes32 token => address)) private localTokens;

    constructor(DevMessageTransmitter transmitter, address feeRecipient_, address owner_) Owned(owner_) {
        localMessageTransmitter = transmitter;
        feeRecipient = feeRecipient_;
    }

    function addRemoteTokenMessenger(uint32 domain, bytes32 tokenMessenger) external onlyOwner {
        remoteTokenMessengers[domain] = tokenMessenger;
    }

    function setMaxBurnAmountPerMessage(address localToken, uint256 burnLimitPerMessage) external onlyOwner {
        burnLimitsPerMessage[localToken] = burnLimitPerMessage;
    }

    function linkTokenPair(address localToken, uint32 remoteDomain, bytes32 remoteToken) external onlyOwner {
        localTokens[remoteDomain][remoteToken] = localToken;
    }

    function getLocalToken(uint32 remoteDomain, bytes32 remoteToken) external view returns (address) {
        return localTokens[remoteDomain][remoteToken];
    }

    /// The caller's tokens; at most `maxFee` of them is kept at the destination.
    function depositForBurn(
        uint256 amount,
        uint32 destinationDomain,
        bytes32 mintRecipient,
        address burnToken,
        bytes32 destinationCaller,
        uint256 maxFee,
        uint32 minFinalityThreshold
    ) external {
        require(amount > 0, "Amount must be nonzero");
        require(mintRecipient != 0, "Mint recipient must be nonzero");
        require(maxFee < amount, "Max fee must be less than amount");
        bytes32 messenger = remoteTokenMessengers[destinationDomain];
        require(messenger != 0, "No TokenMessenger for domain");
        burn(burnToken, amount);
        bytes memory body = abi.encodePacked(
            messageBodyVersion,
            uint256(uint160(burnToken)),
            mintRecipient,
            amount,
            uint256(uint160(msg.sender)),
            maxFee,
            uint256(0),
            uint256(0)
        );
        localMessageTransmitter.sendMessage(
            destinationDomain, messenger, destinationCaller, minFinalityThreshold, body
        );
        emit DepositForBurn(
            burnToken,
            amount,
            msg.sender,
            mintRecipient,
            destinationDomain,
            messenger,
            destinationCaller,
            maxFee,
            minFinalityThreshold,
            ""
        );
    }

    function handleReceiveFinalizedMessage(
        uint32 remoteDomain,
        bytes32 sender,
        uint32,
        bytes calldata messageBody
    ) external returns (bool) {
        return mint(remoteDomain, sender, messageBody);
    }

    function handleReceiveUnfinalizedMessage(
        uint32 remoteDomain,
        bytes32 sender,
        uint32 finalityThresholdExecuted,
        bytes calldata messageBody
    ) external returns (bool) {
        require(finalityThresholdExecuted >= LEAST_FINALITY, "Unsupported finality threshold");
        return mint(remoteDomain, sender, messageBody);
    }

    function burn(address token, uint256 amount) private {
        uint256 limit = burnLimitsPerMessage[token];
        require(limit > 0, "Burn token not supported");
        require(amount <= limit, "Burn amount exceeds per tx limit");
        require(Tokens.pull(token, msg.sender, address(this), amount), "Transfer operation failed");
        require(Tokens.send(token, address(0), amount), "Burn operation failed");
    }

    function mint(uint32 remoteDomain, bytes32 sender, bytes calldata body) private returns (bool) {
        require(msg.sender == address(localMessageTransmitter), "Invalid message transmitter");
        require(
            sender != 0 && remoteTokenMessengers[remoteDomain] == sender, "Remote TokenMessenger unsupported"
        );
        require(body.length >= HEAD, "Invalid message: too short");
        require(uint32(bytes4(body[0:4])) == messageBodyVersion, "Invalid message body version");
        uint256 expiration = uint256(bytes32(body[196:228]));
        require(expiration == 0 || expiration > block.number, "Message expired and must be re-signed");
        uint256 amount = uint256(bytes32(body[68:100]));
        uint256 fee = uint256(bytes32(body[164:196]));
        require(fee == 0 || fee < amount, "Fee equals or exceeds amount");
        require(fee <= uint256(bytes32(body[132:164])), "Fee exceeds max fee");
        address token = localTokens[remoteDomain][bytes32(body[4:36])];
        require(token != address(0), "Mint token not supported");
        address recipient = address(uint160(uint256(bytes32(body[36:68]))));
        DevToken(token).mint(recipient, amount - fee);
        if (fee > 0) DevToken(token).mint(feeRecipient, fee);
        emit MintAndWithdraw(recipient, amount - fee, token, fee);
        return true;
    }
}
