"""Records logits of small models of `transformers` for tests/e2e/llm_test.cc.

    python record.py tests/golden/llm

The Python is that of the environment of PyTorch (tools/fetch/locked_environment.py). Weights are numbers of a formula, so
that only the config, the shapes and the logits are recorded.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers as hf

SMALL = dict(vocab_size=24, hidden_size=16, intermediate_size=24, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, head_dim=8, max_position_embeddings=64)


def weights(name, shape):
    """Numbers from -1 to 1 with a period of 1009, in steps that the name decides; scales of norms are about 1 or 0."""
    seed = sum(ord(c) * (i + 1) for i, c in enumerate(name)) % 1009
    index = np.arange(int(np.prod(shape)), dtype=np.int64)
    numbers = ((index * 389 + seed * 577 + index * index % 1009) % 1009) / 504.5 - 1
    return torch.from_numpy((numbers * (0.25 if "norm" in name else 0.5)).reshape(shape).astype(np.float32))


def record(model, path):
    model = model.eval()
    state = {name: weights(name, tuple(value.shape)) for name, value in model.state_dict().items()}
    shapes = {name: list(value.shape) for name, value in state.items()}
    if "qwen3_moe" in path.name:  # in the file, each expert has its own tensors
        model.save_pretrained("/tmp/record_llm")
        from safetensors import safe_open
        with safe_open("/tmp/record_llm/model.safetensors", "pt") as file:
            shapes = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}
        from safetensors.torch import save_file
        save_file({name: weights(name, shape) for name, shape in shapes.items()}, "/tmp/record_llm/model.safetensors",
                  {"format": "pt"})
        model = type(model).from_pretrained("/tmp/record_llm").eval()
    else:
        if model.config.tie_word_embeddings:
            shapes.pop("lm_head.weight", None)
            state["lm_head.weight"] = state["model.embed_tokens.weight"]
        model.load_state_dict(state)
    tokens = np.array([[(7 * i + 3) % 24 for i in range(14)], [(5 * i * i + 1) % 24 for i in range(14)]])
    with torch.no_grad():
        logits = model(torch.from_numpy(tokens)).logits.numpy()
    config = json.loads(model.config.to_json_string(use_diff=False))
    for field in [name for name in config if name in ("transformers_version", "_name_or_path", "architectures")]:
        config.pop(field)
    keep = {name: value for name, value in config.items() if value is not None and name not in hf.PreTrainedConfig().to_dict()}
    keep["model_type"] = model.config.model_type
    keep["tie_word_embeddings"] = model.config.tie_word_embeddings
    path.write_text(json.dumps(dict(config=keep, shapes=shapes, tokens=tokens.flatten().tolist(),
                                    logits=[float(f"{x:.8g}") for x in logits.flatten()])) + "\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    record(hf.Gemma2ForCausalLM(hf.Gemma2Config(**SMALL, sliding_window=4, query_pre_attn_scalar=10,
                                                attn_logit_softcapping=2.0, final_logit_softcapping=3.0)),
           folder / "gemma2.json")
    record(hf.Qwen3MoeForCausalLM(hf.Qwen3MoeConfig(**SMALL, num_experts=4, num_experts_per_tok=2,
                                                    moe_intermediate_size=12, norm_topk_prob=True)),
           folder / "qwen3_moe.json")


if __name__ == "__main__":
    main()
