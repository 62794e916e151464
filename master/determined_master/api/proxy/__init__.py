"""Ways into tasks over HTTP and websockets: pages for browsers, and tunnels for programs with protocols of their own."""
