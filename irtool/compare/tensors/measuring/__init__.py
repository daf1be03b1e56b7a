"""How far two tensors are apart, here or on other machines."""
