"""A small recurrent language model with a matrix memory, trained from a Hydra configuration."""
