"""Places for everything in a picture, without graphviz."""
