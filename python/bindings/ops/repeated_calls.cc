#include "python/bindings/ops/repeated_calls.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "meshard/graph/repeated_call.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/interpreter/source_line.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

// What the program of a call depends on: the types of its tensors, which of them are the same, and
// all other arguments.
struct CallKey {
  std::vector<std::uint64_t> words;
  std::vector<nb::object> atoms;
  std::uint64_t hash = 0;

  bool equals(const CallKey& other) const {
    if (hash != other.hash || words != other.words || atoms.size() != other.atoms.size())
      return false;
    for (std::size_t i = 0; i < atoms.size(); ++i)
      if (PyObject_RichCompareBool(atoms[i].ptr(), other.atoms[i].ptr(), Py_EQ) != 1) {
        PyErr_Clear();
        return false;
      }
    return true;
  }
};

// The classes of arguments that are not plain numbers.
struct ArgumentClasses {
  PyObject* tensor = nullptr;  // a tensor of the device: meshard/torch/eager/_tensors.py
  PyObject* step = nullptr;    // of its views
  std::vector<PyObject*> atoms;
  PyObject *value = nullptr, *steps = nullptr, *storage = nullptr;  // names
  PyObject *stride = nullptr, *storage_offset = nullptr;
};

// Reads the arguments of a call.
class CallReader {
 public:
  CallReader(const ArgumentClasses& classes, bool with_views)
      : classes_(classes), with_views_(with_views) {}

  // False if calls with such an argument may record something else each time.
  bool add(PyObject* object) {
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
    if (type == classes_.tensor) return add_tensor(object);
    if (object == Py_None) return word(kNone);
    if (PyBool_Check(object)) return word(object == Py_True ? kTrue : kFalse);
    if (PyFloat_CheckExact(object)) {
      word(kFloat);
      return word(std::bit_cast<std::uint64_t>(PyFloat_AsDouble(object)));
    }
    if (PyLong_CheckExact(object)) return add_integer(object);
    if (PyList_CheckExact(object)) {
      word(kList, static_cast<std::uint64_t>(PyList_Size(object)));
      for (Py_ssize_t i = 0; i < PyList_Size(object); ++i)
        if (!add(PyList_GetItem(object, i))) return false;
      return true;
    }
    if (PyTuple_CheckExact(object)) {
      word(kTuple, static_cast<std::uint64_t>(PyTuple_Size(object)));
      for (Py_ssize_t i = 0; i < PyTuple_Size(object); ++i)
        if (!add(PyTuple_GetItem(object, i))) return false;
      return true;
    }
    return std::ranges::find(classes_.atoms, type) != classes_.atoms.end() && add_atom(object);
  }
  bool add_named(PyObject* kwargs) {
    PyObject *name = nullptr, *value = nullptr;
    Py_ssize_t at = 0;
    while (PyDict_Next(kwargs, &at, &name, &value))
      if (!add_atom(name) || !add(value)) return false;
    return true;
  }

  std::vector<Value>& values() { return values_; }
  CallKey& key() {
    key_.hash = 0;
    for (std::uint64_t word : key_.words)
      key_.hash = (std::rotl(key_.hash, 23) ^ word) * 0x9e3779b97f4a7c15u;
    return key_;
  }

 private:
  enum Kind : std::uint64_t {
    kNone,
    kTrue,
    kFalse,
    kFloat,
    kInteger,
    kList,
    kTuple,
    kAtom,
    kTensor,
    kSameTensor,
    kView
  };
  static constexpr std::size_t kMostTensors = 256;

  bool word(std::uint64_t word) {
    key_.words.push_back(word);
    return true;
  }
  bool word(Kind kind, std::uint64_t size) { return word(kind | size << 8); }

  bool add_integer(PyObject* object) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0) return false;
    word(kInteger);
    return word(static_cast<std::uint64_t>(number));
  }
  bool add_atom(PyObject* object) {
    const Py_hash_t hash = PyObject_Hash(object);
    if (hash == -1) {
      PyErr_Clear();
      return false;
    }
    key_.atoms.push_back(nb::borrow(object));
    word(kAtom);
    return word(static_cast<std::uint64_t>(hash));
  }
  bool add_tensor(PyObject* object) {
    return add_value_of(object) && (!with_views_ || add_view(object));
  }
  bool add_value_of(PyObject* object) {
    const nb::object held = attribute(object, classes_.value);
    const Tensor* tensor = tensor_in(held.ptr());
    if (!tensor || !tensor->defined() || values_.size() == kMostTensors) return false;
    const Value& value = tensor->value();
    if (value->annotations() || value->trace() != 0) return false;
    auto same = std::ranges::find(values_, value);
    if (same != values_.end())
      return word(kSameTensor, static_cast<std::uint64_t>(same - values_.begin()));
    const TensorType& type = value.type();
    word(kTensor,
         static_cast<std::uint64_t>(type.dtype) << 8 | static_cast<std::uint64_t>(type.rank()));
    for (std::int64_t size : type.shape) word(static_cast<std::uint64_t>(size));
    values_.push_back(value);
    return true;
  }
  // A function that takes a view of a view reads what the first one is a view of.
  bool add_view(PyObject* object) {
    const nb::object steps = attribute(object, classes_.steps);
    const Py_ssize_t count = PyTuple_Size(steps.ptr());
    if (count == 0) return true;
    for (Py_ssize_t i = 0; i < count; ++i)
      if (reinterpret_cast<PyObject*>(Py_TYPE(PyTuple_GetItem(steps.ptr(), i))) != classes_.step)
        return false;
    word(kView);
    return add(called(object, classes_.stride).ptr()) &&
           add(called(object, classes_.storage_offset).ptr()) &&
           add_value_of(attribute(object, classes_.storage).ptr());
  }
  static nb::object attribute(PyObject* object, PyObject* name) {
    nb::object found = nb::steal(PyObject_GetAttr(object, name));
    if (!found) nb::raise_python_error();
    return found;
  }
  static nb::object called(PyObject* object, PyObject* name) {
    nb::object found = nb::steal(PyObject_CallMethodObjArgs(object, name, nullptr));
    if (!found) nb::raise_python_error();
    return found;
  }

  const ArgumentClasses& classes_;
  bool with_views_;
  CallKey key_;
  std::vector<Value> values_;
};

// What is known of the calls with one key.
struct KnownCalls {
  std::shared_ptr<const RepeatedCall> call;  // null: called once, or never the same
  bool is_refused = false;
  nb::object form;
};

struct KeyHash {
  std::size_t operator()(const CallKey& key) const { return key.hash; }
};
struct KeyEqual {
  bool operator()(const CallKey& a, const CallKey& b) const { return a.equals(b); }
};

class NewCall;

// The calls of one function.
class RepeatedCalls {
 public:
  RepeatedCalls(nb::type_object tensor, nb::type_object step, nb::tuple atoms, bool with_views)
      : held_(nb::make_tuple(tensor, step, atoms)), with_views_(with_views) {
    classes_.tensor = tensor.ptr();
    classes_.step = step.ptr();
    for (nb::handle atom : atoms) classes_.atoms.push_back(atom.ptr());
    classes_.value = PyUnicode_InternFromString("value");
    classes_.steps = PyUnicode_InternFromString("_steps");
    classes_.storage = PyUnicode_InternFromString("_storage");
    classes_.stride = PyUnicode_InternFromString("stride");
    classes_.storage_offset = PyUnicode_InternFromString("storage_offset");
  }

  nb::object find(nb::handle args, nb::handle kwargs, nb::handle setting) {
    const internal::Recorder& recorder = internal::recorder();
    if (recorder.trace != 0 || recorder.body || recorder.manual || recorder.keep_operands != 0 ||
        recorder.forbidden)
      return nb::none();
    CallReader reader(classes_, with_views_);
    if (!reader.add(args.ptr()) || !reader.add_named(kwargs.ptr()) || !reader.add(setting.ptr()))
      return nb::none();
    auto found = known_.find(reader.key());
    if (found == known_.end()) {
      // Arguments that differ in each call, such as a learning rate, are not worth a program.
      if (known_.size() >= kMostCalls) forget();
      known_.try_emplace(std::move(reader.key()));
      return nb::none();
    }
    if (!found->second.call)
      return found->second.is_refused ? nb::none() : new_call(std::move(reader));
    // While it is recorded, other threads may call, too.
    const std::shared_ptr<const RepeatedCall> call = found->second.call;
    const nb::object form = found->second.form;
    std::vector<Tensor> results = call->record(reader.values(), caller_line());
    if (form.is_none()) return tensor_object(std::move(results[0]));
    nb::list made;
    for (Tensor& result : results) made.append(tensor_object(std::move(result)));
    return nb::make_tuple(form, made);
  }
  void keep(CallKey key, std::optional<RepeatedCall> call, nb::object form) {
    KnownCalls& known = known_[std::move(key)];
    known.is_refused = !call;
    if (!call) return;
    known.call = std::make_shared<const RepeatedCall>(std::move(*call));
    known.form = std::move(form);
  }

 private:
  static constexpr std::size_t kMostCalls = 512;
  nb::object new_call(CallReader reader);
  // Calls of which there was only one so far; all of them if these are few.
  void forget() {
    std::erase_if(known_, [](const auto& each) { return !each.second.call; });
    if (known_.size() >= kMostCalls / 2) known_.clear();
  }

  ArgumentClasses classes_;
  nb::object held_;
  bool with_views_;
  std::unordered_map<CallKey, KnownCalls, KeyHash, KeyEqual> known_;
};

// A call that is being made. What it records will be recorded again.
class NewCall {
 public:
  NewCall(RepeatedCalls& calls, CallKey key, std::vector<Value> arguments)
      : calls_(calls),
        key_(std::move(key)),
        arguments_(std::move(arguments)),
        first_(Node::next_id()) {}

  void keep(const std::vector<Tensor>& results, nb::object form) {
    std::vector<Value> values;
    for (const Tensor& result : results) values.push_back(result.value());
    calls_.keep(std::move(key_), RepeatedCall::of(arguments_, values, first_), std::move(form));
  }
  void refuse() { calls_.keep(std::move(key_), std::nullopt, {}); }

 private:
  RepeatedCalls& calls_;  // lives as long as the process
  CallKey key_;
  std::vector<Value> arguments_;
  std::uint64_t first_;
};

nb::object RepeatedCalls::new_call(CallReader reader) {
  CallKey key = std::move(reader.key());
  return nb::cast(NewCall(*this, std::move(key), std::move(reader.values())));
}

}  // namespace

void bind_repeated_calls(nb::module_& module) {
  nb::class_<NewCall>(module, "NewCall", "A call that is being made.")
      .def("keep", &NewCall::keep, nb::arg("results"), nb::arg("form").none(),
           "Calls like this one record the same: `results` were made of the arguments. `form` is "
           "returned with them; None: there is one.")
      .def("refuse", &NewCall::refuse, "Calls like this one may record something else.");
  nb::class_<RepeatedCalls>(module, "RepeatedCalls",
                            "The calls of a function that records the same when it is called "
                            "alike. Lives as long as the process.")
      .def(nb::init<nb::type_object, nb::type_object, nb::tuple, bool>(), nb::arg("tensor"),
           nb::arg("step"), nb::arg("atoms"), nb::arg("with_views"))
      .def("find", &RepeatedCalls::find, nb::arg("args"), nb::arg("kwargs"), nb::arg("setting"),
           nb::rv_policy::reference,
           "The result of such a call, which is recorded again; or a tuple of the form and the "
           "results; a NewCall if this call shall say what it made; None if nothing is known.");
}

}  // namespace meshard::python
