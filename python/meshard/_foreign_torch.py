"""Programs of PyTorch as StableHLO, through torch_xla or torchax."""

import contextlib
import re

__all__ = []

_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
_SCOPE = "torch_node_"


def _places(node, is_library):
    """The line of the user's that made a node, as (file, line); None if it is not known."""
    frames = _FRAME.findall((getattr(node, "meta", None) or {}).get("stack_trace") or "")
    own = [frame for frame in frames if not is_library(frame[0])] or frames
    return own[-1] if own else None


@contextlib.contextmanager
def _numbered_nodes(interpreter, is_library, places):
    """While active, torchax records each node of a program in a scope whose number `places` has."""
    import jax

    plain = interpreter.run_node

    def run_node(self, node):
        place = _places(node, is_library)
        if place is None:
            return plain(self, node)
        places.append(place)
        with jax.named_scope(f"{_SCOPE}{len(places) - 1}"):
            return plain(self, node)

    interpreter.run_node = run_node
    try:
        yield
    finally:
        interpreter.run_node = plain


def with_places(text, places):
    """Module text in which the ops of numbered scopes have the places of these numbers."""

    def replaced(match):
        file, line = places[int(match[3])]
        name = match[2] + match[4]
        return f'{match[1]} = loc("{name}"("{file}":{line}:1))' if '"' not in file and "\\" not in file else match[0]

    return re.sub(rf'^(#loc\d*) = loc\("([^"\n]*?){_SCOPE}(\d+)/([^"\n]*)"\([^\n]*\)\)$', replaced, text,
                  flags=re.MULTILINE)


def with_names(text, signature):
    """Module text in which the arguments have the names of the PyTorch program, such as `layers.0.weight`."""
    states = [*signature.parameters, *signature.buffers, *getattr(signature, "lifted_tensor_constants", ())]
    names = {f"states[{i}]": name for i, name in enumerate(states)}
    names |= {f"inputs[0][{i}]": name for i, name in enumerate(signature.user_inputs) if isinstance(name, str)}
    return re.sub(r'loc\("((?:states|inputs\[0\])\[\d+\])"\)',
                  lambda found: f'loc("{names.get(found[1], found[1])}")', text)


def stablehlo_of(program, is_library):
    """The StableHLO text of a torch.export.ExportedProgram, or a jax.export.Exported whose sizes are symbolic.

    `is_library` says whether a file belongs to an installed package.
    """
    problems = []
    try:
        from torch_xla.stablehlo import exported_program_to_stablehlo
    except Exception as error:  # a package that does not fit the version of torch fails in many ways
        problems.append(f"torch_xla: {error}")
    else:
        return exported_program_to_stablehlo(program).get_stablehlo_text("forward")
    try:
        from torchax import export
    except Exception as error:
        problems.append(f"torchax: {error}")
    else:
        places = []
        with _numbered_nodes(export.JaxInterpreter, is_library, places):
            _, exported = export.exported_program_to_stablehlo(program)
        if any(not isinstance(size, int) for aval in exported.in_avals for size in aval.shape):
            return exported
        return with_names(with_places(exported.mlir_module(), places), program.graph_signature)
    raise ImportError("[explain] a torch.export.ExportedProgram becomes StableHLO through torch_xla or torchax, and "
                      f"neither can be imported ({'; '.join(problems)}): pip install torchax")
