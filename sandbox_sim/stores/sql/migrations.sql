-- What brings a file or database of an earlier version to the next one, version by version. A part
-- never changes once it is released. schema.sql has the tables of the newest version.

-- >> 1
CREATE TABLE transactions (
    number {serial},
    operation TEXT NOT NULL,
    service_id BIGINT NOT NULL,
    transaction_id TEXT NOT NULL,
    reference TEXT NOT NULL,
    amount TEXT NOT NULL,
    nw TEXT NOT NULL,
    party TEXT NOT NULL,
    payment_mode TEXT NOT NULL,
    currency_code TEXT NOT NULL,
    callback_url TEXT NOT NULL,
    landing_page TEXT NOT NULL,
    network_transaction_id TEXT NOT NULL,
    client_key TEXT NOT NULL,
    initiated_at BIGINT NOT NULL,
    status TEXT NOT NULL,
    decided_at BIGINT,
    override TEXT,
    by_hand SMALLINT NOT NULL
);
CREATE INDEX transactions_by_id ON transactions (service_id, transaction_id, number);
CREATE UNIQUE INDEX transactions_by_network_id ON transactions (network_transaction_id);

CREATE TABLE checkouts (
    id TEXT PRIMARY KEY,
    service_id BIGINT NOT NULL,
    network_transaction_id TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX checkouts_by_expiry ON checkouts (expires_at);

CREATE TABLE callbacks (
    number {serial},
    id TEXT NOT NULL UNIQUE,
    service_id BIGINT NOT NULL,
    transaction_id TEXT NOT NULL,
    network_transaction_id TEXT NOT NULL,
    url TEXT NOT NULL,
    profile TEXT NOT NULL,
    body TEXT NOT NULL,
    signature TEXT,
    created_at BIGINT NOT NULL,
    state TEXT NOT NULL,
    attempts TEXT NOT NULL,
    note TEXT,
    held SMALLINT NOT NULL
);
CREATE INDEX callbacks_by_service ON callbacks (service_id, number);
CREATE INDEX callbacks_held ON callbacks (service_id, number) WHERE held = 1;

CREATE TABLE jobs (
    number {serial},
    due_at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    service_id BIGINT NOT NULL,
    subject TEXT NOT NULL,
    lease_until BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX jobs_free ON jobs (due_at, number) WHERE lease_until = 0;
CREATE INDEX jobs_leased ON jobs (lease_until) WHERE lease_until > 0;

CREATE TABLE postings (
    number {serial},
    service_id BIGINT NOT NULL,
    account TEXT NOT NULL,
    amount TEXT NOT NULL,
    reason TEXT NOT NULL,
    subject TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX postings_by_service ON postings (service_id, number);

CREATE TABLE balances (
    service_id BIGINT NOT NULL,
    account TEXT NOT NULL,
    amount TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (service_id, account)
);

CREATE TABLE messages (
    number {serial},
    service_id BIGINT NOT NULL,
    position BIGINT NOT NULL,
    processing_id TEXT NOT NULL,
    batch_id TEXT,
    customer_number TEXT NOT NULL,
    message TEXT NOT NULL,
    sender_id TEXT NOT NULL,
    encoding TEXT NOT NULL,
    char_count INTEGER NOT NULL,
    page_count INTEGER NOT NULL,
    status TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    sent_at BIGINT,
    provider_code TEXT,
    error_message TEXT
);
CREATE UNIQUE INDEX messages_by_position ON messages (service_id, position);
CREATE INDEX messages_by_id ON messages (processing_id);
CREATE INDEX messages_by_batch ON messages (batch_id) WHERE batch_id IS NOT NULL;

CREATE TABLE inbox (
    number {serial},
    name TEXT NOT NULL,
    id TEXT NOT NULL,
    at BIGINT NOT NULL,
    document TEXT NOT NULL
);
CREATE INDEX inbox_by_name ON inbox (name, number);

-- Service 0 stands for requests that name none; the ids of services begin at 1.
CREATE TABLE requests (
    number {serial},
    id TEXT NOT NULL,
    at BIGINT NOT NULL,
    service_id BIGINT NOT NULL,
    operation TEXT,
    transaction_id TEXT,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    request TEXT NOT NULL,
    http_status INTEGER NOT NULL,
    code TEXT NOT NULL,
    rule TEXT NOT NULL,
    why TEXT NOT NULL,
    warnings TEXT NOT NULL,
    answer TEXT NOT NULL,
    duration_ms DOUBLE PRECISION NOT NULL
);
CREATE INDEX requests_by_service ON requests (service_id, number);

-- For each service, how many requests are stored, and how many were deleted for newer ones.
CREATE TABLE journals (
    service_id BIGINT PRIMARY KEY,
    kept BIGINT NOT NULL,
    dropped BIGINT NOT NULL
);

-- service_id is NULL where a rule is for every service.
CREATE TABLE rules (
    number {serial},
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    service_id BIGINT,
    match TEXT NOT NULL,
    effect TEXT NOT NULL,
    times BIGINT,
    created_at BIGINT NOT NULL,
    seen BIGINT NOT NULL,
    used BIGINT NOT NULL
);

-- Each snapshot also has a table `snapshot_<number>_<table>` for each table that it copies.
CREATE TABLE snapshots (
    number {serial},
    name TEXT NOT NULL UNIQUE,
    service_id BIGINT,
    taken_at BIGINT NOT NULL,
    records TEXT NOT NULL
);

-- One row: the first number that is not reserved; NULL before the first reservation.
CREATE TABLE numbers (first_free BIGINT);
INSERT INTO numbers VALUES (NULL);

-- One row, empty until the clock is set.
CREATE TABLE clock (
    shift BIGINT,
    frozen_at BIGINT
);
INSERT INTO clock VALUES (NULL, NULL);

-- >> 2
ALTER TABLE transactions ADD COLUMN callback_target TEXT;
ALTER TABLE transactions ADD COLUMN landing_target TEXT;
ALTER TABLE callbacks ADD COLUMN target TEXT;

-- >> 3
ALTER TABLE inbox ADD COLUMN size BIGINT NOT NULL DEFAULT 0;
UPDATE inbox SET size = length(document);
CREATE INDEX inbox_sizes ON inbox (number, size);

-- >> 4
ALTER TABLE callbacks ADD COLUMN mode TEXT NOT NULL DEFAULT 'S';

CREATE TABLE live_transactions (
    number {serial},
    operation TEXT NOT NULL,
    service_id BIGINT NOT NULL,
    transaction_id TEXT NOT NULL,
    reference TEXT NOT NULL,
    amount TEXT NOT NULL,
    nw TEXT NOT NULL,
    party TEXT NOT NULL,
    payment_mode TEXT NOT NULL,
    currency_code TEXT NOT NULL,
    callback_url TEXT NOT NULL,
    landing_page TEXT NOT NULL,
    network_transaction_id TEXT NOT NULL UNIQUE,
    client_key TEXT NOT NULL,
    initiated_at BIGINT NOT NULL,
    status TEXT NOT NULL,
    decided_at BIGINT,
    override TEXT,
    by_hand SMALLINT NOT NULL,
    callback_target TEXT,
    landing_target TEXT,
    UNIQUE (service_id, transaction_id)
);
CREATE INDEX live_transactions_by_service ON live_transactions (service_id, number);

-- request: what goes out, as JSON; empty once the attempt is final.
CREATE TABLE attempts (
    serial {serial},
    id TEXT NOT NULL UNIQUE,
    service_id BIGINT NOT NULL,
    network_transaction_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    network TEXT NOT NULL,
    credentials TEXT NOT NULL,
    reference TEXT NOT NULL,
    operation TEXT NOT NULL,
    amount TEXT NOT NULL,
    currency TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    cancelled SMALLINT NOT NULL,
    submits INTEGER NOT NULL,
    polls INTEGER NOT NULL,
    missed INTEGER NOT NULL,
    asked_at BIGINT,
    next_ask_at BIGINT,
    failing_since BIGINT,
    decided_at BIGINT,
    network_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    mismatch TEXT NOT NULL,
    contradiction TEXT NOT NULL,
    contradicted_by TEXT,
    settled_by TEXT NOT NULL,
    settled_reason TEXT NOT NULL,
    request TEXT NOT NULL
);
-- The reference of an attempt that the network never took may be used again.
CREATE UNIQUE INDEX attempts_by_reference ON attempts (network, reference, service_id)
    WHERE outcome NOT IN ('not_sent', 'refused');
CREATE INDEX attempts_by_payment ON attempts (network_transaction_id, number);
CREATE INDEX attempts_by_network_id ON attempts (network, network_id) WHERE network_id <> '';
CREATE INDEX attempts_open ON attempts (network, created_at)
    WHERE outcome IN ('pending', 'unknown');
CREATE INDEX attempts_doubted ON attempts (serial)
    WHERE settled_by = '' AND (mismatch <> '' OR contradiction <> '');

-- The names of accounts are those that the ledger shows, such as service/55/payout/held/GHS.
CREATE TABLE accounts (
    name TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    asset TEXT NOT NULL,
    service_id BIGINT NOT NULL,
    wallet TEXT,
    network TEXT NOT NULL,
    balance TEXT NOT NULL
);
CREATE INDEX accounts_by_service ON accounts (service_id);

CREATE TABLE holds (
    number {serial},
    id TEXT NOT NULL UNIQUE,
    service_id BIGINT NOT NULL,
    wallet TEXT NOT NULL,
    currency TEXT NOT NULL,
    amount TEXT NOT NULL,
    placed_at BIGINT NOT NULL,
    state TEXT NOT NULL,
    ended_at BIGINT
);
CREATE INDEX holds_open ON holds (number) WHERE state = 'open';

CREATE TABLE entries (
    number {serial},
    reason TEXT NOT NULL,
    subject TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX entries_by_subject ON entries (subject, number);

CREATE TABLE legs (
    number {serial},
    entry BIGINT NOT NULL,
    account TEXT NOT NULL,
    amount TEXT NOT NULL
);
CREATE INDEX legs_by_account ON legs (account, number);

-- document: method, path, query, headers, and the body in Base64.
CREATE TABLE raw_notifications (
    number {serial},
    network TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    document TEXT NOT NULL,
    state TEXT NOT NULL,
    tries INTEGER NOT NULL,
    attempt_id TEXT NOT NULL,
    note TEXT NOT NULL
);

CREATE TABLE exchanges (
    number {serial},
    attempt_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    document TEXT NOT NULL
);
CREATE INDEX exchanges_by_attempt ON exchanges (attempt_id, number);

-- >> 5
ALTER TABLE attempts ADD COLUMN transaction_id TEXT NOT NULL DEFAULT '';
CREATE INDEX live_transactions_by_time ON live_transactions (initiated_at);

-- >> 6
CREATE TABLE live_messages (
    number {serial},
    service_id BIGINT NOT NULL,
    position BIGINT NOT NULL,
    processing_id TEXT NOT NULL,
    batch_id TEXT,
    customer_number TEXT NOT NULL,
    message TEXT NOT NULL,
    sender_id TEXT NOT NULL,
    encoding TEXT NOT NULL,
    char_count INTEGER NOT NULL,
    page_count INTEGER NOT NULL,
    status TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    sent_at BIGINT,
    provider_code TEXT,
    error_message TEXT
);
CREATE UNIQUE INDEX live_messages_by_position ON live_messages (service_id, position);
CREATE INDEX live_messages_by_id ON live_messages (processing_id);
CREATE INDEX live_messages_by_batch ON live_messages (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX live_messages_by_time ON live_messages (created_at);

-- >> 7
ALTER TABLE requests ADD COLUMN mode TEXT;
DROP INDEX requests_by_service;
CREATE INDEX requests_by_service ON requests (service_id, number, mode);

-- As `journals`, for the requests of mode P.
CREATE TABLE live_journals (
    service_id BIGINT PRIMARY KEY,
    kept BIGINT NOT NULL,
    dropped BIGINT NOT NULL
);

-- >> 8
CREATE TABLE message_parts (
    serial {serial},
    network TEXT NOT NULL,
    attempt_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    total INTEGER NOT NULL,
    network_id TEXT NOT NULL,
    outcome TEXT NOT NULL
);
CREATE UNIQUE INDEX message_parts_by_attempt ON message_parts (attempt_id, number);
CREATE INDEX message_parts_by_network_id ON message_parts (network, network_id);

-- >> 9
CREATE TABLE decisions (
    number {serial},
    attempt_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    status TEXT NOT NULL,
    by TEXT NOT NULL,
    reason TEXT NOT NULL,
    forced SMALLINT NOT NULL,
    network_said TEXT NOT NULL
);
CREATE INDEX decisions_by_attempt ON decisions (attempt_id, number);

-- >> 10
ALTER TABLE attempts ADD COLUMN sent_currency TEXT NOT NULL DEFAULT '';

-- >> 11
ALTER TABLE jobs ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_failed ON jobs (number) WHERE failures >= 3;

ALTER TABLE raw_notifications ADD COLUMN scrubbed SMALLINT NOT NULL DEFAULT 0;
CREATE INDEX raw_notifications_by_state ON raw_notifications (network, state, number);
CREATE INDEX raw_notifications_by_time ON raw_notifications (received_at, number);
CREATE INDEX raw_notifications_with_secrets ON raw_notifications (number) WHERE scrubbed = 0;

-- >> 12
CREATE TABLE inbox_bytes (
    slot BIGINT PRIMARY KEY,
    kept BIGINT NOT NULL
);
{inbox_triggers}
UPDATE inbox_bytes SET kept = (SELECT coalesce(sum(size), 0) FROM inbox) WHERE slot = 0;

-- >> 13
CREATE TABLE transfers (
    number {serial},
    mode TEXT NOT NULL,
    kind TEXT NOT NULL,
    debit TEXT NOT NULL,
    credit TEXT NOT NULL,
    amount TEXT NOT NULL,
    reason TEXT NOT NULL,
    subject TEXT NOT NULL,
    at BIGINT NOT NULL,
    pending BIGINT,
    service_id BIGINT NOT NULL,
    wallet TEXT
);
CREATE INDEX transfers_by_subject ON transfers (subject, number) WHERE mode = 'P';
CREATE TABLE wallets (
    mode TEXT NOT NULL,
    name TEXT NOT NULL,
    service_id BIGINT NOT NULL,
    available TEXT NOT NULL,
    pending TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (service_id, mode, name)
);

-- sums: what the accounts of ours in mode P had after the transfer with this number, as JSON.
CREATE TABLE ledger_checkpoints (
    number BIGINT PRIMARY KEY,
    sums TEXT NOT NULL
);

INSERT INTO transfers
    (mode, kind, debit, credit, amount, reason, subject, at, service_id, wallet)
SELECT 'S', 'posted',
    CASE WHEN amount LIKE '-%' THEN 'service/' || service_id || '/' || account || '/' || CASE
        account WHEN 'sms' THEN 'SMS' WHEN 'airtime' THEN 'AIRTIME' ELSE 'GHS' END ELSE CASE WHEN
        account IN ('sms', 'airtime') OR reason = 'opening' THEN 'issued/' || CASE account WHEN
        'sms' THEN 'SMS' WHEN 'airtime' THEN 'AIRTIME' ELSE 'GHS' END ELSE
        'network/sandbox/clearing/GHS' END END,
    CASE WHEN amount LIKE '-%' THEN CASE WHEN account IN ('sms', 'airtime') OR reason = 'opening'
        THEN 'issued/' || CASE account WHEN 'sms' THEN 'SMS' WHEN 'airtime' THEN 'AIRTIME' ELSE
        'GHS' END ELSE 'network/sandbox/clearing/GHS' END ELSE 'service/' || service_id || '/' ||
        account || '/' || CASE account WHEN 'sms' THEN 'SMS' WHEN 'airtime' THEN 'AIRTIME' ELSE
        'GHS' END END,
    CASE WHEN amount LIKE '-%' THEN substr(amount, 2) ELSE amount END,
    reason, subject, at + 0, service_id, account
FROM postings ORDER BY number;

INSERT INTO wallets (mode, name, service_id, available, pending, updated_at)
SELECT 'S', 'service/' || service_id || '/' || account || '/' || CASE account WHEN 'sms' THEN
    'SMS' WHEN 'airtime' THEN 'AIRTIME' ELSE 'GHS' END, service_id, amount, '0', updated_at + 0
    FROM balances;

INSERT INTO transfers
    (mode, kind, debit, credit, amount, reason, subject, at, service_id, wallet)
SELECT 'P',
    CASE entries.reason WHEN 'hold' THEN 'pending' WHEN 'commit' THEN 'post' WHEN 'void' THEN 'void'
        ELSE 'posted' END,
    CASE WHEN debit.wallet IS NULL THEN debit.name ELSE 'service/' || debit.service_id || '/' ||
        debit.wallet || '/' || debit.asset END,
    CASE WHEN entries.reason IN ('hold', 'void') THEN CASE WHEN debit.asset IN ('SMS', 'AIRTIME')
        THEN 'issued/' || debit.asset ELSE 'network/' || coalesce((SELECT network FROM attempts
        WHERE network_transaction_id = entries.subject ORDER BY number DESC LIMIT 1), 'unknown')
        || '/clearing/' || debit.asset END ELSE CASE WHEN credit.wallet IS NULL THEN credit.name
        ELSE 'service/' || credit.service_id || '/' || credit.wallet || '/' || credit.asset END
        END,
    gain.amount,
    CASE entries.reason WHEN 'hold' THEN 'spent' WHEN 'commit' THEN 'spent'
        WHEN 'void' THEN 'returned' ELSE entries.reason END,
    entries.subject, entries.at,
    CASE WHEN debit.wallet IS NULL THEN credit.service_id ELSE debit.service_id END,
    coalesce(debit.wallet, credit.wallet)
FROM entries
JOIN legs AS loss ON loss.entry = entries.number AND loss.amount LIKE '-%'
JOIN legs AS gain ON gain.entry = entries.number AND gain.amount NOT LIKE '-%'
JOIN accounts AS debit ON debit.name = loss.account
JOIN accounts AS credit ON credit.name = gain.account
ORDER BY entries.number;

UPDATE transfers SET pending = (
    SELECT begun.number FROM transfers AS begun
    WHERE begun.mode = 'P' AND begun.subject = transfers.subject AND begun.kind = 'pending'
) WHERE kind IN ('post', 'void');

INSERT INTO wallets (mode, name, service_id, available, pending, updated_at)
SELECT 'P', CASE WHEN free.wallet IS NULL THEN free.name ELSE 'service/' || free.service_id || '/'
    || free.wallet || '/' || free.asset END, free.service_id, free.balance, coalesce(held.balance,
    '0'),
    coalesce((SELECT max(entries.at) FROM entries JOIN legs ON legs.entry = entries.number
        WHERE legs.account IN (free.name, held.name)), 0)
FROM accounts AS free
LEFT JOIN accounts AS held ON held.kind = 'held' AND held.service_id = free.service_id
    AND held.wallet = free.wallet AND held.asset = free.asset
WHERE free.kind = 'available';

CREATE INDEX transfers_by_service ON transfers (service_id, number);
CREATE INDEX transfers_live ON transfers (number) WHERE mode = 'P';
CREATE UNIQUE INDEX transfers_ended ON transfers (pending) WHERE pending IS NOT NULL;
DROP TABLE postings;
DROP TABLE balances;
DROP TABLE holds;
DROP TABLE legs;
DROP TABLE entries;
DROP TABLE accounts;

-- >> 14
ALTER TABLE transactions ADD COLUMN mode TEXT NOT NULL DEFAULT 'S';
INSERT INTO transactions (
    operation, service_id, transaction_id, reference, amount, nw, party, payment_mode,
    currency_code, callback_url, landing_page, network_transaction_id, client_key, initiated_at,
    status, decided_at, override, by_hand, callback_target, landing_target, mode
) SELECT
    operation, service_id, transaction_id, reference, amount, nw, party, payment_mode,
    currency_code, callback_url, landing_page, network_transaction_id, client_key, initiated_at,
    status, decided_at, override, by_hand, callback_target, landing_target, 'P'
FROM live_transactions ORDER BY number;
DROP TABLE live_transactions;
CREATE UNIQUE INDEX transactions_of_production ON transactions (service_id, transaction_id)
    WHERE mode = 'P';

ALTER TABLE messages ADD COLUMN mode TEXT NOT NULL DEFAULT 'S';
DROP INDEX messages_by_position;
CREATE UNIQUE INDEX messages_by_position ON messages (service_id, mode, position);
INSERT INTO messages (
    service_id, position, processing_id, batch_id, customer_number, message, sender_id, encoding,
    char_count, page_count, status, created_at, sent_at, provider_code, error_message, mode
) SELECT
    service_id, position, processing_id, batch_id, customer_number, message, sender_id, encoding,
    char_count, page_count, status, created_at, sent_at, provider_code, error_message, 'P'
FROM live_messages ORDER BY number;
DROP TABLE live_messages;

ALTER TABLE transactions ADD COLUMN replaced_by TEXT;

ALTER TABLE attempts DROP COLUMN credentials;

ALTER TABLE journals RENAME TO sandbox_journals;
CREATE TABLE journals (
    service_id BIGINT NOT NULL,
    mode TEXT NOT NULL DEFAULT 'S',
    kept BIGINT NOT NULL,
    dropped BIGINT NOT NULL,
    PRIMARY KEY (service_id, mode)
);
INSERT INTO journals SELECT service_id, 'S', kept, dropped FROM sandbox_journals;
INSERT INTO journals SELECT service_id, 'P', kept, dropped FROM live_journals;
DROP TABLE sandbox_journals;
DROP TABLE live_journals;

-- >> 15
CREATE TABLE behaviour (document TEXT NOT NULL);

-- >> 16
ALTER TABLE attempts ADD COLUMN confirmed_amount TEXT;
ALTER TABLE decisions ADD COLUMN amount TEXT;
ALTER TABLE decisions ADD COLUMN network_id TEXT NOT NULL DEFAULT '';

-- >> 17
CREATE TABLE manual_entries (
    transfer BIGINT PRIMARY KEY,
    by TEXT NOT NULL,
    why TEXT NOT NULL,
    reference TEXT NOT NULL,
    reverses BIGINT,
    closes BIGINT,
    ends_at BIGINT
);
CREATE UNIQUE INDEX manual_entries_reversed ON manual_entries (reverses)
    WHERE reverses IS NOT NULL;
CREATE INDEX transfers_in_suspense ON transfers (number)
    WHERE mode = 'P' AND (debit LIKE 'suspense/%' OR credit LIKE 'suspense/%');

-- >> 18
ALTER TABLE transactions ADD COLUMN refund_of TEXT;
ALTER TABLE transactions ADD COLUMN refunded_by TEXT NOT NULL DEFAULT '';
ALTER TABLE transactions ADD COLUMN refund_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE transactions ADD COLUMN reversed_at BIGINT;
CREATE INDEX transactions_by_collection ON transactions (refund_of) WHERE refund_of IS NOT NULL;
ALTER TABLE attempts ADD COLUMN refund_of TEXT NOT NULL DEFAULT '';

-- >> 19
DROP INDEX transactions_by_id;
CREATE INDEX transactions_by_id ON transactions (transaction_id, service_id, number);

-- >> 20
CREATE TABLE origin (identity BIGINT NOT NULL);
