"""What a run leaves on disk beside its dumps, each format read into a typed model."""
