"""All questions asked of a run, and their answers ranked: what is wrong, and what would mend it."""
