"""Where documents live. `folder` is a folder on disk; every module that opens a file of a home is in this package."""
