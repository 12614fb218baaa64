"""The road out: what a listener is told, in which order, and who the agent is."""
