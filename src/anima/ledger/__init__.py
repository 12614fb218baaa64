"""What happened in a home, provable and without a word of text: the chained records and what follows from them."""
