"""The trained network as GGUF: llama architecture, Q8_0 matrices, template and vocabulary inside."""

from pathlib import Path

import gguf
import numpy as np
from torch import Tensor

from pocket.architecture import Network, Shape
from pocket.train import Progress
from pocket.vocabulary import CONTROL, WHOLE, Vocabulary

TEMPLATE = Path(__file__).with_name("chat.jinja")


def export(network: Network, vocabulary: Vocabulary, progress: Progress, path: Path) -> None:
    """Write `path`; a network of 4.8 M parameters takes 5.2 MB."""
    writer = gguf.GGUFWriter(path, "llama")
    _about(writer, progress)
    _sizes(writer, network.shape)
    _tokens(writer, vocabulary)
    for name, tensor in network.state_dict().items():
        _tensor(writer, name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _about(writer: gguf.GGUFWriter, progress: Progress) -> None:
    writer.add_name("Pocket")
    writer.add_basename("pocket")
    writer.add_size_label("Pocket")
    writer.add_license("MIT")
    writer.add_author("Voltaire")
    writer.add_description(
        "A demonstration model for Voltaire: tool calls and small talk, nothing more. "
        f"Trained for {progress.seconds / 60:.0f} minutes on two CPU cores over {progress.tokens / 1e6:.1f} million tokens "
        "of conversations made by a generator."
    )
    writer.add_float32("pocket.training_seconds", progress.seconds)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)


def _sizes(writer: gguf.GGUFWriter, shape: Shape) -> None:
    writer.add_vocab_size(shape.vocabulary)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head)
    writer.add_value_length(shape.head)
    writer.add_rope_dimension_count(shape.head)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(shape.epsilon)


def _tokens(writer: gguf.GGUFWriter, vocabulary: Vocabulary) -> None:
    control, whole = len(CONTROL), len(WHOLE)
    ordinary = len(vocabulary.pieces) - control - whole
    types = [gguf.TokenType.CONTROL] * control + [gguf.TokenType.USER_DEFINED] * whole
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(vocabulary.pieces)
    writer.add_token_types([*types, *[gguf.TokenType.NORMAL] * ordinary])
    writer.add_token_merges([" ".join(merge) for merge in vocabulary.merges])
    writer.add_bos_token_id(CONTROL.index("<|endoftext|>"))
    writer.add_eos_token_id(CONTROL.index("<|im_end|>"))
    writer.add_pad_token_id(CONTROL.index("<|endoftext|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE.read_text("utf-8"))


def _tensor(writer: gguf.GGUFWriter, name: str, tensor: Tensor) -> None:
    values: np.ndarray = tensor.detach().float().numpy()
    if values.ndim == 1:
        writer.add_tensor(name, values)
        return
    kind = gguf.GGMLQuantizationType.Q8_0
    writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
