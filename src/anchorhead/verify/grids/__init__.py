"""Heads on grids of anchors: functions of several variables."""
