"""Tasks: distributions over environments with a cost in each, for training and for experiments."""
