"""The road in, and the way back: one way for every write, what waits for a person, and the past."""
