"""What a recorded run shows of its noise, gradients, batches and moves: a file for each subject."""
