// From forms to Python objects.
#include "python/bindings/transforms/pytree.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/ops/composite/control_flow.h"
#include "meshard/trace/trace_function.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/transforms/tree_nodes.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

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
      case Node::kConstant:
      case Node::kStatic: return other_();
      case Node::kNone: return nb::none();
      case Node::kTuple: return build_tuple(children);
      case Node::kList: {
        nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(children)));
        for (std::size_t i = 0; i < children; ++i)
          PyList_SetItem(list.ptr(), static_cast<Py_ssize_t>(i), build().release().ptr());
        return list;
      }
      case Node::kDict: {
        PyObject* keys = numbered_object(form_[next_++]);
        nb::object dict = nb::steal(PyDict_New());
        for (std::size_t i = 0; i < children; ++i) {
          nb::object value = build();
          PyDict_SetItem(dict.ptr(), PyTuple_GetItem(keys, static_cast<Py_ssize_t>(i)),
                         value.ptr());
        }
        return dict;
      }
      case Node::kNamedTuple: {
        nb::handle type(numbered_object(form_[next_++]));
        return type.attr("_make")(build_tuple(children));
      }
      case Node::kDataclass: {
        auto* type = reinterpret_cast<PyTypeObject*>(numbered_object(form_[next_++]));
        return build_dataclass(type);
      }
      case Node::kRegistered: {
        nb::handle key(numbered_object(form_[next_++]));
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

// Keeps the leaves.
class Keeper : public LeafSink {
 public:
  void tensor(PyObject*, const Tensor& tensor) override { tensors.push_back(tensor); }
  void other(PyObject* object) override { others.push_back(share(nb::borrow(object))); }
  std::vector<Tensor> tensors;
  std::vector<ObjectRef> others;
};

class CarryKeeper : public Keeper {
 public:
  void tensor(PyObject* object, const Tensor& tensor) override {
    Operand number;
    const bool is_plain = PyFloat_CheckExact(object) || PyLong_CheckExact(object);
    if (is_plain && number.load(object) && internal::is_default_number(number.in().scalar))
      tensors.push_back(internal::number_state(number.in()));
    else
      tensors.push_back(tensor);
  }
};

// Keeps the leaves as they are in the structure.
class ValueKeeper : public LeafSink {
 public:
  void tensor(PyObject* object, const Tensor&) override { values.append(nb::handle(object)); }
  void other(PyObject*) override {}
  nb::list values;
};

// The paths that `list` makes for a form, which are asked for one after the other.
template <auto list>
const std::vector<std::string>& listed_paths(const std::shared_ptr<const TreeShape>& shape) {
  thread_local std::weak_ptr<const TreeShape> last;
  thread_local std::vector<std::string> paths;
  if (last.lock() != shape) {
    paths = list(shape->form);
    last = shape;
  }
  return paths;
}

std::vector<std::string> tensor_paths(std::span<const std::uint64_t> form) {
  return leaf_paths(form).tensors;
}

// Equal objects of equal classes. Those that cannot be compared are equal only to themselves.
bool are_equal(PyObject* one, PyObject* other) {
  if (one == other) return true;
  if (Py_TYPE(one) != Py_TYPE(other)) return false;
  const int equal = PyObject_RichCompareBool(one, other, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

PyTree tree_of(nb::handle object, const std::string& root, Keeper&& keeper) {
  TreeShape shape;
  flatten(object.ptr(), shape.form, keeper, root);
  shape.statics = std::move(keeper.others);
  return PyTree(std::move(keeper.tensors), std::make_shared<const TreeShape>(std::move(shape)));
}

std::string repr_of(PyObject* object) {
  return nb::cast<std::string>(nb::repr(nb::handle(object)));
}

}  // namespace

nb::object unflatten(std::span<const std::uint64_t> form, std::span<const Tensor> tensors,
                     std::span<PyObject* const> others) {
  std::size_t tensor = 0, other = 0;
  auto take_tensor = [&] { return tensor_object(tensors[tensor++]); };
  auto take_other = [&] { return nb::borrow(others[other++]); };
  return Builder(form, take_tensor, take_other).build();
}

nb::object unflatten(std::span<const std::uint64_t> form, std::span<const nb::object> leaves,
                     std::span<PyObject* const> others) {
  std::size_t leaf = 0, other = 0;
  auto take = [&] { return leaves[leaf++]; };
  auto take_other = [&] { return nb::borrow(others[other++]); };
  return Builder(form, take, take_other).build();
}

nb::object unflatten(const TreeShape& shape, std::span<Tensor> tensors) {
  std::size_t tensor = 0, other = 0;
  auto take_tensor = [&] { return tensor_object(std::move(tensors[tensor++])); };
  auto take_other = [&] { return nb::borrow(shape.statics[other++].get()); };
  return Builder(std::span<const std::uint64_t>(shape.form), take_tensor, take_other).build();
}

PyTree PyTree::of(nb::handle object, const std::string& root) {
  return tree_of(object, root, Keeper());
}

PyTree PyTree::of_carry(nb::handle object) { return tree_of(object, {}, CarryKeeper()); }

PyTree PyTree::empty() {
  static const auto* none = new std::shared_ptr<const TreeShape>(
      std::make_shared<const TreeShape>(TreeShape{{word(Node::kNone)}, {}}));
  return PyTree({}, *none);
}

std::string PyTree::leaf_path(std::size_t leaf) const {
  return listed_paths<tensor_paths>(shape_).at(leaf);
}

std::string PyTree::match_path(std::size_t leaf) const {
  return listed_paths<match_paths>(shape_).at(leaf);
}

std::string PyTree::constant_difference(const PyTree& other) const {
  const std::vector<ObjectRef>&own = shape_->statics, &others = other.shape_->statics;
  if (own.empty() || shape_ == other.shape_) return {};
  Locked locked;
  for (std::size_t i = 0; i < std::min(own.size(), others.size()); ++i)
    if (!are_equal(own[i].get(), others[i].get()))
      return cat(leaf_paths(shape_->form).others[i], " is ", repr_of(own[i].get()), " and ",
                 repr_of(others[i].get()));
  return {};
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
  shape.form.push_back(number_of(nb::tuple(all)));
  return PyTree(leaves_, std::make_shared<const TreeShape>(std::move(shape)));
}

nb::object PyTree::object() const {
  std::vector<Tensor> leaves = leaves_;
  return unflatten(*shape_, leaves);
}

void bind_pytree(nb::module_& module) {
  module.def("register_pytree_node", register_node, nb::arg("type"), nb::arg("flatten"),
             nb::arg("unflatten"), nb::arg("keys").none());
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
               if (!are_equal(a.statics[i].get(), b.statics[i].get())) return false;
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
      "tree_constants",
      [](const TreeShape& shape) {
        const LeafPaths paths = leaf_paths(shape.form);
        nb::list constants;
        for (std::size_t i : paths.constants)
          constants.append(nb::make_tuple(paths.others[i], nb::borrow(shape.statics[i].get())));
        return constants;
      },
      nb::arg("structure"));
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
