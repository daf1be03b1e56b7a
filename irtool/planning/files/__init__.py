"""Plans in forms that MindSpore reads: strategy files, names of their nodes, ``shard`` lines."""
