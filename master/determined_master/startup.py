"""Imported first: the master's parts are loaded without collecting, which finds nothing in them and takes a tenth of
the start. What serves turns it on."""

import gc

gc.disable()
