"""Processing payments, settling transactions, and answering queries about them."""
