"""Layouts of learners: the numbers that are free in a step, put into the attentions that make it.

What a network of any layout then computes is read from its weights alone: lemmas.learners.
"""
