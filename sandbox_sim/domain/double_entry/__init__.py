"""The ledger of production mode: double entry, holds, and what must hold for all of it."""
