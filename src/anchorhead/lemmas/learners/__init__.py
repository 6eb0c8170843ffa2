"""What is proven of learners."""
