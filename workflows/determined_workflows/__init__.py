"""Other ways of describing work than an experiment configuration."""
