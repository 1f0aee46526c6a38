class Model:
    name = "stub.v1"

    async def complete(self, request):
        from pytest_lmeval import AdapterError, Completion

        if request.text == "raise":
            raise AdapterError("no answer")
        return Completion(request.text.rpartition("say: ")[2], prompt_tokens=2, completion_tokens=1)
