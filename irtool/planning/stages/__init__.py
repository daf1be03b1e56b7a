"""Plans with pipeline stages: where to cut the network, and a plan for each stage."""
