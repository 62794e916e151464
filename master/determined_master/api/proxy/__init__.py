"""Ways into tasks for browsers and for programs that speak their own protocols."""
