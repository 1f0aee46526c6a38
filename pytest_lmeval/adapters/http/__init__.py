"""Code shared by adapters that query a server over HTTP."""
