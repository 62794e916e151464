"""The program that runs in a task of the cluster; it is copied into the context."""
