"""From a low program to a checked package and its simulated cycles: the stages that run the others."""
