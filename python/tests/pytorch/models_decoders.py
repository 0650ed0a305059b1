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
        return transformers.AutoModelForCausalLM.from_config(config)

    def inputs():
        ids = tokens(4, 16)
        mask = torch.ones_like(ids)
        mask[1, :5] = 0  # padded at the left
        return dict(input_ids=ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100), use_cache=False)

    prompt = tokens(4, 7, seed=2)
    return Model(name, build, inputs, plan or plan_of(),
                 generate=dict(inputs=prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=4,
                               do_sample=False))


MODELS = [
    language_model("llama", transformers.LlamaConfig(**SIZES)),
    language_model("qwen3", transformers.Qwen3Config(**SIZES, head_dim=16)),
    # One layer sees 8 tokens back, the other one all: prompts and generated tokens are longer.
    language_model("gemma3", transformers.Gemma3TextConfig(
        **SIZES, head_dim=16, sliding_window=8, layer_types=["sliding_attention", "full_attention"])),
    language_model("mistral", transformers.MistralConfig(**SIZES, sliding_window=8)),
    language_model("mixtral", transformers.MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2)),
    # The first layer is dense, the second one has experts. Heads have parts with and without rotation.
    language_model("deepseek_v3", transformers.DeepseekV3Config(
        **{**SIZES, "num_key_value_heads": 8}, moe_intermediate_size=32, n_routed_experts=8, num_experts_per_tok=2,
        n_group=4, topk_group=2, n_shared_experts=1, first_k_dense_replace=1, kv_lora_rank=16, q_lora_rank=24,
        qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=16)),
    language_model("gpt2", transformers.GPT2Config(
        vocab_size=128, n_embd=64, n_layer=2, n_head=8, n_positions=64, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
        bos_token_id=1, eos_token_id=2, pad_token_id=0), patterns({
            "*.c_fc.weight": P(None, "model"), "*.c_fc.bias": P("model"), "*.mlp.c_proj.weight": P("model"),
            "*.attn.c_proj.weight": P("model")})),
]
