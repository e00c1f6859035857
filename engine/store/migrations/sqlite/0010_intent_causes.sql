-- Why an intent came to nothing, beside the words for people; rows of before get the cause that their words tell.
ALTER TABLE chain_intent ADD COLUMN cause TEXT;
ALTER TABLE chain_intent ADD COLUMN error4 BLOB;

UPDATE chain_intent SET cause = CASE
    WHEN reason = 'its deadline passed before it was mined' THEN 'DEADLINE'
    WHEN reason = 'it was given up before it was mined' THEN 'GIVEN_UP'
    WHEN reason = 'out of gas' THEN 'OUT_OF_GAS'
    WHEN reason = 'reverted; the block before it would have taken it' THEN 'UNEXPLAINED'
    WHEN reason LIKE 'reverted; asking why failed: %' THEN 'UNKNOWN'
    WHEN mined_hash IS NOT NULL THEN 'REVERTED'
    WHEN EXISTS (SELECT 1 FROM chain_tx WHERE chain_tx.effect_key = chain_intent.effect_key) THEN 'REFUSED'
    ELSE 'FORBIDDEN'
END WHERE reason <> '';

UPDATE chain_intent SET error4 = CASE
    WHEN reason LIKE 'NonceUsed(%' THEN X'1be5cb2f'
    WHEN reason LIKE 'TooEarly(%' THEN X'2a35a324'
    WHEN reason LIKE 'PullFailed(%' THEN X'9eb69816'
    WHEN reason LIKE 'InsufficientDeposit(%' THEN X'35028342'
    WHEN reason LIKE 'InvalidSignature(%' THEN X'8baa579f'
    WHEN reason LIKE 'OrderExpired(%' THEN X'c56873ba'
    WHEN reason LIKE 'Overfilled(%' THEN X'133df171'
    WHEN reason LIKE 'NotRelayer(%' THEN X'c64891a5'
    WHEN reason LIKE 'Paused(%' THEN X'9e87fac8'
    WHEN reason LIKE 'CapExceeded(%' THEN X'c2373395'
    WHEN reason LIKE 'NativeTransferFailed(%' THEN X'bf7e35a3'
END WHERE cause = 'REVERTED';
