"""The part that runs inside the child process, started by path and without the rest of the package.

Nothing here may import from above this folder, and little from the standard library: every program pays for it. That
is why each file sets ``TYPE_CHECKING`` itself: importing ``typing`` costs as much as starting the interpreter.
"""
