"""Compares fine-tuning by examples/llm with PyTorch's: `transformers`, and PEFT for adapters.

    python compare_finetuning.py build/bin/llm [--families llama3,gemma2] [--meshes 1x1,2x4]

The Python is that of the environment of PyTorch (tools/fetch/locked_environment.py), with PEFT beside it. For each family,
with all parameters and with adapters: the first five losses, within 1e-4 of each, and the gradients of the first step,
within 1e-4 of the largest; then the files that the program wrote are loaded again, and the logits are compared.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import peft
import torch
from compare_transformers import COMMON, families, randomize
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM

RATE, ROWS, LENGTH, STEPS = 1e-3, 4, 24, 5
TARGETS = ["q_proj", "v_proj", "o_proj"]


def run(program, command, folder, *options):
    done = subprocess.run([program, command, folder, *map(str, options)], check=True, capture_output=True, text=True)
    return done.stdout




def losses_and_gradients(model, tokens, labels):
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=RATE, weight_decay=0.0)
    losses, gradients = [], {}
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = model(input_ids=tokens, labels=labels).loss
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            gradients = {n: p.grad.numpy().copy() for n, p in model.named_parameters() if p.grad is not None}
        optimizer.step()
    return losses, gradients


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--families", default="llama3,qwen2,gemma2,qwen3")
    parser.add_argument("--meshes", default="1x1,2x4")
    options = parser.parse_args()
    program, failed = options.program.resolve(), []
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = np.random.default_rng(3)
    # Token 0 pads some families: PyTorch gives its embedding no gradient as an input.
    samples = [rng.integers(1, COMMON["vocab_size"], LENGTH).tolist() for _ in range(ROWS)]
    labels = [row[:5] + [-100] * 4 + row[9:] for row in samples]
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        data = scratch / "data.jsonl"
        data.write_text("".join(json.dumps(dict(input_ids=t, labels=l)) + "\n" for t, l in zip(samples, labels)))
        arrays = torch.tensor(samples), torch.tensor(labels)

        def note(label, loss, gradient, logits):
            good = loss <= 1e-4 and gradient <= 1e-4 and logits <= 1e-4
            failed.extend([] if good else [label])
            print(f"{label:36} losses {loss:.2e}   gradients {gradient:.2e}   logits of what was saved {logits:.2e}"
                  f"{'' if good else '   WRONG'}", flush=True)

        for name in options.families.split(","):
            model = families()[name]().train()
            randomize(model)
            base = scratch / name
            model.save_pretrained(base)
            for adapted in (False, True):
                trained = AutoModelForCausalLM.from_pretrained(base, attn_implementation="eager").train()
                flags = ["--full"]
                if adapted:
                    trained = peft.get_peft_model(trained, peft.LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0,
                                                                           target_modules=TARGETS))
                    trained.save_pretrained(scratch / "begin")
                    flags = ["--adapter", scratch / "begin"]
                losses, gradients = losses_and_gradients(trained, *arrays)
                for mesh in options.meshes.split(","):
                    out = scratch / f"{name}-{adapted}-{mesh}"
                    common = ["--data", data, "--out", out, "--mesh", mesh, "--rows", ROWS, "--length", LENGTH, "--steps",
                              STEPS, "--rate", RATE, "--constant-rate", "--clip", 1e9, *flags]
                    lines = run(program, "finetune", base, *common).splitlines()
                    found = [float(line.split("loss")[1].split()[0]) for line in lines if line.startswith("step")]
                    loss = max(abs(a - b) for a, b in zip(found, losses)) if len(found) == STEPS else float("inf")
                    run(program, "finetune", base, *common, "--gradients", scratch / "gradients")
                    file = "adapter_model.safetensors" if adapted else "model.safetensors"
                    ours = load_file(scratch / "gradients" / "0" / file)
                    theirs = {n.replace(".default", ""): g for n, g in gradients.items()}
                    largest = max(np.abs(g).max() for g in theirs.values())
                    if not adapted:  # transformers joins the experts' tensors; these families have none
                        theirs = {n: g for n, g in theirs.items() if n in ours}
                    assert set(theirs) == set(ours), set(theirs) ^ set(ours)
                    gradient = max(np.abs(ours[n] - g).max() for n, g in theirs.items()) / largest
                    saved = AutoModelForCausalLM.from_pretrained(base if adapted else out)
                    if adapted:
                        saved = peft.PeftModel.from_pretrained(saved, out)
                    merged = scratch / "merged"
                    run(program, "convert", base if adapted else out, "--out", merged,
                        *(["--adapter", out] if adapted else []))
                    again = AutoModelForCausalLM.from_pretrained(merged)
                    with torch.no_grad():
                        expected = trained.eval()(arrays[0]).logits
                        errors = [(each.eval()(arrays[0]).logits - expected).abs().max() for each in (saved, again)]
                    logits = float(max(errors) / expected.abs().max())
                    note(f"{name} {'adapters' if adapted else 'all parameters'} {mesh}", loss, gradient, logits)
    if failed:
        sys.exit(f"wrong: {', '.join(failed)}")


if __name__ == "__main__":
    main()
