"""The public MTN MoMo API as a network: collections, deposits and payouts. Source: D39."""
