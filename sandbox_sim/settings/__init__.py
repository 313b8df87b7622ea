"""The settings: `schema` defines them, `loading` reads file, environment and flags."""
