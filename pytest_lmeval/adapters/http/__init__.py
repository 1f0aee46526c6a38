"""Code shared by adapters that ask a server over HTTP."""
