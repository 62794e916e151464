"""The name under which notebooks of mlrunner 0.5.9 import the grid runner; its code is in determined_workflows."""
