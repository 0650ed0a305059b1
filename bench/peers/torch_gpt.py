"""Greedy decoding with the model of examples/gpt in PyTorch, eager and compiled."""

import time

import weights as weight_files


def rms_norm(params, x):
    import torch
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * params["scale"]


def rotated(x, cosine, sine):
    import torch
    first, second = x.chunk(2, -1)
    return torch.cat([first * cosine - second * sine, first * sine + second * cosine], -1)


def next_token(model, caches, tokens, start, rows, places, frequencies):
    """The likeliest next tokens. Writes the new keys and values into the caches."""
    import torch
    import torch.nn.functional as functional
    angle = (start[:, None].to(torch.float32) * frequencies)[:, None, :]  # [batch, heads, half]
    cosine, sine = angle.cos(), angle.sin()
    seen = (places[None] <= start[:, None])[:, None, None]
    x = model["bytes"]["table"][tokens]
    for block, (keys, values) in zip(model["blocks"], caches):
        params = block["attention"]
        width, heads, size = params["query"].shape
        h = rms_norm(block["attention_norm"], x)
        query, key, value = ((h @ params[name].view(width, heads * size)).view(-1, heads, size)
                             for name in ("query", "key", "value"))
        keys[rows, :, start], values[rows, :, start] = rotated(key, cosine, sine), value
        out = functional.scaled_dot_product_attention(rotated(query, cosine, sine)[:, :, None], keys, values, attn_mask=seen)
        x = x + out.reshape(-1, heads * size) @ params["out"].view(heads * size, width)
        h = rms_norm(block["mlp_norm"], x)
        mlp = block["mlp"]
        x = x + (functional.silu(h @ mlp["gate"]["weight"]) * (h @ mlp["up"]["weight"])) @ mlp["down"]["weight"]
    return (rms_norm(model["norm"], x) @ model["head"]["weight"]).argmax(-1)


def tensors_of(values):
    import torch
    if isinstance(values, dict):
        return {key: tensors_of(value) for key, value in values.items()}
    return [tensors_of(value) for value in values] if isinstance(values, list) else torch.from_numpy(values.copy())


def decode(weights, batch, context, steps, compiled):
    """Greedy decoding of the last `steps` positions of the context; a run is all of them."""
    import torch
    model = tensors_of(weight_files.nested(weight_files.read(weights)))
    _, heads, size = model["blocks"][0]["attention"]["key"].shape
    caches = [(torch.zeros(batch, heads, context, size), torch.zeros(batch, heads, context, size)) for _ in model["blocks"]]
    rows, places = torch.arange(batch), torch.arange(context)
    frequencies = 10000.0 ** (-torch.arange(size // 2, dtype=torch.float32) / (size // 2))
    first, begin_at = torch.arange(batch) % 256, torch.full((batch,), context - steps)
    step = torch.compile(next_token, dynamic=False) if compiled else next_token

    @torch.inference_mode()
    def generate():
        tokens, start, all_tokens = first, begin_at, []
        for _ in range(steps):
            tokens = step(model, caches, tokens, start, rows, places, frequencies)
            start = start + 1
            all_tokens.append(tokens)
        return all_tokens

    tokens = [int(each[0]) for each in generate()]
    generate()

    def run():
        begin = time.perf_counter()
        generate()
        return time.perf_counter() - begin

    return {"tokens": tokens}, run
