"""OpenSSH into tasks: its configuration, and the connection that it uses."""
