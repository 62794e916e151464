"""The name under which notebooks of runner 0.5.4 import the grid runner; its code is in determined_workflows."""
