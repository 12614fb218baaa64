"""What words say: reading Markdown, words, days and sentences. Pure: no home, no file, no clock."""
