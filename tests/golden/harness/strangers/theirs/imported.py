"""Functions that use a module of the installed harness, as people's folders for --include_path do."""

from lm_eval.tasks.hellaswag import utils
from lm_eval.tasks.hellaswag.utils import preprocess


def tidied(docs):
    return docs.map(lambda doc: {"question": utils.preprocess("[title] " + doc["question"]) + preprocess(" [a]  b")})
