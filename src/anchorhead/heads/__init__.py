"""The atom: softmax heads on a scalar. The solver, one placement a file, and what rounding does to them."""
