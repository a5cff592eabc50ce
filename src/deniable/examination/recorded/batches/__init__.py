"""The batches of a run: who was drawn, who was left out, and what the model was given of them."""
