"""`python -m anima.cli`."""

from anima.cli import main

main()
