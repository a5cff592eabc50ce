"""Networks that are trained with per-example gradients: the usual ones, their layers, images and losses."""
