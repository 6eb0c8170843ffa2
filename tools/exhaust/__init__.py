"""Every float there is: all inputs of a dtype through every head that ships, against the bounds that are proven."""
