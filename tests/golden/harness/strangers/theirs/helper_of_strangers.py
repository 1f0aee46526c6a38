def shortened(doc):
    return {"question": doc["question"].removeprefix("Capital of ")}
