"""The migration that adds the parts of messages; it never changes once released."""

from typing import Final

# The parts in which messages go to a network, each with an identifier of its own.
MESSAGE_PARTS: Final = """
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
"""
