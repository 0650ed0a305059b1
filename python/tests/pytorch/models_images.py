"""Image models of `timm` for model_comparison.py."""

import functools

import timm
import torch
from model_comparison import Model, noise, patterns, tokens
from timm.models._efficientnet_blocks import SqueezeExcite
from timm.models._efficientnet_builder import decode_arch_def, round_channels
from timm.models.cait import Cait
from timm.models.mlp_mixer import MlpMixer
from timm.models.mobilenetv3 import MobileNetV3
from timm.models.regnet import RegNet, RegNetCfg

from meshard import P

CLASSES = 8


class Classifier(torch.nn.Module):
    """A model that computes its loss from labels, as those of `transformers` do."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, images, labels):
        logits = self.model(images)
        return {"logits": logits, "loss": torch.nn.functional.cross_entropy(logits, labels)}


def classifier(name, build, plan, size=64, batch=4):
    """A model of square images with CLASSES classes."""
    return Model(name, lambda: Classifier(build()),
                 lambda: dict(images=noise(batch, 3, size, size), labels=tokens(batch, vocabulary=CLASSES)),
                 patterns(plan), lambda output: output["loss"])


def mobilenet():
    layers = [["ds_r1_k3_s2_e1_c16_se0.25_nre"], ["ir_r1_k3_s2_e4_c24_nre", "ir_r1_k3_s1_e3_c24_nre"],
              ["ir_r1_k5_s2_e4_c40_se0.25"], ["cn_r1_k1_s1_c64"]]
    return MobileNetV3(
        decode_arch_def(layers), num_classes=CLASSES, stem_size=16, num_features=128, act_layer=torch.nn.Hardswish,
        se_layer=functools.partial(SqueezeExcite, gate_layer="hard_sigmoid", force_act_layer=torch.nn.ReLU,
                                   rd_round_fn=round_channels))


CHANNELS, HEADS = P("model"), P(None, "model")
"""Split by what a layer makes, and by what it takes."""

TRANSFORMER = {"*.qkv.*": CHANNELS, "*.attn.proj.weight": HEADS, "*.fc1.*": CHANNELS, "*.fc2.weight": HEADS}

MODELS = [
    classifier("resnet", lambda: timm.create_model(
        "resnet50", layers=(1, 1, 1, 1), channels=(8, 16, 16, 32), num_classes=CLASSES),
        {"*.conv?.weight": CHANNELS, "*.bn?.weight": CHANNELS, "*.bn?.bias": CHANNELS, "*.bn?.running_*": CHANNELS,
         "*.downsample.0.weight": CHANNELS, "*.fc.*": CHANNELS}),
    classifier("convnext", lambda: timm.create_model(
        "convnext_atto", depths=(1, 1, 2, 1), dims=(16, 32, 48, 64), num_classes=CLASSES),
        {"*.conv_dw.*": CHANNELS, "*.fc1.*": CHANNELS, "*.fc2.weight": HEADS, "*.downsample.1.*": CHANNELS}),
    classifier("efficientnet", lambda: timm.create_model("test_efficientnet", num_classes=CLASSES),
               {"*.conv_exp.weight": CHANNELS, "*.conv_pw.weight": CHANNELS, "*.conv_dw.weight": CHANNELS,
                "*.conv_pwl.weight": HEADS, "*.conv_reduce.weight": HEADS, "*.conv_expand.*": CHANNELS}),
    classifier("swin", lambda: timm.create_model(
        "swin_tiny_patch4_window7_224", img_size=56, embed_dim=32, depths=(2, 2), num_heads=(4, 8),
        num_classes=CLASSES, drop_path_rate=0),
        TRANSFORMER | {"*.relative_position_bias_table": HEADS, "*.reduction.weight": CHANNELS}, size=56),
    classifier("vit_timm", lambda: timm.create_model(
        "vit_tiny_patch16_224", img_size=64, embed_dim=64, depth=2, num_heads=4, num_classes=CLASSES),
        TRANSFORMER | {"*.patch_embed.proj.weight": CHANNELS}),
    classifier("mobilenetv3", mobilenet,
               {"*.conv_pw.weight": CHANNELS, "*.conv_dw.weight": CHANNELS, "*.conv_pwl.weight": HEADS,
                "*.blocks.1.?.bn1.*[ghrs]": CHANNELS, "*.conv_head.*": CHANNELS, "*.classifier.weight": HEADS}),
    classifier("regnet", lambda: RegNet(
        RegNetCfg(depth=5, w0=16, wa=20.0, wm=1.5, group_size=8, se_ratio=0.25), num_classes=CLASSES),
        {"*.conv?.conv.weight": CHANNELS, "*.bn.weight": CHANNELS, "*.bn.running_*": CHANNELS,
         "*.se.fc2.weight": CHANNELS}),
    classifier("mixer", lambda: MlpMixer(
        img_size=64, patch_size=16, embed_dim=64, num_blocks=2, num_classes=CLASSES),
        {"*.fc1.*": CHANNELS, "*.fc2.weight": HEADS}),
    classifier("cait", lambda: Cait(
        img_size=64, patch_size=16, embed_dim=64, depth=2, num_heads=4, num_classes=CLASSES, init_values=0.1),
        TRANSFORMER | {"*.attn.[qkv].*": CHANNELS, "*.attn.proj_?.*": CHANNELS}),
    classifier("nfnet", lambda: timm.create_model("test_nfnet", num_classes=CLASSES),
               {"*.stages.*.conv?.*": CHANNELS, "*.stages.*.conv2b.*": CHANNELS, "*.final_conv.weight": CHANNELS}),
]
