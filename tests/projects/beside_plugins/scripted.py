"""A model that answers what the prompt says after ``say: ``, and one that does not."""


class Model:
    name = "scripted.v1"

    async def complete(self, request):
        return request.text.rpartition("say: ")[2]


class Worse(Model):
    name = "worse.v1"

    async def complete(self, request):
        said = await super().complete(request)
        return "no idea" if said in ("7", "tea") else said
