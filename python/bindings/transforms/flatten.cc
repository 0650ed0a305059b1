// From Python objects to forms: what a leaf of a structure is.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "meshard/base/cat.h"
#include "python/bindings/arrays/foreign_arrays.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/transforms/pytree.h"
#include "python/bindings/transforms/tree_nodes.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

// A leaf that is none, or an array that cannot be converted. Its path grows while it propagates.
struct LeafFailure {
  std::string path, text;
  std::exception_ptr cause;  // null: the class of the object is unsupported
};

// Why a leaf cannot be a constant.
const char* reason_against(PyObject* object) {
  if (PyObject_Hash(object) == -1) {
    PyErr_Clear();
    return "it is unhashable";
  }
  return info_of(Py_TYPE(object)).can_be_constant ? "it holds more than constants"
                                                  : "what it holds would not be seen";
}

std::string unsupported_text(PyObject* object) {
  nb::handle type(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  const std::string name = nb::cast<std::string>(type.attr("__name__"));
  const bool is_vowel = std::string("AEIOaeio").find(name[0]) != std::string::npos;
  const std::string text =
      cat(is_vowel ? "an " : "a ", name, " is neither a tensor, a number nor a structure");
  if (info_of(Py_TYPE(object)).is_number)
    return cat(text, ": convert it with float(), int() or asarray()");
  return cat(text, ", and ", reason_against(object),
             ": convert it, register its class with meshard.tree.register, or declare it static "
             "(static_argnums, or a field with metadata={\"static\": True})");
}

// The tensor of a leaf. @error LeafFailure
template <class Convert>
std::optional<Tensor> converted(const Convert& convert) {
  try {
    return convert();
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;  // Ctrl-C
    throw LeafFailure{{}, nb::cast<std::string>(nb::str(error.value())), std::current_exception()};
  } catch (const nb::builtin_exception& error) {
    throw LeafFailure{{}, error.what(), std::current_exception()};
  } catch (const Error& error) {
    throw LeafFailure{{}, error.message(), std::current_exception()};
  }
}

[[noreturn]] void raise(const LeafFailure& failure, const std::string& root) {
  const std::string place = root + failure.path;
  const std::string text = place.empty() ? failure.text : cat(place, ": ", failure.text);
  if (!failure.cause) throw nb::type_error(text.c_str());
  try {
    std::rethrow_exception(failure.cause);
  } catch (nb::python_error& error) {
    nb::raise_from(error, PyExc_TypeError, "%s", text.c_str());
  } catch (const Error& error) {
    throw Error(error.code(), text, error.where());
  } catch (const nb::builtin_exception&) {
    throw nb::type_error(text.c_str());
  }
}

bool are_sorted(PyObject* dict) {
  PyObject *key = nullptr, *value = nullptr, *before = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value); before = key) {
    if (!PyUnicode_CheckExact(key)) return false;
    if (before && PyUnicode_Compare(before, key) >= 0) return false;
  }
  return true;
}

// Sorted, if they can be compared with each other; in the order of the dict otherwise.
nb::tuple keys_of(PyObject* dict) {
  nb::object keys = nb::steal(PyDict_Keys(dict));
  if (!are_sorted(dict) && PyList_Sort(keys.ptr()) != 0) {
    PyErr_Clear();
    keys = nb::steal(PyDict_Keys(dict));
  }
  return nb::tuple(keys);
}

class Flattener {
 public:
  Flattener(std::vector<std::uint64_t>& form, LeafSink& sink) : form_(form), sink_(sink) {}

  // A leaf as a whole, whatever it is.
  void visit_static(PyObject* object) {
    form_.push_back(word(Node::kStatic));
    sink_.other(object);
  }

  void visit_call(PyObject* args, PyObject* kwargs, const StaticArguments& statics,
                  const std::vector<std::string>& names) {
    const auto count = static_cast<std::size_t>(PyTuple_Size(args));
    form_.push_back(word(Node::kTuple, 2));
    form_.push_back(word(Node::kTuple, count));
    for (std::size_t i = 0; i < count; ++i) {
      PyObject* argument = PyTuple_GetItem(args, static_cast<Py_ssize_t>(i));
      if (std::ranges::find(statics.positions, i) != statics.positions.end())
        visit_static(argument);
      else
        visit_child(argument, [&] { return i < names.size() ? names[i] : cat("argument ", i); });
    }
    nb::tuple keys = kwargs ? keys_of(kwargs) : nb::tuple();
    form_.push_back(word(Node::kDict, keys.size()));
    form_.push_back(number_of(keys));
    for (nb::handle key : keys) {
      PyObject* argument = PyDict_GetItem(kwargs, key.ptr());
      if (!statics.names.empty() &&
          std::ranges::find(statics.names, nb::cast<std::string>(key)) != statics.names.end())
        visit_static(argument);
      else
        visit_child(argument, [&] { return nb::cast<std::string>(key); });
    }
  }

  void visit(PyObject* object) {
    if (const Tensor* tensor = tensor_in(object)) {
      form_.push_back(word(Node::kTensor));
      sink_.tensor(object, *tensor);
    } else if (object == Py_None) {
      form_.push_back(word(Node::kNone));
    } else if (PyTuple_CheckExact(object)) {
      visit_elements(Node::kTuple, object);
    } else if (PyList_CheckExact(object)) {
      visit_elements(Node::kList, object);
    } else if (PyDict_CheckExact(object)) {
      nb::tuple keys = keys_of(object);
      form_.push_back(word(Node::kDict, keys.size()));
      form_.push_back(number_of(keys));
      for (nb::handle key : keys)
        visit_child(PyDict_GetItem(object, key.ptr()), [&] { return key_step(key); });
    } else if (!visit_value(object, [&] { return tensor_of_own_value(object, {}); })) {
      visit_instance(object);
    }
  }

 private:
  // Errors name the place of the child.
  template <class Step>
  void visit_child(PyObject* child, const Step& step) {
    try {
      visit(child);
    } catch (LeafFailure& failure) {
      failure.path = step() + failure.path;
      throw;
    }
  }
  template <class Convert>
  bool visit_value(PyObject* object, const Convert& convert) {
    std::optional<Tensor> value = converted(convert);
    if (!value) return false;
    form_.push_back(word(Node::kTensor));
    sink_.tensor(object, *value);
    return true;
  }
  void visit_leaf(PyObject* object) {
    if (is_foreign_array(object)) {
      visit_value(object, [&]() -> std::optional<Tensor> { return tensor_of_foreign(object); });
    } else if (is_constant(object)) {
      form_.push_back(word(Node::kConstant));
      sink_.other(object);
    } else {
      throw LeafFailure{{}, unsupported_text(object), nullptr};
    }
  }
  void visit_elements(Node kind, PyObject* sequence) {
    const Py_ssize_t count = PySequence_Size(sequence);
    form_.push_back(word(kind, static_cast<std::size_t>(count)));
    for (Py_ssize_t i = 0; i < count; ++i) {
      nb::object element = nb::steal(PySequence_GetItem(sequence, i));
      visit_child(element.ptr(), [&] { return cat("[", i, "]"); });
    }
  }

  void visit_instance(PyObject* object) {
    const ClassInfo& info = info_of(Py_TYPE(object));
    nb::handle instance(object);
    switch (info.kind) {
      case Node::kNamedTuple:
        form_.push_back(word(info.kind, static_cast<std::size_t>(PyTuple_Size(object))));
        form_.push_back(info.number);
        for (Py_ssize_t i = 0; i < PyTuple_Size(object); ++i)
          visit_child(PyTuple_GetItem(object, i), [&] {
            nb::object names = nb::handle(object).type().attr("_fields");
            return cat(".", nb::cast<std::string>(nb::object(names[i])));
          });
        return;
      case Node::kDataclass: {
        const auto children = static_cast<std::size_t>(PyTuple_Size(info.fields));
        const auto statics = static_cast<std::size_t>(PyTuple_Size(info.statics));
        form_.push_back(word(info.kind, children + statics));
        form_.push_back(info.number);
        for (nb::handle name : nb::handle(info.fields))
          visit_child(nb::object(instance.attr(name)).ptr(),
                      [&] { return cat(".", nb::cast<std::string>(name)); });
        for (nb::handle name : nb::handle(info.statics))
          visit_static(nb::object(instance.attr(name)).ptr());
        return;
      }
      case Node::kRegistered: {
        nb::object parts = nb::handle(info.flatten)(instance);
        nb::object children = nb::steal(PySequence_List(nb::object(parts[0]).ptr()));
        if (!children) nb::raise_python_error();
        nb::object key =
            nb::make_tuple(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object))), parts[1]);
        form_.push_back(word(info.kind, nb::len(children)));
        form_.push_back(number_of(key));
        std::size_t i = 0;
        for (nb::handle child : children) {
          visit_child(child.ptr(), [&] {
            if (!info.keys) return cat("[", i, "]");
            return key_step(nb::object(nb::object(nb::handle(info.keys)(parts[1]))[i]));
          });
          ++i;
        }
        return;
      }
      default: visit_leaf(object);
    }
  }

  std::vector<std::uint64_t>& form_;
  LeafSink& sink_;
};

}  // namespace

void flatten(PyObject* object, std::vector<std::uint64_t>& form, LeafSink& sink,
             const std::string& root) {
  try {
    Flattener(form, sink).visit(object);
  } catch (const LeafFailure& failure) {
    raise(failure, root);
  }
}

void flatten_call(PyObject* args, PyObject* kwargs, const StaticArguments& statics,
                  const std::vector<std::string>& names, std::vector<std::uint64_t>& form,
                  LeafSink& sink) {
  try {
    Flattener(form, sink).visit_call(args, kwargs, statics, names);
  } catch (const LeafFailure& failure) {
    raise(failure, "");
  }
}

}  // namespace meshard::python
