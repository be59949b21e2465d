"""Fed-SmoothAdv on Flower."""
