"""What is proven of heads over grids."""
