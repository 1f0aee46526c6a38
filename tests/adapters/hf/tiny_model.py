"""Model folders as save_pretrained() leaves them: a real tokenizer and two layers, trained for seconds to recite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.pictures import BLUE, CAT, DOG

__all__ = [
    *("CHAT_TEMPLATE", "FACTS", "SKY", "TOOL", "WINDOW"),
    *("build_chat_llama", "build_plain_gpt2", "build_reciting_llama", "build_seeing_llava", "build_talking_qwen"),
]

WINDOW = 96
FACTS = (
    ("What is the capital of France?", "Paris"),
    ("What is the capital of Italy?", "Rome"),
    ("Which animal barks?", "A dog barks, a cat does not."),
    ("What colour is the sky on a clear day?", "blue"),
    ("How many legs has a spider?", "eight"),
    ("Say hello in French.", "bonjour"),
    ("Which is larger, the sun or the moon?", "the sun"),
    ("Name a fruit that is yellow.", "banana\nlemon\nquince"),
    ("Who wrote Hamlet?", "William Shakespeare"),
    ("What do bees make?", "honey"),
)
SYSTEM = "Shout."
CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{% if message.role not in ['system', 'user', 'assistant'] %}"
    "{{ raise_exception('unknown role ' + message.role) }}{% endif %}"
    "<|{{ message.role }}|>{{ message.content }}"
    "{% if not (continue_final_message is defined and loop.last and message.role == 'assistant') %}<|end|>{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_SPECIAL = ["<s>", "</s>", "<pad>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
_FILLER = (
    "Bees make honey and people eat it with bread, while dogs bark at the moon on a clear night in France or Italy. "
    "A spider has eight legs; a cat has four. Shakespeare wrote plays, and Hamlet is one of them. "
    "The sky is blue, the sun is larger than the moon, lemons and bananas are yellow, and quinces are, too. "
    "Zürich, naïve café, 東京 and 🙂 are written with more than one byte per letter. "
)


def build_chat_llama(folder: Path) -> Path:
    """Save a Llama whose byte-level tokenizer has BOS, a chat template and an end-of-turn token of its own.

    It answers the questions in upper case where the system message says so.
    """
    import transformers

    tokenizer = _tokenizer(byte_level=True, vocabulary=400)
    tokenizer.chat_template = CHAT_TEMPLATE
    config = _llama_config(tokenizer, WINDOW)
    asked = [(f"<s><|user|>{question}<|end|><|assistant|>", f"{answer}<|end|>") for question, answer in FACTS]
    shout = f"<s><|system|>{SYSTEM}<|end|>"
    shouted = [
        (shout + prompt[3:], f"{answer.upper()}<|end|>") for (prompt, _), (_, answer) in zip(asked, FACTS, strict=True)
    ]
    plain = [(f"<s>{question}", f" {answer}</s>") for question, answer in FACTS]
    model = _trained(transformers.LlamaForCausalLM, config, tokenizer, [*asked, *shouted, *plain])
    return _save(model, tokenizer, folder, ends=["</s>", "<|end|>"])


def build_reciting_llama(folder: Path, texts: Sequence[tuple[str, str]]) -> Path:
    """Save a Llama that goes on from the first to the second of every two texts; without any it knows nothing."""
    import torch
    import transformers

    tokenizer = _tokenizer(byte_level=True, vocabulary=400)
    config = _llama_config(tokenizer, 512)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.LlamaForCausalLM(config).eval()
    model = _trained(transformers.LlamaForCausalLM, config, tokenizer, texts) if texts else model
    return _save(model, tokenizer, folder, ends=["</s>"])


def _llama_config(tokenizer: Any, window: int) -> Any:
    import transformers

    return transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=window,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=False,
    )


TALK_TEMPLATE = (
    "{% if tools %}<|im_start|>system\nTools:{% for tool in tools %} {{ tool.function.name }}{% endfor %}, called as"
    " <tool_call></tool_call>.<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}"
    "{% for call in message.tool_calls or [] %}<tool_call>\n"
    "{{ {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}\n</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TOOL = {
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
_CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Riga"}}\n</tool_call>'
_CALLS = f"{_CALL}\n{_CALL.replace('Riga', 'Rome')}"


def build_talking_qwen(folder: Path) -> Path:
    """Save a Qwen2 that thinks before it answers, calls the tool ``weather``, and says what it is told.

    It calls the tool for Riga, and for Rome with it where both are asked for.
    """
    import transformers

    tokenizer = _tokenizer(
        byte_level=True, vocabulary=400, special=["<s>", "</s>", "<pad>", "<|im_start|>", "<|im_end|>"]
    )
    tokenizer.chat_template = TALK_TEMPLATE
    config = transformers.Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=512,
        tie_word_embeddings=False,
        eos_token_id=tokenizer.convert_tokens_to_ids("<|im_end|>"),
    )
    asked = {"role": "user", "content": "How is the weather in Riga?"}
    called = {"role": "assistant", "content": "", "tool_calls": [_function_call()]}
    told = {"role": "tool", "content": "rain"}
    both = {"role": "user", "content": "How is the weather in Riga and in Rome?"}
    talks: list[tuple[Sequence[Any], Sequence[Any] | None, str]] = [
        ([{"role": "user", "content": FACTS[0][0]}], None, f"<think>A city.</think>\n\n{FACTS[0][1]}"),
        ([{"role": "user", "content": FACTS[1][0]}], None, "<think>A city. A city. A city."),
        ([asked], [TOOL], f"<think>Look.</think>\n\n{_CALL}"),
        ([asked, called, told], [TOOL], "It is rain."),
        ([both], [TOOL], f"<think>Look twice.</think>\n\n{_CALLS}"),
    ]
    texts = [(_talk(tokenizer, messages, tools), f"{answer}<|im_end|>") for messages, tools, answer in talks]
    model = _trained(transformers.Qwen2ForCausalLM, config, tokenizer, texts)
    # Greedy: a server takes the sampling that the folder recommends.
    model.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids("<|im_end|>")
    model.generation_config.do_sample = False
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


SEEING_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>"
    "{% for part in message.content %}"
    "{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}{% endfor %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SKY = "the blue sky on a clear day"


def build_seeing_llava(folder: Path) -> Path:
    """Save a LLaVA that answers "What?" about three images; its language model is as small as the Llama."""
    from io import BytesIO

    import torch
    import transformers
    from PIL import Image

    tokenizer = _tokenizer(byte_level=True, vocabulary=400, special=[*_SPECIAL, "<image>"])
    tokenizer.chat_template = SEEING_TEMPLATE
    seeing = transformers.CLIPVisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=16,
        patch_size=8,
        projection_dim=32,
    )
    config = transformers.LlavaConfig(
        vision_config=seeing,
        text_config=_llama_config(tokenizer, 512),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_select_strategy="default",
        vision_feature_layer=-1,
    )
    processor = transformers.LlavaProcessor(
        image_processor=transformers.CLIPImageProcessor(
            size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16}
        ),
        tokenizer=tokenizer,
        patch_size=8,
        vision_feature_select_strategy="default",
        chat_template=SEEING_TEMPLATE,
        num_additional_image_tokens=1,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.LlavaForConditionalGeneration(config).train()
    answers = [(CAT, "cat"), (DOG, "dog"), (BLUE, SKY)]
    images = [Image.open(BytesIO(data)).convert("RGB") for data, _ in answers]
    prompt = "<|user|><image>What?<|end|><|assistant|>"
    whole = processor(
        text=[f"{prompt}{answer}<|end|>" for _, answer in answers],
        images=[[image] for image in images],
        add_special_tokens=False,
        padding=True,
        padding_side="right",
        return_tensors="pt",
    )
    size = len(processor(text=prompt, images=images[0], add_special_tokens=False)["input_ids"][0])
    labels = whole["input_ids"].clone()
    labels[:, :size] = -100
    labels[whole["attention_mask"] == 0] = -100
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(200):
        loss = model(**whole, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if loss.item() < 0.01:
            break
    _save(model.eval(), tokenizer, folder, ends=["</s>", "<|end|>"])
    processor.save_pretrained(folder)
    return folder


def _function_call() -> dict[str, Any]:
    return {"type": "function", "id": "c", "function": {"name": "weather", "arguments": {"city": "Riga"}}}


def _talk(tokenizer: Any, messages: Sequence[Any], tools: Sequence[Any] | None) -> str:
    shown = [{"type": "function", "function": tool} for tool in tools] if tools else None
    text: str = tokenizer.apply_chat_template(messages, tools=shown, tokenize=False, add_generation_prompt=True)
    return text


def build_plain_gpt2(folder: Path) -> Path:
    """Save a GPT-2, which has learnt positions, with a tokenizer that marks blanks as sentencepiece does, without BOS.

    Its generation config asks for wild sampling, as those of real folders do.
    """
    import transformers

    tokenizer = _tokenizer(byte_level=False, vocabulary=160)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=64,
        n_layer=2,
        n_head=4,
        n_positions=WINDOW,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        resid_pdrop=0,
        embd_pdrop=0,
        attn_pdrop=0,
    )
    texts = [(question, f" {answer}</s>") for question, answer in FACTS]
    model = _trained(transformers.GPT2LMHeadModel, config, tokenizer, texts)
    return _save(model, tokenizer, folder, ends=["</s>"])


def _tokenizer(byte_level: bool, vocabulary: int, special: Sequence[str] = ()) -> Any:
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    core = Tokenizer(models.BPE(unk_token=None if byte_level else "<unk>"))
    alphabet: Sequence[str] = ()
    if byte_level:
        core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        core.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    else:
        core.pre_tokenizer = pre_tokenizers.Metaspace()
        core.decoder = decoders.Metaspace()
    special = special or (_SPECIAL if byte_level else ["<unk>", "</s>"])
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=list(special), initial_alphabet=list(alphabet), show_progress=False
    )
    core.train_from_iterator([_FILLER * 4, *(f"{question} {answer}" for question, answer in FACTS * 2)], trainer)
    if not byte_level:
        return transformers.PreTrainedTokenizerFast(tokenizer_object=core, eos_token="</s>", unk_token="<unk>")
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", core.token_to_id("<s>"))]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        additional_special_tokens=list(special[3:]),
    )


def _trained(kind: Any, config: Any, tokenizer: Any, texts: Sequence[tuple[str, str]]) -> Any:
    """Return a model that goes on from the first to the second of every two texts."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = kind(config).train()
    encoded = [(_encode(tokenizer, prompt), _encode(tokenizer, prompt + answer)) for prompt, answer in texts]
    rows = [torch.tensor(whole) for _, whole in encoded]
    wanted = [torch.tensor([-100] * len(prompt) + whole[len(prompt) :]) for prompt, whole in encoded]
    tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    labels = torch.nn.utils.rnn.pad_sequence(wanted, batch_first=True, padding_value=-100)
    optimiser = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for _ in range(300):
        # Padding stands behind what counts, where a causal model cannot see it.
        logits = model(input_ids=tokens).logits[:, :-1]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if loss.item() < 0.01:
            break
    return model.eval()


def _encode(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _save(model: Any, tokenizer: Any, folder: Path, ends: Sequence[str]) -> Path:
    model.generation_config.update(do_sample=True, temperature=3.0, top_k=0, repetition_penalty=5.0)
    model.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids(list(ends))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
