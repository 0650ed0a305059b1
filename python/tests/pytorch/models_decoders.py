"""Decoder language models of `transformers` for model_comparison.py."""

import torch
import transformers
from model_comparison import Model, patterns, plan_of, tokens

from meshard import P

SIZES = dict(vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=8,
             num_key_value_heads=4, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
"""Of configurations with the names of Llama's. Four heads of keys are what four devices can split."""


def language_model(name, config, plan=None):
    """A causal language model with its labels, which generates."""
    def build():
        config._attn_implementation = "sdpa"
        return transformers.AutoModelForCausalLM.from_config(config)

    def inputs():
        ids = tokens(4, 16)
        mask = torch.ones_like(ids)
        mask[1, :5] = 0  # padded at the left
        return dict(input_ids=ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100), use_cache=False)

    prompt = tokens(4, 7, seed=2)
    return Model(name, build, inputs, plan or plan_of(),
                 generate=dict(inputs=prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=8,
                               do_sample=False))


MODELS = [
    language_model("llama", transformers.LlamaConfig(**SIZES)),
    language_model("gpt2", transformers.GPT2Config(
        vocab_size=128, n_embd=64, n_layer=2, n_head=8, n_positions=64, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
        bos_token_id=1, eos_token_id=2, pad_token_id=0), patterns({
            "*.c_fc.weight": P(None, "model"), "*.c_fc.bias": P("model"), "*.mlp.c_proj.weight": P("model"),
            "*.attn.c_proj.weight": P("model")})),
]
