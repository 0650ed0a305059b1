"""Examples in Python of functions that are bound from headers, by their names in C++. They end the docstrings."""

EXAMPLES = {
    "matmul": """
>>> ms.matmul(ms.asarray([[1.0, 2.0], [3.0, 4.0]]), ms.asarray([1.0, 1.0])).tolist()
[3.0, 7.0]
""",
    "einsum": """
>>> ms.einsum("ij,jk->ik", ms.ones((2, 3)), ms.ones((3, 4))).shape
(2, 4)
""",
    "dot_general": """
>>> ms.dot_general(ms.ones((5, 2, 3)), ms.ones((5, 3, 4)), lhs_contracting=[2], rhs_contracting=[1],
...                lhs_batch=[0], rhs_batch=[0]).shape
(5, 2, 4)
""",
    "outer": """
>>> ms.outer(ms.asarray([1, 2]), ms.asarray([3, 4])).tolist()
[[3, 4], [6, 8]]
""",
    "clip": """
>>> ms.clip(ms.asarray([-2.0, 0.5, 3.0]), -1.0, 1.0).tolist()
[-1.0, 0.5, 1.0]
""",
    "pad": """
>>> ms.pad(ms.asarray([1, 2]), 0, [1], [2]).tolist()
[0, 1, 2, 0, 0]
""",
    "top_k": """
>>> values, indices = ms.top_k(ms.asarray([3, 1, 4, 1, 5]), 2)
>>> values.tolist(), indices.tolist()
([5, 4], [4, 2])
""",
    "one_hot": """
>>> ms.one_hot(ms.asarray([0, 2]), 3).tolist()
[[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
""",
    "softmax": """
>>> ms.softmax(ms.asarray([0.0, 0.0])).tolist()
[0.5, 0.5]
""",
    "logsumexp": """
>>> round(ms.logsumexp(ms.asarray([0.0, 0.0])).item(), 4)
0.6931
""",
    "segment_sum": """
>>> ms.segment_sum(ms.asarray([1, 2, 3]), ms.asarray([0, 0, 1]), 2).tolist()
[3, 3]
""",
    "dynamic_slice": """
>>> ms.dynamic_slice(ms.arange(6), [2], [3]).tolist()
[2, 3, 4]
""",
    "dynamic_update_slice": """
>>> ms.dynamic_update_slice(ms.zeros(4), ms.ones(2), [1]).tolist()
[0.0, 1.0, 1.0, 0.0]
""",
    "relu": """
>>> ms.nn.relu(ms.asarray([-1.0, 2.0])).tolist()
[0.0, 2.0]
""",
    "gelu": """
>>> [round(x, 3) for x in ms.nn.gelu(ms.asarray([-1.0, 0.0, 1.0])).tolist()]
[-0.159, 0.0, 0.841]
""",
    "silu": """
>>> ms.nn.silu(ms.asarray([0.0])).tolist()
[0.0]
""",
    "layer_norm": """
>>> ms.nn.layer_norm(ms.asarray([[1.0, 3.0]]), ms.ones(2), ms.zeros(2)).round().tolist()
[[-1.0, 1.0]]
""",
    "rms_norm": """
>>> ms.nn.rms_norm(ms.asarray([[3.0, 3.0]]), ms.ones(2)).round().tolist()
[[1.0, 1.0]]
""",
    "cross_entropy": """
>>> round(ms.nn.cross_entropy(ms.zeros((2, 4)), ms.asarray([1, 3])).item(), 4)  # log(4)
1.3863
""",
    "dot_product_attention": """
>>> q = ms.ones((1, 5, 2, 8))  # batch, time, heads, size
>>> ms.nn.dot_product_attention(q, q, q, causal=True).shape
(1, 5, 2, 8)
""",
    "conv2d": """
>>> ms.nn.conv2d(ms.ones((1, 8, 8, 3)), ms.ones((3, 3, 3, 16))).shape
(1, 6, 6, 16)
""",
    "max_pool": """
>>> ms.nn.max_pool(ms.ones((1, 8, 8, 3)), (2, 2)).shape
(1, 4, 4, 3)
""",
    "avg_pool": """
>>> ms.nn.avg_pool(ms.ones((1, 8, 8, 3)), (2, 2)).shape
(1, 4, 4, 3)
""",
    "all_reduce": """
>>> f = ms.manual(ms.Mesh({"x": 4}), ms.P("x"), ms.P(), lambda part: ms.all_reduce(part, "x"))
>>> f(ms.asarray([1.0, 2.0, 3.0, 4.0])).tolist()
[10.0]
""",
    "all_gather": """
>>> f = ms.manual(ms.Mesh({"x": 4}), ms.P("x"), ms.P("x"), lambda part: ms.all_gather(part, "x").sum(keepdims=True))
>>> f(ms.asarray([1.0, 2.0, 3.0, 4.0])).tolist()
[10.0, 10.0, 10.0, 10.0]
""",
    "ring_shift": """
>>> f = ms.manual(ms.Mesh({"x": 4}), ms.P("x"), ms.P("x"), lambda part: ms.ring_shift(part, "x"))
>>> f(ms.asarray([1, 2, 3, 4])).tolist()
[4, 1, 2, 3]
""",
    "axis_index": """
>>> f = ms.manual(ms.Mesh({"x": 4}), ms.P("x"), ms.P("x"), lambda part: part + ms.axis_index("x"))
>>> f(ms.zeros(4)).tolist()
[0.0, 1.0, 2.0, 3.0]
""",
    "random::key": """
>>> ms.random.key(42).tolist()
[0, 42]
""",
    "random::split": """
>>> first, second = ms.random.split(ms.random.key(42))
>>> first.shape, first.dtype
((2,), dtype('uint32'))
""",
    "random::fold_in": """
>>> ms.random.fold_in(ms.random.key(42), 3).shape
(2,)
""",
    "random::normal": """
>>> x = ms.random.normal(ms.random.key(0), (1000,))
>>> abs(x.mean().item()) < 0.2, abs(x.std().item() - 1) < 0.2
(True, True)
""",
    "random::uniform": """
>>> x = ms.random.uniform(ms.random.key(0), (2, 3))
>>> x.shape, bool(((x >= 0) & (x < 1)).all())
((2, 3), True)
""",
    "random::bernoulli": """
>>> ms.random.bernoulli(ms.random.key(0), 1.0, (3,)).tolist()
[True, True, True]
""",
    "random::randint": """
>>> x = ms.random.randint(ms.random.key(0), (100,), 0, 10)
>>> bool(((x >= 0) & (x < 10)).all())
True
""",
    "random::permutation": """
>>> sorted(ms.random.permutation(ms.random.key(0), 5).tolist())
[0, 1, 2, 3, 4]
""",
    "random::categorical": """
>>> ms.random.categorical(ms.random.key(0), ms.asarray([0.0, 100.0])).item()
1
""",
    "random::choice": """
>>> ms.random.choice(ms.random.key(0), ms.asarray([7, 7]), (3,)).tolist()
[7, 7, 7]
""",
}
