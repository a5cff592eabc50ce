"""Many runs: closed forms, contour inversion, or a grid with proved bounds."""
