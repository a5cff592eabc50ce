"""Moments E_Q[e^{sL}] of one step's loss along a vertical line, with errors that docs/theory proves."""
