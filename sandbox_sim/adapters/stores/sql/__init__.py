"""What the SQLite and the Postgres store share: tables, rows and statements."""
