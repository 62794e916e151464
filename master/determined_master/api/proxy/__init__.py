"""Ways into tasks over HTTP and websockets: pages for browsers, and tunnels for protocols of programs."""
