-- Why an intent came to nothing, beside the words for people; rows of before get the cause that their words tell.
ALTER TABLE chain_intent ADD COLUMN cause text;
ALTER TABLE chain_intent ADD COLUMN error4 bytea;

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
    WHEN reason LIKE 'NonceUsed(%' THEN '\x1be5cb2f'::bytea
    WHEN reason LIKE 'TooEarly(%' THEN '\x2a35a324'::bytea
    WHEN reason LIKE 'PullFailed(%' THEN '\x9eb69816'::bytea
    WHEN reason LIKE 'InsufficientDeposit(%' THEN '\x35028342'::bytea
    WHEN reason LIKE 'InvalidSignature(%' THEN '\x8baa579f'::bytea
    WHEN reason LIKE 'OrderExpired(%' THEN '\xc56873ba'::bytea
    WHEN reason LIKE 'Overfilled(%' THEN '\x133df171'::bytea
    WHEN reason LIKE 'NotRelayer(%' THEN '\xc64891a5'::bytea
    WHEN reason LIKE 'Paused(%' THEN '\x9e87fac8'::bytea
    WHEN reason LIKE 'CapExceeded(%' THEN '\xc2373395'::bytea
    WHEN reason LIKE 'NativeTransferFailed(%' THEN '\xbf7e35a3'::bytea
END WHERE cause = 'REVERTED';
