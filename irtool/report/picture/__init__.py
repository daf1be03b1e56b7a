"""Pictures of dumps: what is drawn, how it looks, and as which file it is written."""
