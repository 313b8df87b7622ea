"""Rules of production mode: what a network may say about an attempt, and what follows from it."""
