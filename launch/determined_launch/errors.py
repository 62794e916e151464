"""Errors that keep a launch from starting, worded for the user."""


class LaunchError(Exception):
    """Nothing was started, or nothing more can be; the text says why and what to do."""


class UsageError(LaunchError):
    """A launch line that cannot be used."""
