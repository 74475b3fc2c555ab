"""One chart a file; each is made only where a study has the data for it."""
