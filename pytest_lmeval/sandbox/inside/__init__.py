"""Modules that run inside the child process, which imports them by path, without the rest of the package.

The modules import nothing from outside this folder except a few modules of the standard library, because each import
delays every program. Each file sets ``TYPE_CHECKING`` itself, because importing ``typing`` takes as long as starting
the interpreter.
"""
