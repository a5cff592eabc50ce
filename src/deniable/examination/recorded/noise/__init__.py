"""The noise of a step beside that of earlier ones, and its single numbers."""
