"""How weights move from step to step: rules of optimizers, learning rates, and whatever follows the noise."""
