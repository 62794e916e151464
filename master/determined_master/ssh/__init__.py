"""Keys of SSH connections into tasks."""
