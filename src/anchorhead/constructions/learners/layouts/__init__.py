"""Layouts of learners: the numbers that are free in a step, put into the attentions that make it.

Each says how its network is written from a step (`build`, in float64; written.py rounds it to a dtype), and where the
step's numbers then stand (`read`). What such a network computes is proven from the step: lemmas.learners.
"""
