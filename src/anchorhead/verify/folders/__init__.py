"""Folders of attention-only models: every layer, from the weights beside the original ones."""
