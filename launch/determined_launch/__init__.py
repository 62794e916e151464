"""Launch layers: the ground floor, standard library only."""
