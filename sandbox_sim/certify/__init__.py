"""Certify: runs the bad days of a payment against an application, and gives a verdict on each.

`cases` reads what happens in each case, `configuration` how the application is reached. `runner`
carries the cases out with a gateway on a virtual clock; `reports` writes the results.
"""
