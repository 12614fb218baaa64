"""Retrieval quality beside plain FTS5; see `anima.cli.bench`. Usage: python benchmarks/retrieval.py FILE…"""

from anima.cli.bench import main

main()
