// jit for Python functions.
#include "python/bindings/transforms/jit.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "meshard/core.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/trace/trace_function.h"
#include "python/bindings/arrays/foreign_arrays.h"
#include "python/bindings/arrays/host_arrays.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/transforms/pytree.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

// Static values are Python objects. A value equals only values of its own class: 1 is not True.
const internal::StaticKind kObject{
    .equal = [](const void* kept, const void* given) -> bool {
      Locked locked;
      auto* one = static_cast<PyObject*>(const_cast<void*>(kept));
      auto* other = static_cast<PyObject*>(const_cast<void*>(given));
      if (Py_TYPE(one) != Py_TYPE(other)) return false;
      const int equal = PyObject_RichCompareBool(one, other, Py_EQ);
      if (equal < 0) PyErr_Clear();
      return equal == 1;
    },
    .keep = [](const void* value) -> std::shared_ptr<const void> {
      Locked locked;
      return share(nb::borrow(static_cast<PyObject*>(const_cast<void*>(value))));
    },
    .text = [](const void* value) -> std::string {
      Locked locked;
      return nb::cast<std::string>(
          nb::repr(nb::handle(static_cast<PyObject*>(const_cast<void*>(value)))));
    },
    .hash = [](const void* value) -> std::size_t {
      Locked locked;
      const Py_hash_t hash = PyObject_Hash(static_cast<PyObject*>(const_cast<void*>(value)));
      if (hash == -1) PyErr_Clear();
      return static_cast<std::size_t>(hash);
    },
};
const char kPythonCall = 0;

// The handles among the leaves of a call; nullptr for numbers and other libraries' arrays.
class CallHandles : public LeafSink {
 public:
  void tensor(PyObject* object, const Tensor&) override { handles.push_back(tensor_in(object)); }
  void other(PyObject*) override {}
  std::vector<Tensor*> handles;
};

CallHandles handles_of(PyObject* args, PyObject* kwargs, const StaticArguments& statics,
                       const std::vector<std::string>& names) {
  CallHandles found;
  std::vector<std::uint64_t> form;
  flatten_call(args, kwargs, statics, names, form, found);
  return found;
}

// What a traced function returned: the structure of the result, and the arguments whose elements it
// changed. Their new values follow the tensors of the result.
struct Returned {
  std::shared_ptr<const TreeShape> shape;
  std::vector<std::size_t> changed;
};

// The leaves of a call that is recorded in place: arrays become tensors, as in a traced call.
class LeavesInPlace : public LeafSink {
 public:
  void tensor(PyObject* object, const Tensor& tensor) override {
    if (tensor_in(object) || is_numpy_scalar(object) || !is_array(object)) {
      objects.push_back(nb::borrow(object));
    } else {
      objects.push_back(tensor_object(tensor));
      has_arrays = true;
    }
  }
  void other(PyObject* object) override { others.push_back(object); }
  std::vector<nb::object> objects;
  std::vector<PyObject*> others;
  bool has_arrays = false;
};

}  // namespace

void CallLeaves::tensor(PyObject* object, const Tensor& tensor) {
  if (!tensor_in(object) && (is_numpy_scalar(object) || !is_array(object))) {
    Operand operand;
    if (operand.load(object) && operand.is_real_number() &&
        internal::is_default_number(operand.in().scalar)) {
      numbers.push_back(tensors.size());
      tensors.push_back(internal::number_argument(operand.in().scalar, tensors.size(), {}));
      return;
    }
  }
  tensors.push_back(tensor);
}

void CallLeaves::other(PyObject* object) {
  if (is_foreign_array(object))
    throw nb::type_error(
        cat("an array of class ", nb::cast<std::string>(nb::handle(object).type().attr("__name__")),
            " cannot be static, because its elements may change: pass it as a tensor")
            .c_str());
  if (PyObject_Hash(object) == -1) {
    PyErr_Clear();
    throw nb::type_error(cat("jit cannot tell programs apart by ",
                             nb::cast<std::string>(nb::repr(nb::handle(object))), " of class ",
                             nb::cast<std::string>(nb::handle(object).type().attr("__name__")),
                             ": what is neither a tensor nor a number is part of the program, "
                             "and must be hashable")
                             .c_str());
  }
  others.push_back(object);
}

PythonJit::PythonJit(nb::object function, JitOptions options, StaticArguments statics,
                     std::vector<std::string> names, SourceLocation where)
    : function_(share(std::move(function))),
      statics_(std::move(statics)),
      names_(std::move(names)),
      programs_(std::move(options), where) {}

nb::object PythonJit::call_in_place(PyObject* args, PyObject* kwargs) const {
  nb::object result = nb::steal(PyObject_Call(function_.get(), args, kwargs));
  if (!result) nb::raise_python_error();
  return result;
}

nb::object PythonJit::call_with_tensors(PyObject* args, PyObject* kwargs) const {
  AssignmentScope scope;
  for (const Tensor* handle : handles_of(args, kwargs, statics_, names_).handles)
    if (handle) scope.add_if_allowed_around(*handle);
  LeavesInPlace leaves;
  std::vector<std::uint64_t> form;
  flatten_call(args, kwargs, statics_, names_, form, leaves);
  if (!leaves.has_arrays) return call_in_place(args, kwargs);
  nb::object both = unflatten(form, std::span<const nb::object>(leaves.objects), leaves.others);
  return call_in_place(nb::object(both[0]).ptr(), nb::object(both[1]).ptr());
}

std::vector<Tensor> PythonJit::recorded(std::span<const std::uint64_t> form,
                                        std::span<const Tensor> parameters,
                                        const CallLeaves& leaves,
                                        std::shared_ptr<const void>* prototype) const {
  Locked locked;
  std::vector<Tensor> inside(parameters.begin(), parameters.end());
  for (std::size_t number : leaves.numbers) inside[number] = weak_number(inside[number]);
  UserCode own_lines;
  nb::object both = unflatten(form, inside, {leaves.others.data(), leaves.others.size()});
  nb::object args = both[0], kwargs = both[1];
  const CallHandles given = handles_of(args.ptr(), kwargs.ptr(), statics_, names_);
  PyTree tree = PyTree::of(call_in_place(args.ptr(), kwargs.ptr()), "result");
  Returned returned{tree.shape(), {}};
  std::vector<Tensor> results = std::move(tree.leaves());
  for (std::size_t i = 0; i < given.handles.size(); ++i) {
    if (!given.handles[i] || given.handles[i]->value() == inside[i].value()) continue;
    returned.changed.push_back(i);
    results.push_back(*given.handles[i]);
  }
  if (prototype) *prototype = std::make_shared<const Returned>(std::move(returned));
  return results;
}

nb::object PythonJit::operator()(PyObject* args, PyObject* kwargs) const {
  if (internal::recorded_in_place()) return call_with_tensors(args, kwargs);
  release_collected();
  CallLeaves leaves;
  internal::JitCall call;
  call.types = &kPythonCall;
  flatten_call(args, kwargs, statics_, names_, call.form, leaves);
  for (const Tensor& tensor : leaves.tensors) call.tensors.push_back(&tensor);
  for (PyObject* object : leaves.others) call.statics.push_back({object, &kObject});
  // Who reads the form of the arguments stops before these.
  for (std::size_t number : leaves.numbers) call.form.push_back(number);

  auto describe = [&](internal::JitPaths& paths) {
    CallPaths found = call_paths(call.form, names_);
    paths.tensors = std::move(found.tensors);
    paths.statics = std::move(found.others);
    paths.leaves = std::move(found.leaves);
    paths.numbers.assign(leaves.numbers.begin(), leaves.numbers.end());
  };
  auto trace = [&](std::span<const Tensor> parameters, std::shared_ptr<const void>& prototype) {
    return recorded(call.form, parameters, leaves, &prototype);
  };
  internal::JitResults results;
  {
    Unlocked unlocked;
    results = programs_.run(call, {describe, trace});
  }
  const auto& returned = *static_cast<const Returned*>(results.prototype.get());
  std::span<Tensor> tensors(results.tensors.data(), results.tensors.size());
  if (!returned.changed.empty()) {
    // As without jit, an assignment to the elements of an argument changes the caller's tensor.
    const CallHandles given = handles_of(args, kwargs, statics_, names_);
    std::span<Tensor> values = tensors.last(returned.changed.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      Tensor* handle = given.handles[returned.changed[i]];
      if (!handle)
        throw nb::type_error(
            "the jitted function assigns to the elements of an argument that is not a tensor: it "
            "cannot change another library's array; pass meshard.asarray(array)");
      rebind(*handle, std::move(values[i]));
    }
    tensors = tensors.first(tensors.size() - values.size());
  }
  return unflatten(*returned.shape, tensors);
}

namespace {

template <class Entry>
std::vector<std::string> texts_of(const std::vector<Entry>& entries) {
  std::vector<std::string> texts;
  for (const Entry& entry : entries) texts.push_back(entry.to_string());
  return texts;
}

}  // namespace

void bind_jit(nb::module_& module) {
  nb::class_<JitStats>(module, "JitStats", "Statistics of a jitted function.")
      .def_ro("calls", &JitStats::calls, "How often the function was called.")
      .def_ro("traces", &JitStats::traces,
              "How often it was traced: once for each signature of its arguments.")
      .def_ro("reasons", &JitStats::reasons,
              "Why each trace after the first was needed: all differences from the nearest earlier "
              "signature.")
      .def_prop_ro(
          "rolling", [](const JitStats& stats) { return texts_of(stats.rolling); },
          "Runs of equal layers in the programs. With an nn.Layers, each run would be recorded and "
          "compiled as one layer.")
      .def_prop_ro(
          "unrolled", [](const JitStats& stats) { return texts_of(stats.unrolled); },
          "Layers of an nn.Layers that did not become one loop, and why.")
      .def("__repr__", [](const JitStats& stats) {
        return cat("JitStats(calls=", stats.calls, ", traces=", stats.traces, ")");
      });
  nb::class_<PythonJit>(module, "Jit", nb::dynamic_attr(), nb::is_weak_referenceable())
      .def("__init__",
           [](PythonJit* self, nb::object function, std::string name,
              std::vector<std::size_t> donate, std::vector<std::size_t> static_positions,
              std::vector<std::string> static_names, std::vector<std::string> names,
              std::size_t most_programs, bool keep_on_disk) {
             JitOptions options;
             options.name = std::move(name);
             options.donate = std::move(donate);
             options.most_programs = most_programs;
             options.keep_on_disk = keep_on_disk;
             new (self) PythonJit(std::move(function), std::move(options),
                                  {std::move(static_positions), std::move(static_names)},
                                  std::move(names), caller_line());
           })
      .def("__call__",
           [](const PythonJit& jit, nb::args args, nb::kwargs kwargs) {
             return jit(args.ptr(), kwargs.size() ? kwargs.ptr() : nullptr);
           })
      .def(
          "__get__",  // a jitted method gets its instance, as functions do
          [](nb::object self, nb::object instance, nb::object) -> nb::object {
            if (instance.is_none()) return self;
            return nb::module_::import_("types").attr("MethodType")(self, instance);
          },
          nb::arg("instance").none(), nb::arg("owner").none() = nb::none())
      .def_prop_ro(
          "stats", [](const PythonJit& jit) { return jit.programs().stats(); },
          "Calls, traces, and why it was traced again.");
}

}  // namespace meshard::python
