"""What is proven of heads with a key of their own."""
