"""The graph of a dump on a page: its columns, tree, facts, and the page that shows it alone."""
