"""Code that adapters share to query a server over HTTP."""
