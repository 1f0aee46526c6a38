import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.error
import urllib.request

from pytest_lmeval import Completion, eval_task


class Model:
    name = "stub.v1"

    async def complete(self, request):
        return Completion("x")


def ask():
    body = json.dumps({"messages": [{"role": "user", "content": "x"}]}).encode()
    asked = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
    try:
        return urllib.request.urlopen(asked).status
    except urllib.error.HTTPError as error:
        return error.code


def wait_and_ask(path):
    while not pathlib.Path(path).exists():
        time.sleep(0.01)
    print(ask())


CHILDREN = []


@eval_task("child", data=[{"id": "a"}], repeats=2)
def test_child(row, lm, lm_env, tmp_path):
    if not CHILDREN:
        code = f"import test_child; test_child.wait_and_ask({str(tmp_path / 'go')!r})"
        CHILDREN.append(subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True))
    else:
        is_late = os.environ["ASKS"] and ask() == 200
        (tmp_path / "go").touch()
        assert (410 if is_late else 200) == int(CHILDREN[0].communicate(timeout=60)[0])
    lm.score("ok", True)
