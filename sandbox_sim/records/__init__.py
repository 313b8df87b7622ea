"""What is saved and shown: a transaction, a message, a callback, a job, an attempt."""
