// A form is a list of numbers, one node after the other, depth first. A node is
// kind | number of children << 8, followed by the number of an object for the kinds that need one:
// the keys of a dict, or the class (and what a registered function returned besides the children).
#include "python/bindings/transforms/pytree.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "meshard/base/cat.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

enum class Node : std::uint8_t {
  kTensor,
  kOther,
  kNone,
  kTuple,
  kList,
  kDict,        // the tuple of its keys
  kNamedTuple,  // its class
  kDataclass,   // its class
  kRegistered,  // the pair (class, auxiliary data)
};

constexpr std::uint64_t word(Node kind, std::size_t children = 0) {
  return static_cast<std::uint64_t>(kind) | children << 8;
}
constexpr Node kind_of(std::uint64_t word) { return static_cast<Node>(word & 0xFF); }
constexpr std::size_t children_of(std::uint64_t word) { return word >> 8; }

// --- numbers for objects -----------------------------------------------------------------------

// Numbers equal objects of equal types equally. Kept for the life of the process.
class Numbered {
 public:
  std::uint64_t number_of(nb::handle object) {
    // 1, 1.0 and True are equal as keys, but differ in a form.
    nb::object key = nb::borrow(object);
    if (!is_plain(object.ptr())) key = nb::make_tuple(object, types_of(object));
    PyObject* known = PyDict_GetItemWithError(numbers_.ptr(), key.ptr());
    if (known) return PyLong_AsUnsignedLongLong(known);
    if (PyErr_Occurred()) nb::raise_python_error();
    const std::uint64_t number = objects_.size();
    numbers_[key] = number;
    objects_.push_back(object.inc_ref().ptr());
    return number;
  }
  PyObject* object(std::uint64_t number) const { return objects_[number]; }

 private:
  static bool is_plain(PyObject* object) {
    if (PyType_Check(object)) return true;
    if (!PyTuple_Check(object)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_Size(object); ++i)
      if (!PyUnicode_CheckExact(PyTuple_GetItem(object, i))) return false;
    return true;
  }
  static nb::object types_of(nb::handle object) {
    if (!PyTuple_Check(object.ptr())) return nb::borrow(object.type());
    nb::list types;
    for (nb::handle element : object) types.append(types_of(element));
    return nb::tuple(types);
  }

  nb::dict numbers_;
  std::vector<PyObject*> objects_;
};

Numbered& numbered() {
  static auto* all = new Numbered;
  return *all;
}

// --- classes -----------------------------------------------------------------------------------

// How instances of a class are taken apart.
struct ClassInfo {
  Node kind = Node::kOther;
  std::uint64_t number = 0;     // of the class
  PyObject* fields = nullptr;   // of a dataclass: a tuple of the names that are children
  PyObject* statics = nullptr;  // of a dataclass: names of fields with metadata {"static": True}
  bool is_stacked = false;      // a dataclass with one field, like nn::Layers
  PyObject* flatten = nullptr;
  PyObject* unflatten = nullptr;
};

std::unordered_map<PyTypeObject*, ClassInfo>& class_table() {
  static auto* table = new std::unordered_map<PyTypeObject*, ClassInfo>;
  return *table;
}

ClassInfo examined(PyTypeObject* type) {
  nb::handle handle(reinterpret_cast<PyObject*>(type));
  ClassInfo info;
  if (PyType_IsSubtype(type, &PyTuple_Type) && nb::hasattr(handle, "_fields")) {
    info.kind = Node::kNamedTuple;
  } else if (nb::hasattr(handle, "__dataclass_fields__")) {
    info.kind = Node::kDataclass;
    nb::list children, statics;
    for (nb::handle field :
         nb::object(nb::module_::import_("dataclasses").attr("fields")(handle))) {
      nb::object is_static =
          nb::object(field.attr("metadata")).attr("get")("static", nb::bool_(false));
      (nb::cast<bool>(nb::bool_(is_static)) ? statics : children).append(field.attr("name"));
    }
    info.is_stacked = nb::hasattr(handle, "__meshard_stacked__");
    info.fields = nb::tuple(children).release().ptr();
    info.statics = nb::tuple(statics).release().ptr();
  } else {
    return info;
  }
  info.number = numbered().number_of(handle);
  return info;
}

const ClassInfo& info_of(PyTypeObject* type) {
  auto [entry, is_new] = class_table().try_emplace(type);
  if (is_new) {
    Py_INCREF(reinterpret_cast<PyObject*>(type));  // a new class must not get its address
    entry->second = examined(type);
  }
  return entry->second;
}

// --- flattening --------------------------------------------------------------------------------

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
    form_.push_back(word(Node::kOther));
    sink_.other(object);
  }

  void visit_call(PyObject* args, PyObject* kwargs, const StaticArguments& statics) {
    const auto count = static_cast<std::size_t>(PyTuple_Size(args));
    form_.push_back(word(Node::kTuple, 2));
    form_.push_back(word(Node::kTuple, count));
    for (std::size_t i = 0; i < count; ++i) {
      PyObject* argument = PyTuple_GetItem(args, static_cast<Py_ssize_t>(i));
      if (std::ranges::find(statics.positions, i) != statics.positions.end())
        visit_static(argument);
      else
        visit(argument);
    }
    nb::tuple keys = kwargs ? keys_of(kwargs) : nb::tuple();
    form_.push_back(word(Node::kDict, keys.size()));
    form_.push_back(numbered().number_of(keys));
    for (nb::handle key : keys) {
      PyObject* argument = PyDict_GetItem(kwargs, key.ptr());
      if (!statics.names.empty() &&
          std::ranges::find(statics.names, nb::cast<std::string>(key)) != statics.names.end())
        visit_static(argument);
      else
        visit(argument);
    }
  }

  void visit(PyObject* object) {
    if (const Tensor* tensor = tensor_in(object)) {
      form_.push_back(word(Node::kTensor));
      sink_.tensor(*tensor);
    } else if (object == Py_None) {
      form_.push_back(word(Node::kNone));
    } else if (PyTuple_CheckExact(object)) {
      visit_elements(Node::kTuple, object);
    } else if (PyList_CheckExact(object)) {
      visit_elements(Node::kList, object);
    } else if (PyDict_CheckExact(object)) {
      nb::tuple keys = keys_of(object);
      form_.push_back(word(Node::kDict, keys.size()));
      form_.push_back(numbered().number_of(keys));
      for (nb::handle key : keys) visit(PyDict_GetItem(object, key.ptr()));
    } else if (std::optional<Tensor> value = tensor_of_value(object, {})) {
      form_.push_back(word(Node::kTensor));
      sink_.value(object, *value);
    } else {
      visit_instance(object);
    }
  }

 private:
  void visit_elements(Node kind, PyObject* sequence) {
    const Py_ssize_t count = PySequence_Size(sequence);
    form_.push_back(word(kind, static_cast<std::size_t>(count)));
    for (Py_ssize_t i = 0; i < count; ++i) {
      nb::object element = nb::steal(PySequence_GetItem(sequence, i));
      visit(element.ptr());
    }
  }

  void visit_instance(PyObject* object) {
    const ClassInfo& info = info_of(Py_TYPE(object));
    nb::handle instance(object);
    switch (info.kind) {
      case Node::kNamedTuple:
        form_.push_back(word(info.kind, static_cast<std::size_t>(PyTuple_Size(object))));
        form_.push_back(info.number);
        for (Py_ssize_t i = 0; i < PyTuple_Size(object); ++i) visit(PyTuple_GetItem(object, i));
        return;
      case Node::kDataclass: {
        const auto children = static_cast<std::size_t>(PyTuple_Size(info.fields));
        const auto statics = static_cast<std::size_t>(PyTuple_Size(info.statics));
        form_.push_back(word(info.kind, children + statics));
        form_.push_back(info.number);
        for (std::size_t i = 0; i < children; ++i)
          visit(nb::object(instance.attr(PyTuple_GetItem(info.fields, static_cast<Py_ssize_t>(i))))
                    .ptr());
        for (std::size_t i = 0; i < statics; ++i) {
          form_.push_back(word(Node::kOther));
          sink_.other(
              nb::object(instance.attr(PyTuple_GetItem(info.statics, static_cast<Py_ssize_t>(i))))
                  .ptr());
        }
        return;
      }
      case Node::kRegistered: {
        nb::object parts = nb::handle(info.flatten)(instance);
        nb::object children = nb::steal(PySequence_List(nb::object(parts[0]).ptr()));
        if (!children) nb::raise_python_error();
        nb::object key =
            nb::make_tuple(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object))), parts[1]);
        form_.push_back(word(info.kind, nb::len(children)));
        form_.push_back(numbered().number_of(key));
        for (nb::handle child : children) visit(child.ptr());
        return;
      }
      default: form_.push_back(word(Node::kOther)); sink_.other(object);
    }
  }

  std::vector<std::uint64_t>& form_;
  LeafSink& sink_;
};

// --- unflattening ------------------------------------------------------------------------------

// Builds objects; TakeTensor and TakeOther give the next leaves.
template <class TakeTensor, class TakeOther>
class Builder {
 public:
  Builder(std::span<const std::uint64_t> form, TakeTensor& tensor, TakeOther& other)
      : form_(form), tensor_(tensor), other_(other) {}

  nb::object build() {
    const std::uint64_t node = form_[next_++];
    const std::size_t children = children_of(node);
    switch (kind_of(node)) {
      case Node::kTensor: return tensor_();
      case Node::kOther: return other_();
      case Node::kNone: return nb::none();
      case Node::kTuple: return build_tuple(children);
      case Node::kList: {
        nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(children)));
        for (std::size_t i = 0; i < children; ++i)
          PyList_SetItem(list.ptr(), static_cast<Py_ssize_t>(i), build().release().ptr());
        return list;
      }
      case Node::kDict: {
        PyObject* keys = numbered().object(form_[next_++]);
        nb::object dict = nb::steal(PyDict_New());
        for (std::size_t i = 0; i < children; ++i) {
          nb::object value = build();
          PyDict_SetItem(dict.ptr(), PyTuple_GetItem(keys, static_cast<Py_ssize_t>(i)),
                         value.ptr());
        }
        return dict;
      }
      case Node::kNamedTuple: {
        nb::handle type(numbered().object(form_[next_++]));
        return type.attr("_make")(build_tuple(children));
      }
      case Node::kDataclass: {
        auto* type = reinterpret_cast<PyTypeObject*>(numbered().object(form_[next_++]));
        return build_dataclass(type);
      }
      case Node::kRegistered: {
        nb::handle key(numbered().object(form_[next_++]));
        nb::object type = key[0];
        const ClassInfo& info = info_of(reinterpret_cast<PyTypeObject*>(type.ptr()));
        return nb::handle(info.unflatten)(key[1], build_tuple(children));
      }
    }
    throw nb::value_error("not the form of a structure");
  }

 private:
  nb::object build_tuple(std::size_t children) {
    nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(children)));
    for (std::size_t i = 0; i < children; ++i)
      PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), build().release().ptr());
    return tuple;
  }
  // Not through the constructor, which may compute: only the fields are set.
  nb::object build_dataclass(PyTypeObject* type) {
    const ClassInfo& info = info_of(type);
    nb::handle handle(reinterpret_cast<PyObject*>(type));
    nb::object made = handle.attr("__new__")(handle);
    for (PyObject* names : {info.fields, info.statics})
      for (Py_ssize_t i = 0; i < PyTuple_Size(names); ++i) {
        nb::object value = build();
        if (PyObject_GenericSetAttr(made.ptr(), PyTuple_GetItem(names, i), value.ptr()) != 0)
          nb::raise_python_error();
      }
    return made;
  }

  std::span<const std::uint64_t> form_;
  std::size_t next_ = 0;
  TakeTensor& tensor_;
  TakeOther& other_;
};

// --- paths -------------------------------------------------------------------------------------

class PathLister {
 public:
  PathLister(std::span<const std::uint64_t> form, LeafPaths& paths) : form_(form), paths_(paths) {}

  // The form of a call; see flatten_call().
  void visit_call(const std::vector<std::string>& names, std::vector<std::size_t>& leaves) {
    auto argument = [&](const std::string& name) {
      const std::size_t before = paths_.tensors.size();
      visit(name);
      leaves.push_back(paths_.tensors.size() - before);
    };
    ++next_;  // the pair
    const std::size_t positional = children_of(form_[next_++]);
    for (std::size_t i = 0; i < positional; ++i)
      argument(i < names.size() ? names[i] : cat("argument ", i));
    ++next_;  // the dict
    for (nb::handle key : nb::handle(numbered().object(form_[next_++])))
      argument(nb::cast<std::string>(key));
  }

  void visit(const std::string& path) {
    const std::uint64_t node = form_[next_++];
    const std::size_t children = children_of(node);
    switch (kind_of(node)) {
      case Node::kTensor: paths_.tensors.push_back(path); return;
      case Node::kOther: paths_.others.push_back(path); return;
      case Node::kNone: return;
      case Node::kTuple:
      case Node::kList:
        for (std::size_t i = 0; i < children; ++i) visit(cat(path, "[", i, "]"));
        return;
      case Node::kDict: {
        nb::handle keys(numbered().object(form_[next_++]));
        for (std::size_t i = 0; i < children; ++i) {
          nb::object key = keys[i];
          visit(PyUnicode_Check(key.ptr())
                    ? cat(path, "[\"", nb::cast<std::string>(key), "\"]")
                    : cat(path, "[", nb::cast<std::string>(nb::str(key)), "]"));
        }
        return;
      }
      case Node::kNamedTuple: {
        nb::object names = nb::handle(numbered().object(form_[next_++])).attr("_fields");
        for (std::size_t i = 0; i < children; ++i)
          visit(cat(path, ".", nb::cast<std::string>(nb::object(names[i]))));
        return;
      }
      case Node::kDataclass: {
        const ClassInfo& info =
            info_of(reinterpret_cast<PyTypeObject*>(numbered().object(form_[next_++])));
        for (PyObject* names : {info.fields, info.statics})
          for (nb::handle name : nb::handle(names))
            visit(info.is_stacked ? cat(path, "[:]") : cat(path, ".", nb::cast<std::string>(name)));
        return;
      }
      case Node::kRegistered:
        ++next_;
        for (std::size_t i = 0; i < children; ++i) visit(cat(path, "[", i, "]"));
        return;
    }
  }

 private:
  std::span<const std::uint64_t> form_;
  std::size_t next_ = 0;
  LeafPaths& paths_;
};

// Keeps the leaves.
class Keeper : public LeafSink {
 public:
  void tensor(const Tensor& tensor) override { tensors.push_back(tensor); }
  void other(PyObject* object) override { others.push_back(share(nb::borrow(object))); }
  std::vector<Tensor> tensors;
  std::vector<ObjectRef> others;
};

// Keeps the leaves as they are in the structure.
class ValueKeeper : public LeafSink {
 public:
  void tensor(const Tensor& tensor) override { values.append(tensor_object(tensor)); }
  void value(PyObject* object, const Tensor&) override { values.append(nb::handle(object)); }
  void other(PyObject*) override {}
  nb::list values;
};

void register_node(nb::type_object type, nb::object flatten, nb::object unflatten) {
  auto* key = reinterpret_cast<PyTypeObject*>(type.ptr());
  ClassInfo info;
  info.kind = Node::kRegistered;
  info.flatten = flatten.release().ptr();
  info.unflatten = unflatten.release().ptr();
  type.inc_ref();
  class_table()[key] = info;
}

}  // namespace

void flatten(PyObject* object, std::vector<std::uint64_t>& form, LeafSink& sink) {
  Flattener(form, sink).visit(object);
}

void flatten_call(PyObject* args, PyObject* kwargs, const StaticArguments& statics,
                  std::vector<std::uint64_t>& form, LeafSink& sink) {
  Flattener(form, sink).visit_call(args, kwargs, statics);
}

CallPaths call_paths(std::span<const std::uint64_t> form, const std::vector<std::string>& names) {
  Locked locked;
  CallPaths paths;
  PathLister(form, paths).visit_call(names, paths.leaves);
  return paths;
}

nb::object unflatten(std::span<const std::uint64_t> form, std::span<const Tensor> tensors,
                     std::span<PyObject* const> others) {
  std::size_t tensor = 0, other = 0;
  auto take_tensor = [&] { return tensor_object(tensors[tensor++]); };
  auto take_other = [&] { return nb::borrow(others[other++]); };
  return Builder(form, take_tensor, take_other).build();
}

nb::object unflatten(const TreeShape& shape, std::span<Tensor> tensors) {
  std::size_t tensor = 0, other = 0;
  auto take_tensor = [&] { return tensor_object(std::move(tensors[tensor++])); };
  auto take_other = [&] { return nb::borrow(shape.statics[other++].get()); };
  return Builder(std::span<const std::uint64_t>(shape.form), take_tensor, take_other).build();
}

LeafPaths leaf_paths(std::span<const std::uint64_t> form) {
  Locked locked;
  LeafPaths paths;
  PathLister(form, paths).visit("");
  return paths;
}

PyTree PyTree::of(nb::handle object) {
  Keeper keeper;
  TreeShape shape;
  flatten(object.ptr(), shape.form, keeper);
  shape.statics = std::move(keeper.others);
  return PyTree(std::move(keeper.tensors), std::make_shared<const TreeShape>(std::move(shape)));
}

PyTree PyTree::empty() {
  static const auto* none = new std::shared_ptr<const TreeShape>(
      std::make_shared<const TreeShape>(TreeShape{{word(Node::kNone)}, {}}));
  return PyTree({}, *none);
}

std::string PyTree::leaf_path(std::size_t leaf) const {
  // Who visits the leaves asks for the paths of all, one after the other.
  thread_local std::weak_ptr<const TreeShape> last;
  thread_local std::vector<std::string> paths;
  if (last.lock() != shape_) {
    paths = leaf_paths(shape_->form).tensors;
    last = shape_;
  }
  return paths.at(leaf);
}

void PyTree::append_form(std::vector<std::uint64_t>& form) const {
  form.push_back(shape_->form.size());
  form.insert(form.end(), shape_->form.begin(), shape_->form.end());
}

PyTree PyTree::with_statics_in_form() const {
  if (shape_->statics.empty()) return *this;
  nb::list all;
  for (const ObjectRef& one : shape_->statics) all.append(nb::handle(one.get()));
  // Who reads a form stops at its end, before this number.
  TreeShape shape = *shape_;
  shape.form.push_back(numbered().number_of(nb::tuple(all)));
  return PyTree(leaves_, std::make_shared<const TreeShape>(std::move(shape)));
}

nb::object PyTree::object() const {
  std::vector<Tensor> leaves = leaves_;
  return unflatten(*shape_, leaves);
}

void bind_pytree(nb::module_& module) {
  module.def("register_pytree_node", register_node, nb::arg("type"), nb::arg("flatten"),
             nb::arg("unflatten"));
  nb::class_<TreeShape>(module, "TreeStructure")
      .def(
          "unflatten",
          [](const TreeShape& shape, nb::sequence leaves) {
            // Any objects, not only tensors.
            std::vector<nb::object> all;
            for (nb::handle leaf : leaves) all.push_back(nb::borrow(leaf));
            std::size_t next = 0, other = 0;
            const std::size_t expected = leaf_paths(shape.form).tensors.size();
            if (all.size() != expected)
              throw nb::value_error(
                  cat("the structure has ", expected, " leaves, not ", all.size()).c_str());
            auto take = [&] { return all[next++]; };
            auto take_other = [&] { return nb::borrow(shape.statics[other++].get()); };
            return Builder(std::span<const std::uint64_t>(shape.form), take, take_other).build();
          },
          nb::arg("leaves"), "The structure with these leaves.")
      .def_prop_ro("num_leaves",
                   [](const TreeShape& shape) { return leaf_paths(shape.form).tensors.size(); })
      .def_prop_ro(
          "paths", [](const TreeShape& shape) { return leaf_paths(shape.form).tensors; },
          "The path of each leaf: `[\"w\"][2].bias`.")
      .def("__eq__",
           [](const TreeShape& a, nb::handle other) {
             if (!nb::isinstance<TreeShape>(other)) return false;
             const auto& b = *nb::inst_ptr<TreeShape>(other);
             if (a.form != b.form || a.statics.size() != b.statics.size()) return false;
             for (std::size_t i = 0; i < a.statics.size(); ++i)
               if (PyObject_RichCompareBool(a.statics[i].get(), b.statics[i].get(), Py_EQ) != 1)
                 return false;
             return true;
           })
      .def("__hash__",
           [](const TreeShape& shape) {
             std::size_t hash = shape.form.size();
             for (std::uint64_t each : shape.form) hash = hash * 1099511628211u ^ each;
             return static_cast<std::int64_t>(hash >> 1);
           })
      .def("__repr__", [](const TreeShape& shape) {
        return cat("TreeStructure(", leaf_paths(shape.form).tensors.size(), " leaves)");
      });
  module.def(
      "tree_values",
      [](nb::handle object) {
        std::vector<std::uint64_t> form;
        ValueKeeper keeper;
        flatten(object.ptr(), form, keeper);
        return keeper.values;
      },
      nb::arg("tree").none());
  module.def(
      "tree_flatten",
      [](nb::handle object) {
        PyTree tree = PyTree::of(object);
        nb::list leaves;
        for (Tensor& leaf : tree.leaves()) leaves.append(tensor_object(std::move(leaf)));
        return nb::make_tuple(leaves, TreeShape(*tree.shape()));
      },
      nb::arg("tree").none());
}

}  // namespace meshard::python
