"""What each file of a home is, and who may see it: the file table, its dialects, listeners, and the homes a user trusts."""
