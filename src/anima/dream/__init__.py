"""Dreaming, the part that decides: tallies of recalls, scores, gates, junk, facts over time, and the plan of a night.

Promise: pure; values in, a frozen Plan out, the same for the same material. Nothing is promoted that was not asked for on
several days, is junk, is known, is no longer so, or does not come from trusted words alone.
Not here: reading and writing (sweeps), when to dream (the schedule).
"""
