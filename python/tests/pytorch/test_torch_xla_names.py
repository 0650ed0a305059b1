"""Programs of torch_xla on the device of meshard, each in a process of its own: names are installed once."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")

HERE = pathlib.Path(__file__).parent


def run(*arguments, **environment):
    return subprocess.run([sys.executable, "-m", "meshard.torch.xla", *map(str, arguments)], capture_output=True,
                          text=True, cwd=HERE, env=os.environ | environment, timeout=300)


def test_programs():
    # The second file's programs run on the device "meshard" in the process of the other tests.
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "torch_xla_programs.py", "test_eager.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_script_with_arguments(tmp_path):
    script = tmp_path / "script.py"
    (tmp_path / "beside.py").write_text("ones = lambda n: __import__('torch').ones(n)\n", encoding="utf-8")
    script.write_text("import sys, beside, torch_xla.runtime as xr\n"
                      "if __name__ == '__main__':\n"
                      "    print(sys.argv[1:], beside.ones(2).to('xla'), xr.global_runtime_device_count())\n"
                      "    sys.exit(3)\n", encoding="utf-8")
    done = run(script, "--steps", 2, PJRT_DEVICE="CPU", CPU_NUM_DEVICES="4")
    assert done.returncode == 3 and done.stdout == "['--steps', '2'] tensor([1., 1.], device='xla:0') 4\n", done.stderr


def test_without_a_script():
    done = run()
    assert done.returncode == 2 and "usage: python -m meshard.torch.xla" in done.stderr


HLO = """
import torch, torch_xla, torch_xla.distributed.spmd as xs
mesh = xs.Mesh(range(8), (8,))
text = lambda *each: torch_xla._XLAC._get_xla_tensors_hlo(list(each))
x = torch.ones(8, 2).to("xla")
xs.mark_sharding(x, mesh, (0, None))
x += 1
print(text(x))
x.sub_(x.t().t() * 7, alpha=3)
print(text(x.sum().abs_(), *torch.topk(x, 1, 0)))
part = xs._mark_manual_sharding(x * 2).global_tensor
print(text(part))
layer = torch.nn.Linear(64, 1).to("xla")
layer(torch.randn(2, 64, requires_grad=True).to("xla")).sum().backward()
print(text(layer.weight.grad))
"""


def test_hlo_text(tmp_path):
    (tmp_path / "script.py").write_text(HLO, encoding="utf-8")
    done = run(tmp_path / "script.py", XLA_HLO_DEBUG="1")
    assert done.returncode == 0, done.stderr
    spec = "sharding={devices=[8,1]0,1,2,3,4,5,6,7}"
    # Operations are as those of XLA: the numbers of k operations of a kind are k, k + 1, ..., add has its alpha,
    # layouts of transposes are permuted, and numbers other than 0 and 1 are parameters.
    for line in (f"%p0.1 = f32[8,2]{{1,0}} parameter(0), {spec}",
                 "%multiply.1 = f32[] multiply(f32[] %constant.3, f32[] %constant.2)",
                 "%broadcast.1 = f32[8,2]{1,0} broadcast(f32[] %multiply.1), dimensions={}",
                 "%add.1 = f32[8,2]{1,0} add(f32[8,2]{1,0} %p0.1, f32[8,2]{1,0} %broadcast.1)",
                 '%custom-call.1 = f32[8,2]{1,0} custom-call(f32[8,2]{1,0} %add.1), custom_call_target="Sharding", '
                 + spec,
                 "ENTRY %main (p0.1: f32[], p1.1: f32[], p2.1: f32[8,2]{1,0})",
                 "%transpose.2 = f32[2,8]{0,1} transpose(f32[8,2]{1,0} %custom-call.1), dimensions={1,0}",
                 "%broadcast.4 = f32[8,2]{1,0} broadcast(f32[] %p1.1), dimensions={}",
                 "%broadcast.5 = f32[8,2]{1,0} broadcast(f32[] %p0.1), dimensions={}",
                 "%subtract.1 = f32[8,2]{1,0} subtract(f32[8,2]{1,0} %custom-call.1, f32[8,2]{1,0} %multiply.5), "
                 + spec,
                 "%abs.1 = f32[] abs(f32[] %reduce.1)", "%get-tuple-element.3 = s64[1,2]{1,0} get-tuple-element",
                 'custom_call_target="Sharding", sharding={manual}', "-> (f32[1,64]{0,1})"):
        assert line in done.stdout, (line, done.stdout)


METRICS = """
import torch, torch_xla, torch_xla.debug.metrics as met, torch_xla.distributed.spmd as xs
x, w = torch.ones(4, 8).to("xla"), torch.ones(8, 8).to("xla")
xs.mark_sharding(w, xs.Mesh(range(8), (8,)), (None, 0))
y = x @ w
torch_xla.sync()
met.clear_all()
x.cpu()
print(met.counter_value("ReplicateShardedData"), met.metric_data("InputOutputAliasCount"))
y.cpu(), y[0, 0].item(), w.tolist()
print(met.counter_value("ReplicateShardedData"))
y += 1
torch_xla.sync()
print(met.metric_data("InputOutputAliasCount")[0], met.metric_data("CompileTime")[0])
"""


def test_metrics_of_reads_and_aliases(tmp_path):
    (tmp_path / "script.py").write_text(METRICS, encoding="utf-8")
    done = run(tmp_path / "script.py")
    lines = done.stdout.split("\n")
    assert lines[:2] == ["None None", "3"], done.stdout + done.stderr
    assert len(set(lines[2].split())) == 1, done.stdout


PLACES = """
import torch, torch_xla, torch_xla.debug.metrics as met, torch_xla.distributed.spmd as xs
info = torch_xla._XLAC._get_xla_tensor_debug_info
used, marked, unused = (torch.ones(8).to("xla") for _ in range(3))
met.clear_all()
print("Tensor on host: with size [8]" in info(used), met.metric_names())
made = used * 3
print("Tensor on host: None" in info(used), "xla::device_data" in info(used), met.metric_data("OutboundData"))
xs.mark_sharding(marked, xs.Mesh(range(8), (8,)), (0,))
(made + used).cpu(), marked.cpu()
print("NumShards: 8" in info(marked), "Tensor on host: with size [8]" in info(unused), met.metric_data("OutboundData"))
"""


def test_where_tensors_are(tmp_path):
    (tmp_path / "script.py").write_text(PLACES, encoding="utf-8")
    done = run(tmp_path / "script.py", XLA_USE_SPMD="1")
    # The elements of `used` are sent once, with the number 3, and each shard of `marked` once.
    assert done.stdout == "True []\nTrue True (2, 36.0, ())\nTrue True (10, 68.0, ())\n", done.stdout + done.stderr
