"""Finding: units of text, words and meaning, one ranking, and an index that can be deleted and made again."""
