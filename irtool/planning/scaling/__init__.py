"""A network of other sizes from the dump of a small one: which size is what, and what follows."""
