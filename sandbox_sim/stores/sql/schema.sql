-- The tables of a new file or database. Braces mark what the two databases spell differently: a key
-- that the database increments, and the triggers that count the bytes of inboxes.
--
-- A `number` gives the order of rows, because several may be written at one time of a frozen clock.
-- A `position` does the same for the messages of a service and mode, without gaps. Columns named
-- `at` or `..._at` are times, in microseconds since 1970, and no others.

-- callback_target, landing_target: addresses with their secrets, where the other column has them
-- masked.
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
    by_hand SMALLINT NOT NULL,
    callback_target TEXT,
    landing_target TEXT,
    mode TEXT NOT NULL DEFAULT 'S',
    replaced_by TEXT,
    refund_of TEXT,
    refunded_by TEXT NOT NULL DEFAULT '',
    refund_reason TEXT NOT NULL DEFAULT '',
    reversed_at BIGINT
);
CREATE INDEX transactions_by_id ON transactions (transaction_id, service_id, number);
CREATE UNIQUE INDEX transactions_by_network_id ON transactions (network_transaction_id);
CREATE INDEX transactions_by_collection ON transactions (refund_of) WHERE refund_of IS NOT NULL;
-- An id is unique in mode P.
CREATE UNIQUE INDEX transactions_of_production ON transactions (service_id, transaction_id)
    WHERE mode = 'P';

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
    held SMALLINT NOT NULL,
    target TEXT,
    mode TEXT NOT NULL DEFAULT 'S'
);
CREATE INDEX callbacks_by_service ON callbacks (service_id, number);
CREATE INDEX callbacks_held ON callbacks (service_id, number) WHERE held = 1;

CREATE TABLE jobs (
    number {serial},
    due_at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    service_id BIGINT NOT NULL,
    subject TEXT NOT NULL,
    lease_until BIGINT NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX jobs_free ON jobs (due_at, number) WHERE lease_until = 0;
CREATE INDEX jobs_leased ON jobs (lease_until) WHERE lease_until > 0;
CREATE INDEX jobs_failed ON jobs (number) WHERE failures >= 3;

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
    error_message TEXT,
    mode TEXT NOT NULL DEFAULT 'S'
);
CREATE INDEX messages_by_id ON messages (processing_id);
CREATE INDEX messages_by_batch ON messages (batch_id) WHERE batch_id IS NOT NULL;
CREATE UNIQUE INDEX messages_by_position ON messages (service_id, mode, position);

-- size: the memory that a delivery takes, in bytes.
CREATE TABLE inbox (
    number {serial},
    name TEXT NOT NULL,
    id TEXT NOT NULL,
    at BIGINT NOT NULL,
    document TEXT NOT NULL,
    size BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX inbox_by_name ON inbox (name, number);
CREATE INDEX inbox_sizes ON inbox (number, size);

-- Service 0 stands for requests that name none. mode: NULL where no credentials were recognised.
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
    duration_ms DOUBLE PRECISION NOT NULL,
    mode TEXT
);
CREATE INDEX requests_by_service ON requests (service_id, number, mode);

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
CREATE TABLE numbers (
    first_free BIGINT
);
INSERT INTO numbers VALUES (NULL);

-- One row, empty until the clock is set.
CREATE TABLE clock (
    shift BIGINT,
    frozen_at BIGINT
);
INSERT INTO clock VALUES (NULL, NULL);

-- request: what goes out, as JSON; empty once the attempt is final.
CREATE TABLE attempts (
    serial {serial},
    id TEXT NOT NULL UNIQUE,
    service_id BIGINT NOT NULL,
    network_transaction_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    network TEXT NOT NULL,
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
    request TEXT NOT NULL,
    transaction_id TEXT NOT NULL DEFAULT '',
    sent_currency TEXT NOT NULL DEFAULT '',
    confirmed_amount TEXT,
    refund_of TEXT NOT NULL DEFAULT ''
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

-- document: method, path, query, headers, and the body in Base64.
CREATE TABLE raw_notifications (
    number {serial},
    network TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    document TEXT NOT NULL,
    state TEXT NOT NULL,
    tries INTEGER NOT NULL,
    attempt_id TEXT NOT NULL,
    note TEXT NOT NULL,
    scrubbed SMALLINT NOT NULL DEFAULT 0
);
CREATE INDEX raw_notifications_by_state ON raw_notifications (network, state, number);
CREATE INDEX raw_notifications_by_time ON raw_notifications (received_at, number);
CREATE INDEX raw_notifications_with_secrets ON raw_notifications (number) WHERE scrubbed = 0;

CREATE TABLE exchanges (
    number {serial},
    attempt_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    document TEXT NOT NULL
);
CREATE INDEX exchanges_by_attempt ON exchanges (attempt_id, number);

-- The parts in which messages go to a network, each with an identifier of its own.
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

-- What people decided about attempts.
CREATE TABLE decisions (
    number {serial},
    attempt_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    status TEXT NOT NULL,
    by TEXT NOT NULL,
    reason TEXT NOT NULL,
    forced SMALLINT NOT NULL,
    network_said TEXT NOT NULL,
    amount TEXT,
    network_id TEXT NOT NULL DEFAULT ''
);
CREATE INDEX decisions_by_attempt ON decisions (attempt_id, number);

-- The bytes that all inboxes take: the sum of all slots. Triggers keep it, so it also counts what a
-- restore or a person at the database writes.
CREATE TABLE inbox_bytes (
    slot BIGINT PRIMARY KEY,
    kept BIGINT NOT NULL
);
{inbox_triggers}

-- The ledger; rows are never changed. service_id is 0 and wallet NULL where both accounts are ours.
-- pending: the number of the transfer that a `post` or a `void` ends.
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
CREATE INDEX transfers_by_service ON transfers (service_id, number);
CREATE INDEX transfers_live ON transfers (number) WHERE mode = 'P';
CREATE UNIQUE INDEX transfers_ended ON transfers (pending) WHERE pending IS NOT NULL;
CREATE INDEX transfers_in_suspense ON transfers (number)
    WHERE mode = 'P' AND (debit LIKE 'suspense/%' OR credit LIKE 'suspense/%');

-- Who made a transfer by hand, and why; rows are never changed.
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

-- The balances of wallets.
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

-- How many requests of a service and mode are stored, and how many were deleted for newer ones.
CREATE TABLE journals (
    service_id BIGINT NOT NULL,
    mode TEXT NOT NULL DEFAULT 'S',
    kept BIGINT NOT NULL,
    dropped BIGINT NOT NULL,
    PRIMARY KEY (service_id, mode)
);

-- What the behaviour was changed to, as JSON; no row while it is as configured.
CREATE TABLE behaviour (
    document TEXT NOT NULL
);

-- A number that the database gave; a restored copy has another one.
CREATE TABLE origin (
    identity BIGINT NOT NULL
);
