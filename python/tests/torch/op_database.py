"""Runs op_db through meshard.torch.function. usage: opdb.py [--only a,b] [--grad] [--dtype float32] [--samples 40]"""
import argparse, sys, time, warnings, traceback, collections, json, os
warnings.filterwarnings("ignore")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL","3")
import torch
from torch.testing._internal.common_methods_invocations import op_db
import meshard.torch as mt
from torch.utils._pytree import tree_map, tree_flatten
p=argparse.ArgumentParser(); p.add_argument("--only"); p.add_argument("--grad",action="store_true"); p.add_argument("--dtype",default="float32"); p.add_argument("--samples",type=int,default=8); p.add_argument("--part",default="0/1"); p.add_argument("--verbose",action="store_true"); p.add_argument("--out")
a=p.parse_args(); dt=getattr(torch,a.dtype); only=a.only.split(",") if a.only else None
i,n=map(int,a.part.split("/"))
def same(x,y):
    if isinstance(x,torch.Tensor):
        if not isinstance(y,torch.Tensor): return f"{type(y)} for a tensor"
        if x.dtype!=y.dtype: return f"dtype {y.dtype} for {x.dtype}"
        if x.shape!=y.shape: return f"shape {tuple(y.shape)} for {tuple(x.shape)}"
        try: torch.testing.assert_close(y.detach(),x.detach(),equal_nan=True,rtol=1e-4 if dt==torch.float32 else None,atol=1e-4 if dt==torch.float32 else None,check_stride=False,check_device=False)
        except AssertionError as e: return "values: "+str(e).replace("\n"," ")[:120]
        return ""
    return "" if x==y or (x!=x and y!=y) else f"{y} for {x}"
def other_of_equals(op,s,want,got):
    """Whether the indices are of elements that equal those of PyTorch's: which of equal elements is found is not specified."""
    if op.name=="argsort":
        x=s.input.detach(); dim=s.kwargs.get("dim",s.args[0] if s.args else -1); keep=lambda v: x.gather(dim,v) if x.ndim else x
        return not s.kwargs.get("stable") and not same(keep(want[0]),keep(got[0]))
    if op.name not in ("topk","kthvalue","mode","sort") or not isinstance(s.input,torch.Tensor) or s.kwargs.get("stable"): return False
    x=s.input.detach(); dim=s.kwargs.get("dim",(*s.args,-1)[0 if op.name in ("mode","sort") else 1] if op.name in ("mode","sort") or len(s.args)>1 else -1)
    found=want[0].detach()
    keep=lambda v: v if v.ndim==x.ndim else v.unsqueeze(dim)
    return not same(found,got[0]) and (not x.ndim or not same(keep(found),x.gather(dim,keep(got[1]))))
def other_phases(op,s,want,got):
    """Whether factors differ from PyTorch's by the phases of their vectors, which are not specified."""
    if op.name in ("linalg.eigh","linalg.eig"):
        (w,v),a=got[:2],s.input.detach()
        a=a if op.name=="linalg.eig" else torch.tril(a)+torch.tril(a,-1).mT.conj() if s.kwargs.get("UPLO","L")=="L" else torch.triu(a)+torch.triu(a,1).mT.conj()
        return torch.allclose(a.to(v.dtype)@v,v*w.unsqueeze(-2).to(v.dtype),atol=1e-3) and not same(want[0],w)
    if op.name in ("svd","linalg.svd","svd_lowrank","pca_lowrank") and len(got)==3:
        reduced=lambda u,e,v: (u[...,:e.shape[-1]]*e.unsqueeze(-2).to(u.dtype))@(v[...,:e.shape[-1],:] if op.name=="linalg.svd" else v[...,:e.shape[-1]].mH)
        whole=lambda v: v if op.name!="linalg.svd" else v.mH
        unitary=lambda v: torch.allclose(v.mH@v,torch.eye(v.shape[-1],dtype=v.dtype),atol=1e-3)
        return not same(want[1],got[1]) and not same(reduced(*want),reduced(*got)) and unitary(got[0]) and unitary(whole(got[2]))
    return False
totals=collections.Counter(); t0=time.time(); out={}
for k,op in enumerate(op_db):
    if k%n!=i: continue
    name=op.name+("."+op.variant_test_name if op.variant_test_name else "")
    if only and op.name not in only and name not in only: continue
    if dt not in op.supported_dtypes("cpu"): totals["dtype"]+=1; continue
    if a.grad and not op.supports_autograd: totals["nograd"]+=1; continue
    verdict,reason="right",""
    count=0
    try:
        torch.manual_seed(0)
        samples=list(op.sample_inputs("cpu",dt,requires_grad=a.grad))
        step=max(1,len(samples)//a.samples)
        for s in samples[::step]:
            flat,spec=tree_flatten((s.input,s.args,s.kwargs))
            idx=[j for j,v in enumerate(flat) if isinstance(v,torch.Tensor)]
            def f(*ts):
                g=list(flat)
                for j,v in zip(idx,ts): g[j]=v
                x,ar,kw=torch.utils._pytree.tree_unflatten(g,spec)
                r=op.op(x,*ar,**kw)
                return s.output_process_fn_grad(r) if a.grad else r
            fresh=lambda: [flat[j].detach().clone().requires_grad_(flat[j].requires_grad) if flat[j].is_leaf or True else flat[j] for j in idx]
            try: ta=fresh(); want=f(*ta)
            except Exception as e: continue
            tb=fresh(); count+=1
            # Samples of random operations set the seed themselves.
            drawn="empty" in name; seed=torch.manual_seed; torch.manual_seed=lambda *_: None
            try:
                for number in range(1,5):
                    seed(number); again=f(*fresh())
                    drawn=drawn or any(isinstance(x,torch.Tensor) and same(x,y) for x,y in zip(tree_flatten(want)[0],tree_flatten(again)[0]))
                    if drawn or "random" not in name and "drop" not in name and "bernoulli" not in name and "multinomial" not in name: break
            finally: torch.manual_seed=seed
            got=mt.function(f)(*tb)
            w=tree_flatten(want)[0]; g=tree_flatten(got)[0]
            for x,y in zip(w,g):
                d=same(x,y)
                # Of random numbers, only dtype and shape are compared; test_random.py has their distributions.
                if d and not (drawn and d.startswith("values")) and not (d.startswith("values") and (other_of_equals(op,s,w,g) or other_phases(op,s,w,g))): verdict,reason="wrong",d; break
            if verdict=="right" and a.grad and not drawn:
                wg=[x for x in w if isinstance(x,torch.Tensor) and x.requires_grad]; gg=[y for x,y in zip(w,g) if isinstance(x,torch.Tensor) and x.requires_grad]
                ia=[x for x in ta if x.requires_grad]; ib=[x for x in tb if x.requires_grad]
                if wg and ia:
                    seeds=[torch.randn_like(x) for x in wg]
                    A=torch.autograd.grad(wg,ia,seeds,allow_unused=True); B=torch.autograd.grad(gg,ib,[v.clone() for v in seeds],allow_unused=True)
                    for x,y in zip(A,B):
                        if x is None: x=torch.zeros_like(y) if y is not None else None
                        if y is None and x is not None: y=torch.zeros_like(x)
                        d=same(x,y) if x is not None else ""
                        if d: verdict,reason="wrong","gradient "+d; break
            if verdict!="right": break
    except Exception as e:
        m=str(e).strip().replace("\n"," ")
        verdict,reason=("missing" if "has no lowering" in m else "error"),type(e).__name__+": "+m[:220]
        if a.verbose: traceback.print_exc()
    totals[verdict]+=1; out[name]=(verdict,reason,count)
    if verdict!="right" or a.verbose: print(f"{verdict:8}{name:45}{reason}",flush=True)
print(dict(totals), f"{time.time()-t0:.0f} s")
if a.out: json.dump(out,open(a.out,"w"),indent=1)
