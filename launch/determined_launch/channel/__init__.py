"""The command channel between the containers of one allocation. The allocation's key authenticates both ends."""
