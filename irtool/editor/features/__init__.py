"""One module a feature: a function from a document (and a position) to what the protocol wants."""
