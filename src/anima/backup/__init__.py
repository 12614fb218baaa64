"""The whole home, out and in: snapshots, restoring, export and import."""
