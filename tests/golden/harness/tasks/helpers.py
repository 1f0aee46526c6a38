"""Functions of the recorded tasks; what they import need not be installed."""

import a_module_that_nobody_has
import datasets
from lm_eval.utils import general_detokenize


def number_of_option(doc):
    return int(doc["answer"]) - 1


def beginnings(doc):
    before = doc["sentence"].split("_")[0]
    return [before + doc["option1"], before + doc["option2"]]


def with_rest(dataset: datasets.Dataset) -> datasets.Dataset:
    return dataset.map(lambda doc: {"rest": doc["sentence"].split("_")[1].strip()}).filter(
        lambda doc: doc["answer"] != "0"
    )


def clean(text):
    return general_detokenize(text)


def shortest(doc, results):
    return {"short": float(len(results[0]) < 20), "length": len(results[0])}


def spread(items):
    return max(items) - min(items)


def needs_it():
    return a_module_that_nobody_has.value


def loosely(references, predictions):
    return {"distance": abs(len(references[0]) - len(predictions[0])), "same": float(references == predictions)}


def counts(doc, results):
    return {"counts": {"right": int(doc["answer"] in results[0]), "words": results[0].split()}}


def share(items):
    return sum(len(each["words"]) for each in items if each["right"]) / len(items)
