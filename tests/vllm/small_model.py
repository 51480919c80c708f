"""Runs in the Python that holds vLLM: writes a small Llama with random weights, and its tokenizer, into a directory.

`python -m tests.vllm.small_model DIRECTORY`. A token is a byte, so every text has one; what the model says is noise.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SPECIAL = ["<s>", "</s>", "<think>", "</think>"]
CHAT = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"


def main() -> None:
    """Write both."""
    directory = Path(sys.argv[1])
    vocabulary = write_tokenizer(directory)
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=vocabulary,
        max_position_embeddings=32768,
        bos_token_id=0,
        eos_token_id=1,
        dtype="float32",
    )
    LlamaForCausalLM(config).save_pretrained(directory)


def write_tokenizer(directory: Path) -> int:
    """Write the tokenizer; return the size of its vocabulary."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", additional_special_tokens=SPECIAL[2:]
    )
    fast.chat_template = CHAT
    fast.save_pretrained(directory)
    return len(vocabulary)


if __name__ == "__main__":
    main()
