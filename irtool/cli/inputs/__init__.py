"""What commands read: dumps, clusters, profiles, strategies, recorded orders."""
