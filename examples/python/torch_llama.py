"""Trains a small Llama of `transformers` on a mesh of devices, explains the step, and generates text.

    python examples/python/torch_llama.py --data LICENSE --mesh data=2,model=4 --explain v5e:2x4

The model is that of `transformers`, unchanged: its own plan (`tp_plan`) says how its weights are sharded over "model",
and the batch is split over "data". Needs the packages torch and transformers.
"""

import argparse
import pathlib

import torch
import transformers

import meshard as ms
import meshard.torch as mt
from meshard import P

BYTES = 256


def make_model(options):
    """A Llama over bytes."""
    torch.manual_seed(options.seed)
    config = transformers.LlamaConfig(
        vocab_size=BYTES, hidden_size=options.width, intermediate_size=3 * options.width,
        num_hidden_layers=options.layers, num_attention_heads=options.heads, num_key_value_heads=options.heads,
        max_position_embeddings=1024, bos_token_id=None, eos_token_id=None, pad_token_id=0)
    return transformers.LlamaForCausalLM(config)


def batches(text, options):
    """Random windows of the text, i64 [batch, context]."""
    generator = torch.Generator().manual_seed(options.seed)
    for _ in range(options.steps):
        starts = torch.randint(len(text) - options.context, (options.batch,), generator=generator)
        yield torch.stack([text[start:start + options.context] for start in starts.tolist()])


def make_step(model, options):
    """A training step of a batch, as one program, and the schedule of its learning rate."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, betas=(0.9, 0.98), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps, eta_min=options.rate / 20)
    step = mt.train_step(model, lambda output: output.loss, optimizer,
                         before_update=lambda parameters: torch.nn.utils.clip_grad_norm_(parameters, 1.0))
    return step, schedule


def train(model, step, schedule, text, mesh, options):
    """Trains the model; returns the losses."""
    losses = []
    model.train()
    for windows in batches(text, options):
        mt.mark_sharding(windows, mesh, P("data"))
        # The labels are the same bytes: the model compares each position with the next byte.
        losses.append(step(input_ids=windows, labels=windows, use_cache=False))
        schedule.step()
        if len(losses) * 10 % options.steps < 10:
            print(f"step {len(losses):5} of {options.steps}   loss {float(losses[-1]):.4f}", flush=True)
    return [float(loss) for loss in losses]


def generate(model, prompt, options):
    """Bytes after the prompt. The cache of keys and values stays on the devices, and a step writes in its memory."""
    sampling = {"do_sample": True, "temperature": options.temperature} if options.temperature else {"do_sample": False}
    tokens = torch.tensor([list(prompt)])
    model.eval()
    model.forward = mt.compile(model.forward)
    made = model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=options.sample,
                          cache_implementation="static", **sampling)
    del model.forward  # that of the class again
    return made[0, len(prompt):].tolist()


def parse_options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mesh", default="data=1,model=1", metavar="data=2,model=4",
                        help='devices along "data" (the batch) and "model" (heads and hidden values)')
    for name, default in {"steps": 300, "batch": 16, "context": 64, "seed": 1, "layers": 2, "width": 64, "heads": 4,
                          "sample": 200}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--temperature", type=float, default=0.5)
    parser.add_argument("--prompt", default="You may ")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="training text")
    parser.add_argument("--explain", metavar="TOPOLOGY", help="reports what a compiler makes of the step on a target, "
                        "such as v5e:2x4, with as many devices as the mesh; nothing is trained")
    options = parser.parse_args(arguments)
    sizes = dict(part.split("=") for part in options.mesh.split(","))
    options.mesh = {axis: int(sizes.get(axis, 1)) for axis in ("data", "model")}
    return options


def run(options):
    mesh = ms.Mesh(options.mesh)
    text = torch.tensor(list(options.data.read_bytes()))
    model = mt.parallelize_module(make_model(options), mesh, axis="model")
    step, schedule = make_step(model, options)
    print(f"{sum(each.numel() for each in model.parameters())} parameters on {mesh}")
    if options.explain:
        windows = mt.mark_sharding(next(batches(text, options)), mesh, P("data"))
        print(ms.explain(step, input_ids=windows, labels=windows, use_cache=False, topology=options.explain))
        return
    train(model, step, schedule, text, mesh, options)
    made = generate(model, options.prompt.encode(), options)
    print(f"\n{options.prompt}{bytes(made).decode(errors='replace')}")


def main():
    options = parse_options()
    ms.configure_runtime(cpu_devices=options.mesh["data"] * options.mesh["model"])
    run(options)


if __name__ == "__main__":
    main()
