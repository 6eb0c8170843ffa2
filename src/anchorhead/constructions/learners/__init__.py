"""Learners as attention layers: what a step of gradient descent becomes in each layout, and how well."""
