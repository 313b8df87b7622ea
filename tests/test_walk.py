"""What `make walk` counts."""

from tests.walk import walk


def test_the_walk_of_a_payment_begins_at_the_connection_and_ends_at_the_receiver() -> None:
    to_the_answer, in_all = walk()

    assert "web/transport/fast_connection.py" in to_the_answer
    assert "adapters/callback_sender.py" in in_all - to_the_answer
    assert len(to_the_answer) <= 22
    assert len(in_all) <= 30
