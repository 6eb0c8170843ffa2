"""Models of scikit-learn whose fit is a forward pass."""
