"""The proxy: names of services of tasks, and what passes between a client and a task."""
