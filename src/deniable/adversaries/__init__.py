"""Observers that try to tell what a model was trained on."""
