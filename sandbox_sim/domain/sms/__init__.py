"""SMS: encoding, pages, and the life of a message."""
