"""Dreaming: what recalls speak for becomes memory, what is no longer so leaves it.

Promise: nothing is promoted that was not asked for on several days, is junk, is known, is no longer so, or does not come
from trusted words alone; the same material gives the same plan.
Not here: searching, which writes the recalls down (search), and the sentences that are compared (text).
"""
