"""Run language-model evals as pytest tests, or from Python without pytest.

All public names are attributes of this package, which imports their modules on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_lmeval.adapters.protocol import ModelAdapter as ModelAdapter
    from pytest_lmeval.adapters.replay import ReplayAdapter as ReplayAdapter
    from pytest_lmeval.adapters.toy import ToyAdapter as ToyAdapter
    from pytest_lmeval.compare.gate import Decision as Decision
    from pytest_lmeval.compare.gate import GateSettings as GateSettings
    from pytest_lmeval.compare.gate import decide as decide
    from pytest_lmeval.errors import AdapterError as AdapterError
    from pytest_lmeval.errors import BadTaskFile as BadTaskFile
    from pytest_lmeval.errors import LmevalError as LmevalError
    from pytest_lmeval.errors import RecordRefused as RecordRefused
    from pytest_lmeval.errors import UsageError as UsageError
    from pytest_lmeval.formats.spec import SPEC_VERSION as SPEC_VERSION
    from pytest_lmeval.functions.declare import Row as Row
    from pytest_lmeval.functions.declare import eval_task as eval_task
    from pytest_lmeval.functions.judging import Grade as Grade
    from pytest_lmeval.functions.judging import Judgment as Judgment
    from pytest_lmeval.functions.lm import BlockingLm as BlockingLm
    from pytest_lmeval.functions.lm import Lm as Lm
    from pytest_lmeval.functions.lm import LmBase as LmBase
    from pytest_lmeval.functions.mcp_server import BlockingMcpServer as BlockingMcpServer
    from pytest_lmeval.functions.mcp_server import McpResult as McpResult
    from pytest_lmeval.functions.mcp_server import McpServer as McpServer
    from pytest_lmeval.functions.steps import Step as Step
    from pytest_lmeval.functions.user import BlockingUser as BlockingUser
    from pytest_lmeval.functions.user import User as User
    from pytest_lmeval.leaderboard.board import Leaderboard as Leaderboard
    from pytest_lmeval.loading import default_registry as default_registry
    from pytest_lmeval.loading import load_all_tasks as load_all_tasks
    from pytest_lmeval.loading import load_tasks as load_tasks
    from pytest_lmeval.loading import make_adapter as make_adapter
    from pytest_lmeval.loading import validate_file as validate_file
    from pytest_lmeval.loading import validate_task as validate_task
    from pytest_lmeval.media import Audio as Audio
    from pytest_lmeval.media import File as File
    from pytest_lmeval.media import Image as Image
    from pytest_lmeval.postprocess import post_process as post_process
    from pytest_lmeval.records.boardfile import write_leaderboard as write_leaderboard
    from pytest_lmeval.records.runfile import RunFile as RunFile
    from pytest_lmeval.records.runfile import read_run as read_run
    from pytest_lmeval.registry import Registry as Registry
    from pytest_lmeval.run.library import run_leaderboard as run_leaderboard
    from pytest_lmeval.run.library import run_task as run_task
    from pytest_lmeval.sandbox import ExecutionResult as ExecutionResult
    from pytest_lmeval.sandbox import execute_code as execute_code
    from pytest_lmeval.task import Task as Task
    from pytest_lmeval.task import render as render
    from pytest_lmeval.types import Completion as Completion
    from pytest_lmeval.types import Example as Example
    from pytest_lmeval.types import ExampleResult as ExampleResult
    from pytest_lmeval.types import FewShot as FewShot
    from pytest_lmeval.types import Generate as Generate
    from pytest_lmeval.types import LogLikelihood as LogLikelihood
    from pytest_lmeval.types import LogProb as LogProb
    from pytest_lmeval.types import Media as Media
    from pytest_lmeval.types import Message as Message
    from pytest_lmeval.types import RecordError as RecordError
    from pytest_lmeval.types import Score as Score
    from pytest_lmeval.types import ToolCall as ToolCall

else:
    # Hidden from type checkers, which would otherwise accept any name as a member of the package.
    def __getattr__(name: str) -> Any:
        # The plugin is imported by every pytest run in the environment, so this import must be cheap.
        for module, names in _HOMES.items():
            if name in names:
                from importlib import import_module

                return getattr(import_module(f"{__name__}.{module}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_HOMES = {
    "adapters.protocol": ("ModelAdapter",),
    "adapters.replay": ("ReplayAdapter",),
    "adapters.toy": ("ToyAdapter",),
    "compare.gate": ("Decision", "GateSettings", "decide"),
    "errors": ("AdapterError", "BadTaskFile", "LmevalError", "RecordRefused", "UsageError"),
    "formats.spec": ("SPEC_VERSION",),
    "functions.declare": ("Row", "eval_task"),
    "functions.judging": ("Grade", "Judgment"),
    "functions.lm": ("BlockingLm", "Lm", "LmBase"),
    "functions.mcp_server": ("BlockingMcpServer", "McpResult", "McpServer"),
    "functions.steps": ("Step",),
    "functions.user": ("BlockingUser", "User"),
    "leaderboard.board": ("Leaderboard",),
    "loading": ("default_registry", "load_all_tasks", "load_tasks", "make_adapter", "validate_file", "validate_task"),
    "media": ("Audio", "File", "Image"),
    "postprocess": ("post_process",),
    "records.runfile": ("RunFile", "read_run"),
    "records.boardfile": ("write_leaderboard",),
    "registry": ("Registry",),
    "run.library": ("run_leaderboard", "run_task"),
    "sandbox": ("ExecutionResult", "execute_code"),
    "task": ("Task", "render"),
    "types": (
        "Completion",
        "Example",
        "ExampleResult",
        "FewShot",
        "Generate",
        "LogLikelihood",
        "LogProb",
        "Media",
        "Message",
        "RecordError",
        "Score",
        "ToolCall",
    ),
}

__version__ = "0.3.0"
__all__ = sorted(name for names in _HOMES.values() for name in names)


def __dir__() -> list[str]:
    return __all__
