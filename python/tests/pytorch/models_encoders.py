"""Encoders, encoder-decoders, models of images and sound, and a state space model for model_comparison.py."""

import torch
import transformers
from model_comparison import Model, noise, patterns, tokens

from meshard import P

TEXT = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
"""The sizes of a model of text, by the names of BERT's configuration."""

IMAGES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=16,
              patch_size=4)
"""The sizes of a model of images, by the names of ViT's configuration."""

NO_DROPOUT = dict(hidden_dropout_prob=0, attention_probs_dropout_prob=0)

SPECIAL = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)


def tensor_parallel(columns, rows, biases=()):
    """A plan for Model: the outputs of some linear layers are split over "model", and the inputs of others.

    Layers are named by patterns; `biases` are those of `columns` that have one.
    """
    return patterns({**{f"{name}.weight": P("model", None) for name in columns},
                     **{f"{name}.bias": P("model") for name in biases},
                     **{f"{name}.weight": P(None, "model") for name in rows}})


def texts(**more):
    """The arguments of a model of four texts, one of them padded at the right, that computes its loss."""
    ids = tokens(4, 12, vocabulary=64)
    mask = torch.ones_like(ids)
    mask[1, 8:] = 0
    return dict(input_ids=ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100)) | more


def images(**more):
    return dict(pixel_values=noise(4, 3, 16, 16), **more)


def pairs():
    """Images, and texts that end with token 2."""
    ids = tokens(4, 12, vocabulary=64).clamp(min=3)
    ids[:, -1] = 2
    return images(input_ids=ids, attention_mask=torch.ones_like(ids), return_loss=True)


def spoken(**more):
    return dict(input_features=noise(4, 16, 40), **more)


def of(cls, config):
    """The function that builds a model of a class."""
    return lambda: getattr(transformers, cls)(config)


MODELS = [
    Model("bert", of("BertForMaskedLM", transformers.BertConfig(**TEXT, **NO_DROPOUT, max_position_embeddings=32)),
          texts, tensor_parallel(("*.query", "*.key", "*.value", "*.intermediate.dense"), ("*.output.dense",),
                                 ("*.query", "*.key", "*.value", "*.intermediate.dense"))),
    Model("modernbert", of("ModernBertForMaskedLM", transformers.ModernBertConfig(
        **TEXT | {"num_hidden_layers": 3}, **SPECIAL, cls_token_id=1, sep_token_id=2, max_position_embeddings=32,
        local_attention=6, global_attn_every_n_layers=2)),
        texts, tensor_parallel(("*.Wqkv", "*.Wi"), ("*.Wo",))),
    Model("t5", of("T5ForConditionalGeneration", transformers.T5Config(
        vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0,
        decoder_start_token_id=0)),
        lambda: texts(labels=tokens(4, 7, vocabulary=64, seed=2), use_cache=False),
        tensor_parallel(("*.q", "*.k", "*.v", "*.wi"), ("*.o", "*.wo")),
        generate=dict(inputs=tokens(4, 12, vocabulary=64), max_new_tokens=8, do_sample=False)),
    Model("vit", of("ViTForImageClassification", transformers.ViTConfig(**IMAGES, **NO_DROPOUT, num_labels=8)),
          lambda: images(labels=torch.arange(4)),
          tensor_parallel(("*.[qkv]_proj", "*.fc1"), ("*.o_proj", "*.fc2"), ("*.[qkv]_proj", "*.fc1"))),
    Model("clip", of("CLIPModel", transformers.CLIPConfig(
        text_config=dict(**TEXT, **SPECIAL, max_position_embeddings=16, projection_dim=16),
        vision_config=dict(**IMAGES, projection_dim=16), projection_dim=16)),
        pairs, tensor_parallel(("*.[qkv]_proj", "*.fc1"), ("*.out_proj", "*.fc2"), ("*.[qkv]_proj", "*.fc1"))),
    Model("whisper", of("WhisperForConditionalGeneration", transformers.WhisperConfig(
        **SPECIAL, vocab_size=64, num_mel_bins=16, d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
        max_source_positions=20, max_target_positions=16, decoder_start_token_id=1, dropout=0)),
        lambda: spoken(labels=tokens(4, 7, vocabulary=64), use_cache=False),
        tensor_parallel(("*.[qkv]_proj", "*.fc1"), ("*.out_proj", "*.fc2"), ("*.[qv]_proj", "*.fc1")),
        generate=dict(**spoken(), max_new_tokens=8, do_sample=False)),
    Model("mamba", of("MambaForCausalLM", transformers.MambaConfig(
        **SPECIAL, vocab_size=64, hidden_size=32, state_size=8, num_hidden_layers=2, time_step_rank=4)),
        lambda: texts(use_cache=False),
        tensor_parallel(("*.in_proj",), ("*.out_proj",)),
        generate=dict(inputs=tokens(4, 7, vocabulary=64), max_new_tokens=8, do_sample=False)),
]
