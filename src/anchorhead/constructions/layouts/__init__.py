"""Where neurons and heads go: tokens, features and registers, in the two layouts."""
