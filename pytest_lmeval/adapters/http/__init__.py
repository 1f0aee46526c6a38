"""What adapters share that ask a server over HTTP: how a request is sent, what a reply may be, what is never shown."""
