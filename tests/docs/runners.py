"""The tests that run the blocks of a page in place of the general test of a language."""

from collections.abc import Mapping
from typing import Final

RUN_BY: Final[Mapping[str, Mapping[str, str]]] = {
    "sh": {
        "docs/backup.md": "tests/docs/test_backup_page.py",
        "docs/books.md": "tests/docs/test_books_page.py",
        "docs/certifying.md": "tests/certify/test_certifying_page.py",
        "docs/comparing.md": "tests/docs/test_comparing_page.py",
        "docs/control-api.md": "tests/test_interface_page.py",
        "docs/interface.md": "tests/test_interface_page.py",
        "docs/networks/hubtel.md": "tests/docs/test_network_pages.py",
        "docs/networks/mtn_momo.md": "tests/docs/test_network_pages.py",
        "docs/networks/paystack.md": "tests/docs/test_network_pages.py",
        "docs/networks/upstream.md": "tests/docs/test_network_pages.py",
        "docs/networks/smpp.md": "tests/docs/test_network_pages.py",
        "docs/production.md": "tests/docs/test_network_pages.py",
        "docs/stuck-payments.md": "tests/docs/test_stuck_payments_page.py",
    },
    "console": {"docs/tour.md": "tests/test_tour.py"},
    "python": {
        "README.md": "tests/docs/test_python_examples.py",
        "docs/callbacks.md": "tests/test_interface_page.py",
        "docs/certifying.md": "tests/certify/test_certifying_page.py",
        "docs/testing.md": "tests/test_testing_page.py",
        "docs/writing-a-network.md": "tests/docs/test_writing_a_network.py",
    },
    "toml": {"docs/certifying.md": "tests/certify/test_certifying_page.py"},
    "json": {},
}
