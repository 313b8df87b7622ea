"""The parts that the SQLite and Postgres stores share: tables, rows and statements."""
