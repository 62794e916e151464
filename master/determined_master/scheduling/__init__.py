"""Pure placement: a frozen view of a pool in, a plan out."""
