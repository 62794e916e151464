"""Streams into tasks: terminals, commands and connections to ports, between a client and an agent."""
