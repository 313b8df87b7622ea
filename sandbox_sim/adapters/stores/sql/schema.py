"""The tables, as numbered migrations that run in order and never change once released.

Braces mark what the two databases spell differently: `{serial}` is a key that the database
increments. A `number` gives the order of rows, because several may be written at one time of a
frozen clock. A `position` does the same for the messages of a service, without gaps.
"""

from typing import Final

from sandbox_sim.adapters.stores.sql.message_part_table import MESSAGE_PARTS
from sandbox_sim.domain.jobs import LIVE_KINDS

# The tables whose rows belong to a service, and those that all services share. A reset empties them
# and a snapshot copies them. Columns named `at` or `…_at` are times, and no others. The tables of
# production mode are not among them.
OF_SERVICES: Final = (
    *("transactions", "checkouts", "callbacks", "jobs", "postings", "balances", "messages"),
    *("requests", "journals", "rules"),
)
OF_ALL: Final = ("inbox",)
# The rows of these tables that a reset and a snapshot take: all but those of mode P.
_LIVE_KINDS: Final = ", ".join(f"'{kind}'" for kind in sorted(LIVE_KINDS))
OF_MODE_S: Final = {
    "jobs": f"kind NOT IN ({_LIVE_KINDS})",
    "callbacks": "mode = 'S'",
    "requests": "coalesce(mode, 'S') = 'S'",
}

MIGRATIONS: Final = (
    """
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
""",
    # Addresses with their secrets, where the column of their name has them masked.
    """
ALTER TABLE transactions ADD COLUMN callback_target TEXT;
ALTER TABLE transactions ADD COLUMN landing_target TEXT;
ALTER TABLE callbacks ADD COLUMN target TEXT;
""",
    # The memory that a delivery takes, in bytes: it limits all inboxes together.
    """
ALTER TABLE inbox ADD COLUMN size BIGINT NOT NULL DEFAULT 0;
UPDATE inbox SET size = length(document);
CREATE INDEX inbox_sizes ON inbox (number, size);
""",
    # Production mode.
    """
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
""",
    # The client's id is kept where a transaction is deleted because nothing came of it.
    """
ALTER TABLE attempts ADD COLUMN transaction_id TEXT NOT NULL DEFAULT '';
CREATE INDEX live_transactions_by_time ON live_transactions (initiated_at);
""",
    # SMS of mode P.
    """
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
""",
    # The mode of requests; NULL where no credentials were recognised, and in those from before.
    """
ALTER TABLE requests ADD COLUMN mode TEXT;
DROP INDEX requests_by_service;
CREATE INDEX requests_by_service ON requests (service_id, number, mode);

-- As `journals`, for the requests of mode P.
CREATE TABLE live_journals (
    service_id BIGINT PRIMARY KEY,
    kept BIGINT NOT NULL,
    dropped BIGINT NOT NULL
);
""",
    MESSAGE_PARTS,
)


def script(version: int, *, serial: str) -> str:
    """The migration to a version, counted from 1, in the SQL of one database."""
    return MIGRATIONS[version - 1].format(serial=serial)
