"""Compares examples/llm with `transformers`, for tiny random checkpoints of each family.

    python compare_transformers.py build/bin/llm [--families llama3,gemma2] [--bf16] [--meshes 1x1,2x4]

The Python is that of the environment of PyTorch (tools/fetch/locked_environment.py). For each family: the logits of
prompts, computed at once, and of 50 steps with a cache, within 1e-4 in f32 and 2e-2 in bf16 of the largest logit; the
same after the model was saved again; quantized layers (GPTQ, AWQ) beside the dense weights that they stand for.
"""

import argparse
import copy
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers as hf
from safetensors import safe_open
from safetensors.numpy import load_file
from safetensors.torch import save_file

COMMON = dict(vocab_size=96, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=8,
              num_key_value_heads=4, max_position_embeddings=256)
LLAMA3 = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=64)


def families():
    """The model of each family, by name."""
    def made(model, config, **options):
        return lambda: model(config(**{**COMMON, **options}))

    return {
        "llama2": made(hf.LlamaForCausalLM, hf.LlamaConfig, num_key_value_heads=8),
        "llama3": made(hf.LlamaForCausalLM, hf.LlamaConfig, rope_parameters=LLAMA3),
        "llama_linear": made(hf.LlamaForCausalLM, hf.LlamaConfig, tie_word_embeddings=True, attention_bias=True,
                             mlp_bias=True, rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=2.0)),
        "mistral": made(hf.MistralForCausalLM, hf.MistralConfig, sliding_window=16),
        "mistral_full": made(hf.MistralForCausalLM, hf.MistralConfig, sliding_window=None, head_dim=24),
        "qwen2": made(hf.Qwen2ForCausalLM, hf.Qwen2Config),
        "qwen2_window": made(hf.Qwen2ForCausalLM, hf.Qwen2Config, use_sliding_window=True, sliding_window=12,
                             max_window_layers=1, rope_parameters=YARN),
        "qwen3": made(hf.Qwen3ForCausalLM, hf.Qwen3Config, head_dim=16),
        "qwen3_yarn": made(hf.Qwen3ForCausalLM, hf.Qwen3Config, head_dim=16, rope_parameters=YARN),
        "gemma2": made(hf.Gemma2ForCausalLM, hf.Gemma2Config, head_dim=16, sliding_window=16, query_pre_attn_scalar=24,
                       attn_logit_softcapping=2.0, final_logit_softcapping=3.0),
        "gemma3": made(hf.Gemma3ForCausalLM, hf.Gemma3TextConfig, head_dim=16, sliding_window=16,
                       num_hidden_layers=7, query_pre_attn_scalar=24),
        "mixtral": made(hf.MixtralForCausalLM, hf.MixtralConfig, num_local_experts=4),
        "qwen3_moe": made(hf.Qwen3MoeForCausalLM, hf.Qwen3MoeConfig, head_dim=16, num_experts=8,
                          num_experts_per_tok=3, moe_intermediate_size=32),
        "qwen3_moe_norm": made(hf.Qwen3MoeForCausalLM, hf.Qwen3MoeConfig, head_dim=16, num_experts=8,
                               num_experts_per_tok=3, moe_intermediate_size=32, norm_topk_prob=True),
    }


def randomize(model):
    """Weights of such a size that all parts of the model matter."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.add_(torch.randn_like(parameter) * 0.3)
            elif name.endswith("bias"):
                parameter.copy_(torch.randn_like(parameter) * 0.3)
            else:
                parameter.copy_(torch.randn_like(parameter) * (2.0 / parameter.shape[-1] ** 0.5))
            if "embed_tokens" in name:
                parameter.copy_(torch.randn_like(parameter) * 0.7)


def pack(numbers, bits, order=None):
    """i32 of 32 / bits numbers each, along the last dimension; in an i32, place i has number order[i]."""
    count = 32 // bits
    order = order or range(count)
    parts = numbers.reshape(*numbers.shape[:-1], -1, count).astype(np.uint32)
    out = np.zeros(parts.shape[:-1], np.uint32)
    for place, number in enumerate(order):
        out |= parts[..., number] << np.uint32(place * bits)
    return out.view(np.int32)


def quantize(folder, out, method, bits, group, reorder=False):
    """Writes quantized layers to `out`, and returns the dense weights that they stand for."""
    rng = np.random.default_rng(5)
    tensors, dense = {}, {}
    with safe_open(folder / "model.safetensors", "pt") as file:
        for name in file.keys():
            value = file.get_tensor(name)
            if "_proj.weight" not in name:
                tensors[name] = dense[name] = value
                continue
            outputs, inputs = value.shape
            groups = inputs // group
            q = rng.integers(0, 2**bits, (inputs, outputs))
            zeros = rng.integers(1, 2**bits, (groups, outputs))
            scales = (rng.random((groups, outputs)) * 0.5 / 2**bits + 0.2 / 2**bits).astype(np.float16)
            group_of = np.arange(inputs) // group
            if reorder:
                group_of = rng.permutation(group_of)
            weight = (q - zeros[group_of]).astype(np.float32) * scales[group_of].astype(np.float32)
            dense[name] = torch.from_numpy(weight.T.copy())
            base = name[: -len("weight")]
            tensors[base + "scales"] = torch.from_numpy(scales)
            if method == "gptq":
                tensors[base + "qweight"] = torch.from_numpy(pack(q.T, bits).T.copy())
                tensors[base + "qzeros"] = torch.from_numpy(pack(zeros - 1, bits))
                tensors[base + "g_idx"] = torch.from_numpy(group_of.astype(np.int32))
            else:
                order = [0, 2, 4, 6, 1, 3, 5, 7]
                tensors[base + "qweight"] = torch.from_numpy(pack(q, bits, order))
                tensors[base + "qzeros"] = torch.from_numpy(pack(zeros, bits, order))
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = dict(quant_method=method, bits=bits, group_size=group)
    if method == "gptq":
        config["quantization_config"] |= dict(desc_act=reorder, sym=False, checkpoint_format="gptq")
    else:
        config["quantization_config"] |= dict(version="gemm", zero_point=True)
    out.mkdir()
    (out / "config.json").write_text(json.dumps(config))
    save_file(tensors, out / "model.safetensors", {"format": "pt"})
    return dense


class Comparison:
    def __init__(self, program, scratch, meshes):
        self.program, self.scratch, self.meshes, self.worst, self.failed = program, scratch, meshes, {}, []

    def run(self, folder, tokens, mesh, dtype, decoded=50):
        np.save(self.scratch / "tokens.npy", tokens.astype(np.int32))
        out = self.scratch / "logits.safetensors"
        subprocess.run([self.program, "logits", folder, "--mesh", mesh, "--dtype", dtype, "--tokens",
                        self.scratch / "tokens.npy", "--decode", str(decoded), "--out", out, "--page-tokens", "8",
                        "--chunk", "16", "--context", "128"], check=True)
        return load_file(out)

    def compare(self, name, folder, model, dtype="float32", limit=1e-4, exact=None):
        """The logits of a folder and of a model, at once and by 50 steps. `exact`: the model in f32."""
        model = model.eval()
        rng = np.random.default_rng(1)
        tokens = rng.integers(0, COMMON["vocab_size"], (4, 90))
        with torch.no_grad():
            expected = model(torch.from_numpy(tokens)).logits.float().numpy()
        scale = max(1.0, float(np.abs(expected).max()))
        if exact is not None:
            with torch.no_grad():
                wide = exact.eval()(torch.from_numpy(tokens)).logits.numpy()
            print(f"{name} {dtype}: transformers is {np.abs(expected - wide).max() / scale:.2e} from its f32", flush=True)
        for mesh in self.meshes:
            found = self.run(folder, tokens, mesh, dtype)
            whole = np.abs(found["whole"] - expected).max() / scale
            cached = np.abs(found["cached"].transpose(1, 0, 2) - expected[:, 39:]).max() / scale
            self.note(f"{name} {dtype} {mesh}", whole, cached, limit)

    def note(self, label, whole, cached, limit):
        good = whole <= limit and cached <= limit
        if not good:
            self.failed.append(label)
        print(f"{label:40} at once {whole:.2e}   cached {cached:.2e}{'' if good else '   WRONG'}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--families", help="default: all")
    parser.add_argument("--meshes", default="1x1,2x4")
    parser.add_argument("--bf16", action="store_true", help="in bf16 too")
    parser.add_argument("--quantized", action="store_true", help="GPTQ and AWQ too")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        comparison = Comparison(options.program.resolve(), scratch, options.meshes.split(","))
        known = families()
        names = options.families.split(",") if options.families else list(known)
        for name in names:
            model = known[name]()
            randomize(model)
            # Several files with an index.
            model.save_pretrained(scratch / name, max_shard_size="60KB" if name == "llama3" else "5GB")
            comparison.compare(name, scratch / name, model)
            if options.bf16:
                narrow = copy.deepcopy(model).to(torch.bfloat16)
                comparison.compare(name, scratch / name, narrow, "bfloat16", 2e-2, model)
            shutil.rmtree(scratch / name)
        if options.quantized:
            for method, bits, group, reorder in [("gptq", 4, 32, False), ("gptq", 4, 32, True), ("gptq", 8, 16, False),
                                                 ("awq", 4, 32, False)]:
                model = known["qwen2"]()
                randomize(model)
                model.save_pretrained(scratch / "dense")
                dense = quantize(scratch / "dense", scratch / "packed", method, bits, group, reorder)
                model.load_state_dict(dense)
                comparison.compare(f"{method} {bits} bits{' reordered' if reorder else ''}", scratch / "packed", model)
                shutil.rmtree(scratch / "packed")
                shutil.rmtree(scratch / "dense")
    if comparison.failed:
        sys.exit(f"wrong: {', '.join(comparison.failed)}")


if __name__ == "__main__":
    main()
