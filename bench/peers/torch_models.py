"""The programs of the rows about PyTorch, which each system runs as they are: a Llama of transformers and ResNet-50.

A system is an object with the methods of torch_programs.Eager.
"""

import time

BATCH, CONTEXT, CACHE, TOKENS = 4, 64, 256, 8
IMAGES, PIXELS = 8, 128


def llama():
    """100 M parameters."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=16384, hidden_size=1024, intermediate_size=2816, num_hidden_layers=6, num_attention_heads=16,
        num_key_value_heads=4, max_position_embeddings=CACHE))


def llama_spec(name):
    """How a parameter or cache of the Llama is sharded over the axis "model": by rows, columns, heads, or not at all."""
    if name.startswith(("keys", "values")):
        return (None, "model", None, None)
    kind = name.split(".")[-2]
    if kind in ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "lm_head"):
        return ("model", None)
    return (None, "model") if kind in ("o_proj", "down_proj") else None


def decoder(model):
    """A module that chooses the likeliest next token, and keeps keys and values in buffers."""
    import torch
    from transformers import StaticCache

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model
            config = model.config
            self.cache = StaticCache(max_cache_len=CACHE, config=config)
            self.cache.early_initialization(1, config.num_key_value_heads, config.head_dim, torch.float32, torch.device("cpu"))
            for i, layer in enumerate(self.cache.layers):
                self.register_buffer(f"keys{i}", layer.keys)
                self.register_buffer(f"values{i}", layer.values)

        def forward(self, tokens, position):
            for i, layer in enumerate(self.cache.layers):
                layer.keys, layer.values = getattr(self, f"keys{i}"), getattr(self, f"values{i}")
                layer.cumulative_length = position.clone()  # the cache counts on, in place
            logits = self.model(input_ids=tokens, past_key_values=self.cache).logits
            return logits[:, -1].argmax(-1, keepdim=True)

    return Decoder().eval()


def resnet50():
    import torch
    from torch import nn

    def convolution(inputs, outputs, size, stride=1):
        return [nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs)]

    class Bottleneck(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            outputs = 4 * width
            self.path = nn.Sequential(*convolution(inputs, width, 1), nn.ReLU(inplace=True),
                                      *convolution(width, width, 3, stride), nn.ReLU(inplace=True),
                                      *convolution(width, outputs, 1))
            self.shortcut = nn.Sequential(*convolution(inputs, outputs, 1, stride)) \
                if stride != 1 or inputs != outputs else nn.Identity()

        def forward(self, x):
            return torch.relu(self.path(x) + self.shortcut(x))

    torch.manual_seed(0)
    parts, inputs = [*convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            parts.append(Bottleneck(inputs, 64 << stage, 2 if stage and not block else 1))
            inputs = 256 << stage
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def timed(step, wait, number, count=3):
    """Facts: the seconds until each of the first calls was done, and what they returned."""
    seconds, values, begin = [], [], time.perf_counter()
    for _ in range(count):
        value = step()
        wait(value)
        seconds.append(time.perf_counter() - begin)
        values.append(number(value))
    return {"first": seconds[0], "ready": seconds[-1], "values": values}


def work(step, system):
    """The facts of its first three calls, and a work that calls it once more and waits."""
    facts = timed(step, system.wait, lambda value: float(value.reshape(-1)[0]))

    def run():
        begin = time.perf_counter()
        system.wait(step())
        return time.perf_counter() - begin

    return facts, run


def works(make_system):
    """The works by their names. `make_system(**options)` returns the system."""

    def llama_training(**options):
        import torch
        system, model = make_system(**options), llama()
        system.shard(model, llama_spec)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        step = system.train_step(model, lambda output: output.loss, optimizer)
        tokens = system.batch((torch.arange(BATCH * CONTEXT) * 7 % 16381).reshape(BATCH, CONTEXT))
        return work(lambda: step(input_ids=tokens, labels=tokens), system)

    def llama_decoding(**options):
        import torch
        system, module = make_system(**options), decoder(llama())
        system.shard(module, llama_spec)
        step = system.inference(module)
        first, start = (system.whole(each) for each in (torch.tensor([[1]]), torch.tensor([CACHE - TOKENS])))

        def generate():
            tokens, position, chosen = first, start, []
            for _ in range(TOKENS):
                tokens = step(tokens, position)
                position = position + 1
                chosen.append(tokens)
            return chosen

        def last():
            return generate()[-1]

        facts, run = work(last, system)
        return {**facts, "tokens": [int(each) for each in generate()]}, run

    def resnet_inference(**options):
        import torch
        system, model = make_system(**options), resnet50().eval()
        system.shard(model, lambda name: None)
        step, images = system.inference(model), system.batch(torch.rand(IMAGES, 3, PIXELS, PIXELS))
        return work(lambda: step(images), system)

    def resnet_training(**options):
        import torch
        system, model = make_system(**options), resnet50()
        system.shard(model, lambda name: None)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        step = system.train_step(model, torch.nn.functional.cross_entropy, optimizer)
        images = system.batch(torch.rand(IMAGES, 3, PIXELS, PIXELS))
        labels = system.batch(torch.arange(IMAGES))
        return work(lambda: step(images, labels), system)

    return {each.__name__: each for each in (llama_training, llama_decoding, resnet_inference, resnet_training)}
