"""The exit statuses by which the supervisor tells why a program ended; below 128, it is the program's own."""

from __future__ import annotations

# Plus the number of the signal.
SIGNALLED = 128
STOPPED = 200
OVER_CPU = 201
OVER_PROCESSES = 202
OVER_DISK = 203
OVER_THREADS = 204
NOT_STARTED = 205
# What a server tells first is the number of the process, in so many bytes.
PID_SIZE = 4
