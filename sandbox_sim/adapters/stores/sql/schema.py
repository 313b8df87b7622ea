"""The tables, as numbered migrations that run in order and never change once released.

Braces mark what the two databases spell differently: `{serial}` is a key that the database
increments. A `number` gives the order of rows, because several may be written at one time of a
frozen clock. A `position` does the same for the messages of a service, without gaps.
"""

from typing import Final

# The tables whose rows belong to a service, and those that all services share. A reset empties them
# and a snapshot copies them. Columns named `at` or `…_at` are times, and no others.
OF_SERVICES: Final = (
    *("transactions", "checkouts", "callbacks", "jobs", "postings", "balances", "messages"),
    *("requests", "journals", "rules"),
)
OF_ALL: Final = ("inbox",)

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
)


def script(version: int, *, serial: str) -> str:
    """The migration to a version, counted from 1, in the SQL of one database."""
    return MIGRATIONS[version - 1].format(serial=serial)
