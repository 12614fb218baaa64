"""Conversations: the agent's hand in a home, its tools, its transcripts, and what is written down before a cut."""
