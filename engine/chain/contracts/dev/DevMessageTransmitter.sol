// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

interface IMessageHandlerV2 {
    function handleReceiveFinalizedMessage(
        uint32 sourceDomain,
        bytes32 sender,
        uint32 finalityThresholdExecuted,
        bytes calldata messageBody
    ) external returns (bool success);

    function handleReceiveUnfinalizedMessage(
        uint32 sourceDomain,
        bytes32 sender,
        uint32 finalityThresholdExecuted,
        bytes calldata messageBody
    ) external returns (bool success);
}

/// Sends and receives messages between chains as CCTP V2 does, for devnets and tests, never for production: its calls,
/// events, words of refusal and the bytes of a message are the public ones of a MessageTransmitterV2. One attester, fixed
/// at construction, signs all messages.
///
/// The sent message has no nonce: the attester gives it one, fills in what was executed, and signs the result.
///
///     version 4 | sourceDomain 4 | destinationDomain 4 | nonce 32 | sender 32 | recipient 32 | destinationCaller 32
///     | minFinalityThreshold 4 | finalityThresholdExecuted 4 | messageBody
///
/// Source: circlefin/evm-cctp-contracts, MessageTransmitterV2 and MessageV2.
contract DevMessageTransmitter {
    event MessageSent(bytes message);
    event MessageReceived(
        address indexed caller,
        uint32 sourceDomain,
        bytes32 indexed nonce,
        bytes32 sender,
        uint32 indexed finalityThresholdExecuted,
        bytes messageBody
    );

    uint32 public constant version = 1;
    uint256 public constant signatureThreshold = 1;
    uint256 public constant maxMessageBodySize = 8192;
    uint32 private constant FINALIZED = 2000;
    uint256 private constant HEAD = 148;

    uint32 public immutable localDomain;
    address private immutable attester;
    mapping(bytes32 nonce => uint256) public usedNonces;

    constructor(uint32 localDomain_, address attester_) {
        localDomain = localDomain_;
        attester = attester_;
    }

    function isEnabledAttester(address account) external view returns (bool) {
        return account == attester;
    }

    function sendMessage(
        uint32 destinationDomain,
        bytes32 recipient,
        bytes32 destinationCaller,
        uint32 minFinalityThreshold,
        bytes calldata messageBody
    ) external {
        require(destinationDomain != localDomain, "Domain is local domain");
        require(messageBody.length <= maxMessageBodySize, "Message body exceeds max size");
        require(recipient != 0, "Recipient must be nonzero");
        emit MessageSent(
            abi.encodePacked(
                version,
                localDomain,
                destinationDomain,
                bytes32(0),
                uint256(uint160(msg.sender)),
                recipient,
                destinationCaller,
                minFinalityThreshold,
                uint32(0),
                messageBody
            )
        );
    }

    /// By anybody, once for a nonce, unless the message names its caller.
    function receiveMessage(bytes calldata message, bytes calldata attestation) external returns (bool success) {
        checkAttestation(keccak256(message), attestation);
        require(message.length >= HEAD, "Invalid message: too short");
        require(uint32(bytes4(message[8:12])) == localDomain, "Invalid destination domain");
        bytes32 caller = bytes32(message[108:140]);
        require(caller == 0 || uint256(caller) == uint160(msg.sender), "Invalid caller for message");
        require(uint32(bytes4(message[0:4])) == version, "Invalid message version");
        bytes32 nonce = bytes32(message[12:44]);
        require(usedNonces[nonce] == 0, "Nonce already used");
        usedNonces[nonce] = 1;
        handle(message);
        emit MessageReceived(
            msg.sender,
            uint32(bytes4(message[4:8])),
            nonce,
            bytes32(message[44:76]),
            uint32(bytes4(message[144:148])),
            message[HEAD:]
        );
        return true;
    }

    function handle(bytes calldata message) private {
        IMessageHandlerV2 recipient = IMessageHandlerV2(address(uint160(uint256(bytes32(message[76:108])))));
        uint32 sourceDomain = uint32(bytes4(message[4:8]));
        bytes32 sender = bytes32(message[44:76]);
        uint32 executed = uint32(bytes4(message[144:148]));
        bool isHandled = executed < FINALIZED
            ? recipient.handleReceiveUnfinalizedMessage(sourceDomain, sender, executed, message[HEAD:])
            : recipient.handleReceiveFinalizedMessage(sourceDomain, sender, executed, message[HEAD:]);
        require(isHandled, "message was not handled");
    }

    function checkAttestation(bytes32 digest, bytes calldata attestation) private view {
        require(attestation.length == 65, "Invalid attestation length");
        bytes32 s = bytes32(attestation[32:64]);
        require(uint256(s) <= 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0, "invalid signature");
        address signer = ecrecover(digest, uint8(attestation[64]), bytes32(attestation[0:32]), s);
        require(
            signer != address(0) && signer == attester,
            "Signature verification failed: signer is not enabled attester"
        );
    }
}
