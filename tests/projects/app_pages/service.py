"""A service that answers from the pages of a sports centre: it embeds them, finds, reranks, and asks a model."""

from fastapi import FastAPI, Request

MODEL = "gpt-4o"
CANDIDATES = 4
PROMPT = "Answer the question of a visitor of the sports centre from the pages alone, with a sentence of theirs."


def vectors(client, texts, **options):
    """Return the embeddings of texts."""
    found = client.embeddings.create(model="text-embedding-3-small", input=texts, encoding_format="float", **options)
    return [each.embedding for each in found.data]


def nearest(vector, index):
    """Return the numbers of the pages, nearest first."""
    near = [sum(a * b for a, b in zip(vector, page, strict=True)) for page in index]
    return sorted(range(len(near)), key=lambda number: (-near[number], number))


def reranked(client, question, texts, **options):
    """Return the texts in the order of a model that reads them with the question."""
    body = {"model": "rerank-1", "query": question, "documents": texts}
    found = client.post("/rerank", cast_to=object, body=body, options=options)
    best = sorted(found["results"], key=lambda each: -each["relevance_score"])
    return [texts[each["index"]] for each in best]


def ask_model(client, question, context, **options):
    """Return the answer of the model."""
    talk = [
        {"role": "system", "content": PROMPT},
        {"role": "user", "content": f"Pages:\n{context}\n\nQuestion: {question}"},
    ]
    reply = client.chat.completions.create(model=MODEL, messages=talk, **options)
    return reply.choices[0].message.content


def create_app(pages, client):
    """Return the service, once it has embedded the pages."""
    app = FastAPI()
    index = vectors(client, pages)

    @app.get("/ask")
    def ask(q: str, request: Request):
        # As OpenTelemetry does, the service passes on what it got.
        headers = {"baggage": request.headers.get("baggage", "")}
        order = nearest(vectors(client, [q], extra_headers=headers)[0], index)
        texts = [pages[number] for number in order[:CANDIDATES]]
        texts = reranked(client, q, texts, headers=headers)
        context = texts[0]
        return {"answer": ask_model(client, q, context, extra_headers=headers), "context": context}

    return app
