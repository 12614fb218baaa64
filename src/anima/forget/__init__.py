"""What the owner wants gone, wherever it stands, with the proof that it is."""
