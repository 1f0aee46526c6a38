import contextlib
import os
import subprocess
import sys
import urllib.parse
import urllib.request
from subprocess import PIPE

import pytest


@pytest.fixture(scope="session")
def service(lm_base_url):
    """Run the service, and return a function that asks it."""
    may_fail = lm_base_url.may_fail() if os.environ.get("MAY_FAIL") else contextlib.nullcontext()
    given = {**os.environ, "BASE": lm_base_url}
    # The service ends with this process, even if it is killed: its input then ends.
    command = [sys.executable, "app.py"]
    with may_fail, subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=given) as child:
        assert child.stdout is not None
        first = child.stdout.readline().strip()
        port = first if len(first) > 3 else child.stdout.readline().strip()

        def ask(question, headers=()):
            url = f"http://127.0.0.1:{port}/{urllib.parse.quote(question)}"
            with urllib.request.urlopen(urllib.request.Request(url, headers=dict(headers)), timeout=100) as reply:
                status, _, said = reply.read().decode().partition(" ")
                return int(status), said

        yield ask
        child.kill()
