"""`anchorhead learn`: fits a model to a table in context, beside scikit-learn's own."""
