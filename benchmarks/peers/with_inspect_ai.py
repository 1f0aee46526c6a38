"""inspect_ai: a task of samples, generate, exact; the model is one of its own interface, or its client of OpenAI."""

import os

from model import AT_ONCE, PORT, PROMPTS, URL, check

os.environ |= {"OPENAI_BASE_URL": URL, "OPENAI_API_KEY": "none"}

from inspect_ai import Task
from inspect_ai import eval as run
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelAPI, ModelOutput, modelapi
from inspect_ai.scorer import exact
from inspect_ai.solver import generate


@modelapi(name="instant")
class Instant(ModelAPI):
    """Answers at once."""

    async def generate(self, *args, **options):
        """Return "yes"."""
        return ModelOutput.from_content(self.model_name, "yes")


samples = [Sample(input=prompt, target="yes", id=prompt) for prompt in PROMPTS]
options = {
    "model": "instant/m",
    "display": "none",
    "log_dir": "logs",
    "max_samples": AT_ONCE,
    "max_connections": AT_ONCE,
}
if PORT:
    options |= {"model": "openai/m", "model_args": {"responses_api": False}}
log = run(Task(samples, solver=[generate()], scorer=exact()), **options)[0]
means = [metric.value for metric in log.results.scores[0].metrics.values()] if log.results else []
check(log.status == "success" and 1.0 in means)
