"""Connecting: a home's place in the agents people already use. `hosts/` has a module for each of them."""
