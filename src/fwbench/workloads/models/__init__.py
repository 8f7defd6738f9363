"""The models that are trained: layers, networks, and the losses they must have."""
