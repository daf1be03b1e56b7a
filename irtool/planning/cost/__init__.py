"""What operators, weights and layouts cost: times, bytes, and what a device holds."""
