"""SMS: encoding, pages, and the states of a message."""
