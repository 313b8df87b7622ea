"""The settings: `schema` says what there is, `loading` reads file, environment and flags."""
