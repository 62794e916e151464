"""What keeps a launch from starting, told in the user's words."""


class LaunchError(Exception):
    """Nothing was started, or nothing more can be; the text says why and what to do."""


class UsageError(LaunchError):
    """A launch line that cannot be used."""
