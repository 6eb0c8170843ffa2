"""What is proven of heads on a scalar, and of what they are put together to."""
