"""Self-contained html pages: what a page holds, and how it is written."""
