"""Learners: networks whose forward pass is gradient descent."""
