"""Load a model from a folder or by its name on the hub, and report why a model is unusable."""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_lmeval.adapters.hf.options import HfOptions, choose_device, fault
from pytest_lmeval.errors import UsageError

# transformers loads the first kind that it finds, in this order.
_PATTERNS = ("model*.safetensors", "pytorch_model*.bin", "*.safetensors", "*.bin")
_OF_PROCESSORS = ("preprocessor_config.json", "processor_config.json")
_INSTALL = "pip install 'pytest-lmeval[hf]'"
_WINDOWS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded model, with the facts that the adapter needs for requests.

    ``name`` is the folder's name, or the name on the hub. ``window`` is the maximum number of tokens that the model can
    read, or None if the model's config has no limit. ``ends`` are the tokens that mark the end of text, and ``pad`` is
    the padding token. ``folder`` contains the model's files. ``revision`` is the commit on the hub, or None for a model
    from a folder. ``processor`` creates the inputs of a model that accepts images; it is None for a model that accepts
    only text.
    """

    name: str
    model: Any
    tokenizer: Any
    processor: Any
    device: str
    window: int | None
    vocabulary: int
    ends: tuple[int, ...]
    pad: int
    folder: Path
    revision: str | None


def find_folder(source: str) -> Path | None:
    """Return the path of the folder ``source``, or None if it may be a hub name; otherwise raise UsageError."""
    path = Path(source).expanduser()
    if path.is_dir() and not (path / "config.json").is_file():
        hint = "; merge the adapter into its base model first" if (path / "adapter_config.json").exists() else ""
        raise fault(f"{path} holds no config.json; expected a model saved by save_pretrained(){hint}")
    if path.is_dir():
        return path
    if path.exists():
        raise fault(f"{source} is a file; expected the folder that holds config.json and the weights")
    if source.startswith((".", "/", "~")) or source.endswith("/") or "\\" in source or source.count("/") > 1:
        raise fault(f"there is no folder {source}")
    return None


def load(source: str, options: HfOptions, worker: int = 0) -> Loaded:
    """Load the tokenizer and the model silently; raise UsageError if ``source`` is not a usable causal model.

    Loading a folder needs no network.
    """
    folder = find_folder(source)
    if folder is not None and options.revision is not None:
        raise fault(f"option revision is {options.revision!r}, but {source} is a folder: only hub names have revisions")
    with _quietly() as (torch, transformers):
        device = choose_device(options.device, torch.cuda.device_count(), worker)
        try:
            return _load(source, folder, options, device, transformers)
        except UsageError:
            raise
        except Exception as error:
            raise fault(_describe(source, folder, error)) from error


def _load(source: str, folder: Path | None, options: HfOptions, device: str, transformers: Any) -> Loaded:
    origin = str(folder) if folder else source
    where = {
        "revision": options.revision,
        "local_files_only": folder is not None,
        "trust_remote_code": options.trust_remote_code,
    }
    config = transformers.AutoConfig.from_pretrained(origin, **where)
    sees = _sees_images(source, config, transformers)
    if folder is not None and not weight_files(folder):
        raise fault(f"{source} holds no weights; expected model.safetensors or pytorch_model.bin, whole or in parts")
    tokenizer = transformers.AutoTokenizer.from_pretrained(origin, **where)
    processor = _processor(origin, where, transformers) if sees else None
    kind = transformers.AutoModelForImageTextToText if sees else transformers.AutoModelForCausalLM
    model, found = kind.from_pretrained(origin, config=config, dtype=options.dtype, output_loading_info=True, **where)
    if missing := sorted(found["missing_keys"]):
        named = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise fault(f"{source} lacks {len(missing)} of the model's weights ({named}); its answers would be random")
    # The defaults in the folder (sampling, penalties) are for chats, and must not affect scores.
    ends = _ends(model, tokenizer)
    pad = next((token for token in (tokenizer.pad_token_id, *ends) if token is not None), 0)
    model.generation_config = transformers.GenerationConfig(eos_token_id=list(ends) or None, pad_token_id=pad)
    cached = folder or Path(transformers.utils.cached_file(source, "config.json", revision=options.revision)).parent
    return Loaded(
        name=folder.resolve().name if folder else source,
        model=model.to(device).eval(),
        tokenizer=tokenizer,
        processor=processor,
        device=device,
        window=_window(config),
        vocabulary=config.get_text_config().vocab_size,
        ends=ends,
        pad=pad,
        folder=cached,
        revision=None if folder else cached.name,
    )


def _sees_images(source: str, config: Any, transformers: Any) -> bool:
    """Return True if the model accepts images, and False if it accepts only text.

    Raise UsageError for a checkpoint that would load but give random answers, such as a masked language model.
    """
    kinds = transformers.models.auto.modeling_auto
    declared = config.architectures or []
    known = {name.lower() for name in kinds.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()}
    seeing = {*kinds.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.values()}.intersection(declared)
    heads = [name for name in declared if name in seeing or name.lower() in known or "causallm" in name.lower()]
    if config.is_encoder_decoder or (declared and not heads):
        kind = ", ".join(declared) or f"an encoder-decoder ({config.model_type})"
        raise fault(f"{source} is not a causal language model but {kind}; expected one such as LlamaForCausalLM")
    return bool(seeing)


def _processor(origin: str, where: Mapping[str, object], transformers: Any) -> Any:
    """Return the processor of a model that accepts images, or None for a folder without the processor's files."""
    if where["local_files_only"] and not any(Path(origin, name).is_file() for name in _OF_PROCESSORS):
        return None
    try:
        processor = transformers.AutoProcessor.from_pretrained(origin, **where)
    except ImportError as error:
        raise fault(f"{origin} accepts images, and its processor needs a missing package: {error}") from error
    return processor if hasattr(processor, "image_processor") else None


def _ends(model: Any, tokenizer: Any) -> tuple[int, ...]:
    own = model.generation_config.eos_token_id
    tokens = {*(own if isinstance(own, list | tuple) else [own]), tokenizer.eos_token_id}
    return tuple(sorted(token for token in tokens if token is not None))


def _window(config: Any) -> int | None:
    text = config.get_text_config()
    sizes = (getattr(text, name, None) for name in _WINDOWS)
    return next((size for size in sizes if isinstance(size, int) and size > 0), None)


def _describe(source: str, folder: Path | None, error: Exception) -> str:
    reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    if folder is not None:
        return f"{source} cannot be loaded: {reason}"
    return f"there is no folder {source}, and the Hugging Face hub's model of that name cannot be loaded: {reason}"


@contextlib.contextmanager
def _quietly() -> Iterator[tuple[Any, Any]]:
    """Import torch and transformers; suppress their output and warnings until the end of the block."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import torch
            import transformers
        except ImportError as error:
            raise fault(f"needs torch and transformers, which cannot be imported ({error}): {_INSTALL}") from error
        log = transformers.utils.logging
        verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
        log.set_verbosity_error()
        log.disable_progress_bar()
        try:
            yield torch, transformers
        finally:
            log.set_verbosity(verbosity)
            if bars:
                log.enable_progress_bar()


def weight_files(folder: Path) -> list[Path]:
    """Return the weight files that transformers would load from ``folder``, sorted by name."""
    kinds = (sorted(folder.glob(pattern)) for pattern in _PATTERNS)
    return next((files for files in kinds if files), [])


def hash_files(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of the concatenated files, like ``cat PATHS | sha256sum``."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb", buffering=0) as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()
