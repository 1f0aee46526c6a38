# All that a test can see of its process, but for what differs from process to process and which modules are there.

import gc
import json
import locale
import os
import re
import signal
import sys
import threading


def streams():
    shown = ("encoding", "errors", "line_buffering", "write_through")
    return [getattr(stream, name) for stream in (sys.__stdout__, sys.__stderr__) for name in shown]


def test_what_is_seen(pytestconfig):
    # Readline puts two into the environment of new processes, behind Python's back.
    changing = ("PYTEST_CURRENT_TEST", "PYTEST_XDIST_TESTRUNUID", "COLUMNS", "LINES")
    variables = {name: value for name, value in os.environ.items() if name not in changing}
    main = sys.modules["__main__"]
    plugins = pytestconfig.pluginmanager
    hooks = {name: [each.plugin_name for each in hook.get_hookimpls()] for name, hook in vars(plugins.hook).items()}
    unnamed = re.compile(r"^[0-9]+$")
    seen = {
        "plugins": [unnamed.sub("?", name) for name, plugin in plugins.list_name_plugin() if plugin is not None],
        "hooks": {name: [unnamed.sub("?", each) for each in known] for name, known in hooks.items()},
        "argv": sys.argv,
        "orig_argv": sys.orig_argv,
        "flags": repr(sys.flags),
        "path": sys.path,
        "meta_path": [getattr(finder, "__name__", type(finder).__name__) for finder in sys.meta_path],
        "main": [getattr(main.__spec__, "name", None), getattr(main, "__file__", None)],
        "folder": os.getcwd(),
        "variables": variables,
        "signals": {str(number): str(signal.getsignal(number)) for number in signal.valid_signals()},
        "stdin": [os.read(0, 1).decode(), os.isatty(0)],
        "streams": streams(),
        "locale": locale.getlocale(),
        "threads": len(threading.enumerate()),
        "descriptors": sorted(os.listdir("/dev/fd")),
        "gc": gc.isenabled(),
        "umask": os.umask(0o22),
    }
    with open("seen.json", "w") as file:
        json.dump(seen, file)
