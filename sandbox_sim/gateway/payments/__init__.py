"""Taking payments, settling them, and answering queries about them."""
