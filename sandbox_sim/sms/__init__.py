"""SMS: encoding and pages, the rules that decide, and the operations."""
