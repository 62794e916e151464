"""The command channel between the containers of one allocation, admitted by the allocation's key."""
