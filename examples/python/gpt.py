"""Trains a byte-level GPT on a mesh of devices and generates text: the C++ example `gpt` in Python.

    python examples/python/gpt.py --data LICENSE --mesh data=2,model=4 --sequence

The losses are those of the C++ program.
"""

import argparse
import dataclasses
import functools
import pathlib
import sys

import numpy as np

import meshard
from meshard import Mesh, P, io, nn, optim

BYTES = 256

# --- text -------------------------------------------------------------------------------------------------------------


def random_numbers(state, count):
    """`count` numbers of SplitMix64 (Steele, Lea and Flood, 2014), as in C++."""
    z = np.uint64(state) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def text_of_file(path):
    """The bytes of a file, and its last tenth, which is held out."""
    text = np.fromfile(path, np.uint8)
    if len(text) < 10000:
        raise ValueError(f"{path} has {len(text)} bytes; at least 10000 are needed")
    cut = len(text) // 10 * 9
    return text[:cut], text[cut:]


def windows(text, starts, length):
    """Windows of `length` + 1 bytes, i32 [len(starts), length + 1]."""
    return text[np.asarray(starts).astype(np.int64)[:, None] + np.arange(length + 1)].astype(np.int32)


def windows_of_step(text, count, length, seed, step):
    """Random windows, which depend only on the seed and the step."""
    [state] = random_numbers((seed * 0xD1B54A32D192ED03 + step) % 2**64, 1)
    return windows(text, random_numbers(state, count) % np.uint64(len(text) - length), length)


def windows_in_order(text, count, length, first):
    """Consecutive windows; those beyond the end of the text wrap around to its start."""
    return windows(text, np.arange(first, first + count) * length % (len(text) - length), length)


# --- model ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Block:
    """A layer of the transformer."""

    attention_norm: nn.RmsNorm
    attention: nn.Attention
    mlp_norm: nn.RmsNorm
    mlp: nn.GatedMlp


@dataclasses.dataclass
class Gpt:
    """A decoder-only transformer over bytes."""

    bytes: nn.Embedding
    blocks: nn.Layers | list[Block]
    norm: nn.RmsNorm
    head: nn.Linear

    def __call__(self, tokens, rules):
        """The logits of the byte after each byte: f32 [batch, time, 256] for i32 [batch, time]."""
        spread = functools.partial(rules.mark, names=P("batch", "time", None))
        x = spread(self.bytes(tokens))
        for block in self.blocks:
            x = spread(x + block.attention(block.attention_norm(x), rotary=nn.Rotary()))
            x = spread(x + block.mlp(block.mlp_norm(x)))
        return self.head(self.norm(x))


def make_gpt(make, layers, width, heads, hidden):
    """The parameters of a Gpt; see nn.create()."""

    def into_stream(inputs):
        # Layers that add to the residual stream start smaller in deeper models (Radford et al., 2019).
        return nn.init.normal(1 / np.sqrt(2 * layers * inputs))

    def make_block(make):
        return Block(attention_norm=nn.make_rms_norm(make, width),
                     attention=nn.make_attention(make, width, heads=heads, out=into_stream(width)),
                     mlp_norm=nn.make_rms_norm(make, width),
                     mlp=nn.make_gated_mlp(make, width, hidden, down=into_stream(hidden)))

    return Gpt(bytes=nn.make_embedding(make, BYTES, width, nn.init.normal(0.5)),
               blocks=nn.make_layers(make, layers, make_block),
               norm=nn.make_rms_norm(make, width),
               head=nn.make_linear(make, width, BYTES, names=("embed", "vocabulary"), bias=False,
                                   weight=nn.init.normal(0.02)))


def rules_for(mesh, sequence=False):
    """The batch is split over "data", heads and hidden values over "model" (tensor parallelism).

    With `sequence`, the activations between layers are also split over "model" along time (Korthikanti et al., 2022).
    """
    rules = {"batch": "data", "heads": "model", "key_heads": "model", "hidden": "model"}
    return nn.AxisRules(mesh, rules | ({"time": "model"} if sequence else {}))


# --- training ---------------------------------------------------------------------------------------------------------


class Trainer:
    """A model in training, and its jitted functions."""

    def __init__(self, options, train, held_back):
        self.options, self.train_text, self.held_back = options, train, held_back
        self.rules = rules = rules_for(Mesh(options.mesh), options.sequence)
        warm, peak = min(20, options.steps), options.rate
        adam = optim.AdamW(rate=optim.warm_up(peak, warm, optim.cosine(peak, max(options.steps - warm, 1), peak / 20)),
                           beta2=0.98, weight_decay=0.1, decay_rank=2)

        def loss_of(model, windows):
            inputs, targets = windows[:, :-1], windows[:, 1:]
            return nn.cross_entropy(model(inputs, rules), targets)

        @functools.partial(meshard.jit, donate_argnames=("model", "state"))
        def train_step(model, state, windows):
            loss, gradients = meshard.value_and_grad(loss_of)(model, windows)
            gradients, norm = optim.clip_by_global_norm(gradients, 1.0)
            model, state = adam.update(model, gradients, state)
            return model, state, loss, norm

        self.loss, self.train_step = meshard.jit(loss_of), train_step
        self.model = nn.create(rules, options.seed, lambda make: make_gpt(
            make, options.layers, options.width, options.heads, options.hidden))
        self.state = adam.init(self.model)

    def to_devices(self, windows):
        return self.rules.mark(windows, P("batch", None))

    def checkpoint(self):
        """What is saved, with the names that the C++ program uses."""
        return {"model": self.model, "adam": self.state, "context": np.int64(self.options.context)}

    def resume(self):
        """Continues from the checkpoint, which may come from another mesh or from the C++ program."""
        found = io.restore(self.options.checkpoint, self.checkpoint())
        self.model, self.state = found["model"], found["adam"]

    def run(self, progress=lambda step, loss: None):
        """Trains until the last step is taken; returns the losses of this call's steps."""
        o, losses, saving = self.options, [], None
        for step in range(int(self.state.steps), o.steps):
            batch = self.to_devices(windows_of_step(self.train_text, o.batch, o.context, o.seed, step))
            self.model, self.state, loss, _ = self.train_step(self.model, self.state, batch)
            losses.append(float(loss))
            progress(step + 1, losses[-1])
            if o.checkpoint and ((step + 1) % o.save_every == 0 or step + 1 == o.steps):
                if saving:
                    saving.wait()
                saving = io.save_async(o.checkpoint, self.checkpoint())  # while it trains on
        if saving:
            saving.wait()
        return losses

    def module(self):
        """The StableHLO module of the step."""
        batch = self.to_devices(np.zeros((self.options.batch, self.options.context + 1), np.int32))
        return meshard.module_text(self.train_step, self.model, self.state, batch)

    def held_back_loss(self):
        """The loss on the held-out text."""
        o = self.options
        count = max(len(self.held_back) // o.context // o.batch, 1)
        batches = (windows_in_order(self.held_back, o.batch, o.context, i * o.batch) for i in range(count))
        return np.mean([float(self.loss(self.model, self.to_devices(batch))) for batch in batches])


# --- generation -------------------------------------------------------------------------------------------------------


@functools.partial(meshard.jit, donate_argnames="caches", static_argnames="read")
def next_byte(model, tokens, caches, start, read):
    """The logits of the byte after the last one, f32 [batch, 256], and the caches with the new bytes added.

    The new bytes, i32 [batch, time], have the positions start[b], start[b] + 1, ...; only the first `read` positions of
    the caches are read.
    """
    x, new = model.bytes(tokens), []
    for block, cache in zip(model.blocks, caches):
        attended, cache = block.attention.with_cache(block.attention_norm(x), cache, start, rotary=nn.Rotary(),
                                                     read=read)
        new.append(cache)
        x = x + attended
        x = x + block.mlp(block.mlp_norm(x))
    return model.head(model.norm(x[:, -1])), new


def drawn(logits, temperature, number):
    """A byte, with probability proportional to exp(logit / temperature); at temperature 0 the likeliest."""
    if temperature <= 0:
        return int(logits.argmax())
    sums = np.cumsum(np.exp((logits - logits.max()) / temperature))
    return int(np.searchsorted(sums[:-1], int(number >> np.uint64(11)) / 2**53 * sums[-1], side="right"))


def sample(model, rules, prompt, count, context, temperature, seed):
    """Yields `count` bytes after the prompt, one at a time; `context` is the most that the model sees."""
    model = dataclasses.replace(model, blocks=list(model.blocks))  # separate layers: a step reads every weight in place
    caches = [nn.make_cache(rules, block.attention, 1, context) for block in model.blocks]
    text, first, seen = bytearray(prompt), 0, 0
    for number in random_numbers(seed, count):
        if len(text) - first > context:  # the window restarts with its last half
            first, seen = len(text) - max(context // 2, 1), 0
        fresh = np.array([text[first + seen:]], np.int32)
        end = seen + fresh.shape[1]
        read = min(max(64, 1 << (end - 1).bit_length()), context)  # a few programs serve all positions
        logits, caches = next_byte(model, fresh, caches, np.array([seen], np.int32), read)
        logits, seen = logits.numpy()[0].astype(np.float64), end
        text.append(drawn(logits, temperature, number))
        yield text[-1]


# --- command line -----------------------------------------------------------------------------------------------------


def parse_options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mesh", default="", metavar="data=2,model=4",
                        help='devices along "data" (the batch) and "model" (heads and hidden values); default one')
    parser.add_argument("--sequence", action="store_true",
                        help='splits the values between the layers over "model" by time')
    for name, default in {"steps": 1000, "batch": 16, "context": 64, "seed": 1, "layers": 2, "width": 64, "heads": 4,
                          "hidden": 176, "sample": 300}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--temperature", type=float, default=0.5)
    parser.add_argument("--prompt", default="You may ")
    parser.add_argument("--data", required=True, help="training text")
    parser.add_argument("--checkpoint", help="a safetensors file, written during training and at the end")
    parser.add_argument("--save-every", type=int, default=100, help="steps between checkpoints")
    parser.add_argument("--resume", action="store_true", help="resumes from the checkpoint, also on another mesh")
    parser.add_argument("--losses", type=pathlib.Path, help="writes the loss of every step, one per line")
    parser.add_argument("--export", type=pathlib.Path,
                        help="writes the step's StableHLO module for `meshard explain`, and trains nothing")
    options = parser.parse_args(arguments)
    if options.resume and not options.checkpoint:
        parser.error("--resume needs --checkpoint")
    sizes = dict(part.split("=") for part in options.mesh.split(",") if part)
    options.mesh = {axis: int(sizes.get(axis, 1)) for axis in ("data", "model")}
    return options


def main():
    options = parse_options()
    meshard.configure_runtime(cpu_devices=options.mesh["data"] * options.mesh["model"])
    train, held_back = text_of_file(options.data)
    print(f"{len(train)} training bytes, {len(held_back)} held out")
    trainer = Trainer(options, train, held_back)
    count = sum(tensor.size for tensor in meshard.tree.leaves(trainer.model))
    print(f"{count} parameters on {trainer.rules.mesh}; compiling the step ...", flush=True)

    if options.resume:
        trainer.resume()
    if options.export:
        options.export.write_text(trainer.module())
        return

    def progress(step, loss):
        if step * 20 % options.steps < 20:
            print(f"step {step:5} of {options.steps}   loss {loss:.4f}", flush=True)

    losses = trainer.run(progress)
    print(f"loss on the held-out text: {trainer.held_back_loss():.4f} nats per byte")
    if options.losses:
        options.losses.write_text("\n".join(map(repr, losses)) + "\n")
    if options.sample:
        print(f"\n{options.prompt}", end="", flush=True)
        for byte in sample(trainer.model, trainer.rules, options.prompt.encode(), options.sample, options.context,
                           options.temperature, options.seed):
            sys.stdout.buffer.write(bytes([byte]))
            sys.stdout.flush()
        print()


if __name__ == "__main__":
    main()
