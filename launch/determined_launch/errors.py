"""Errors that prevent a launch, with texts for the user."""


class LaunchError(Exception):
    """Raised if a launch cannot start or continue. The text names the reason and what to do."""


class UsageError(LaunchError):
    """Raised for a launch line that cannot be used."""
