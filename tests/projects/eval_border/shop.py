def answer(question):
    assert question
    return question.upper()
