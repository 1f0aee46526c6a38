"""The modules that run inside the child process, started by path and without the rest of the package.

The modules import nothing from above this folder, and little from the standard library, because every program pays for
each import. Each file sets ``TYPE_CHECKING`` itself, because importing ``typing`` takes as long as starting the
interpreter.
"""
