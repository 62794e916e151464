"""HTTP and websockets between browsers or programs and ports of tasks."""
