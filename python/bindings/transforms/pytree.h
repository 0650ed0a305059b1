// Structures of Python: dicts, lists, tuples, named tuples, dataclasses, None and registered types,
// with tensors as leaves.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "meshard/graph/tensor.h"
#include "python/bindings/interpreter/release_later.h"

namespace meshard::python {

/// A value: what is around the tensors of a structure. Immutable and shared; may be dropped without
/// the interpreter's lock.
struct TreeShape {
  /// The nodes in depth-first order; see pytree.cc. Two structures that differ only in their
  /// tensors and in their other leaves have equal forms.
  std::vector<std::uint64_t> form;
  /// Leaves that are no tensors and no numbers, in order: strings, functions, static fields, ...
  std::vector<ObjectRef> statics;
};

/// A value: a structure of Python, flattened. A structure of tensors for all transformations
/// (graph/structure.h).
class PyTree {
 public:
  PyTree() : PyTree(empty()) {}
  PyTree(std::vector<Tensor> leaves, std::shared_ptr<const TreeShape> shape)
      : leaves_(std::move(leaves)), shape_(std::move(shape)) {}
  /// Flattens an object. Numbers and arrays of any library become tensors.
  /// @param root what messages call the object
  /// @pre the lock is held @error errors of registered functions; type error: a leaf is neither a
  /// tensor, a number nor a constant, or an array that cannot be converted, with its path
  static PyTree of(nanobind::handle object, const std::string& root = {});
  /// The same for the carry of a loop: numbers of Python among its leaves are weakly typed.
  static PyTree of_carry(nanobind::handle object);
  /// None.
  static PyTree empty();

  std::vector<Tensor>& leaves() { return leaves_; }
  const std::vector<Tensor>& leaves() const { return leaves_; }
  const std::shared_ptr<const TreeShape>& shape() const { return shape_; }
  /// As the user would write it: `["w"][2].bias`.
  std::string leaf_path(std::size_t leaf) const;
  /// The same, and what registered classes keep beside their children (structure_match.h).
  std::string match_path(std::size_t leaf) const;
  /// The first leaf that is not a tensor and differs: its path and both values; empty if none does.
  /// May be called without the lock. @pre the forms are equal
  std::string constant_difference(const PyTree& other) const;
  void append_form(std::vector<std::uint64_t>& form) const;
  /// The same structure with a form that also depends on the leaves that are no tensors: it equals
  /// another one only if these are equal and of equal types.
  /// @pre the lock is held @error type error: one of them cannot be hashed
  PyTree with_statics_in_form() const;

  /// The structure as Python objects. @pre the lock is held
  nanobind::object object() const;

 private:
  std::vector<Tensor> leaves_;
  std::shared_ptr<const TreeShape> shape_;
};

/// The arguments of a function as one structure, a tuple. Errors name `argument [0]["w"]`.
struct ArgumentTree : PyTree {};

/// What flatten() finds, in order.
class LeafSink {
 public:
  virtual ~LeafSink() = default;
  /// A tensor, or a number or an array and the tensor made of it. The object is borrowed.
  virtual void tensor(PyObject* object, const Tensor& tensor) = 0;
  /// A leaf that belongs to the structure: a constant, or one that was declared static. Borrowed.
  virtual void other(PyObject* object) = 0;
};

/// Appends the form of an object, and passes its leaves on. This decides what a leaf is: a tensor,
/// a number, an array of any library, a constant (what is compared by its value, such as a string
/// or a function), or an error with its path. @pre the lock is held @error as PyTree::of()
void flatten(PyObject* object, std::vector<std::uint64_t>& form, LeafSink& sink,
             const std::string& root = {});

/// The object of a form with these leaves. @pre as many as the form has; the lock is held
nanobind::object unflatten(std::span<const std::uint64_t> form, std::span<const Tensor> tensors,
                           std::span<PyObject* const> others);
/// The same with any objects as the tensors.
nanobind::object unflatten(std::span<const std::uint64_t> form,
                           std::span<const nanobind::object> leaves,
                           std::span<PyObject* const> others);
/// The same, and moves the tensors.
nanobind::object unflatten(const TreeShape& shape, std::span<Tensor> tensors);

/// The paths of the tensors and of the other leaves of a form.
struct LeafPaths {
  std::vector<std::string> tensors, others;
  /// Which of the others were not declared static.
  std::vector<std::size_t> constants;
};
LeafPaths leaf_paths(std::span<const std::uint64_t> form);
/// PyTree::match_path() of all tensors.
std::vector<std::string> match_paths(std::span<const std::uint64_t> form);

/// The arguments of a function that are part of its program instead of being traced.
struct StaticArguments {
  std::vector<std::size_t> positions;
  std::vector<std::string> names;
};

/// Appends the form of the pair (args, kwargs). Static arguments are other leaves as a whole.
/// @param names of the positional parameters, for messages
/// @pre the lock is held @error as PyTree::of()
void flatten_call(PyObject* args, PyObject* kwargs, const StaticArguments& statics,
                  const std::vector<std::string>& names, std::vector<std::uint64_t>& form,
                  LeafSink& sink);

/// The leaves of a call, named by the function's parameters: `params["w"]`.
struct CallPaths : LeafPaths {
  /// The number of tensors of each argument; keyword arguments follow the positional ones.
  std::vector<std::size_t> leaves;
};
/// @param names of the positional parameters; `argument 2` for those beyond them
CallPaths call_paths(std::span<const std::uint64_t> form, const std::vector<std::string>& names);

void bind_pytree(nanobind::module_& module);

}  // namespace meshard::python

template <>
struct nanobind::detail::type_caster<meshard::python::ArgumentTree> {
  NB_TYPE_CASTER(meshard::python::ArgumentTree, const_name("typing.Any"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) {
    value = {meshard::python::PyTree::of(source, "argument ")};
    return true;
  }
};

template <>
struct nanobind::detail::type_caster<meshard::python::PyTree> {
  NB_TYPE_CASTER(meshard::python::PyTree, const_name("typing.Any"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) {
    value = meshard::python::PyTree::of(source);
    return true;
  }
  static handle from_cpp(const meshard::python::PyTree& tree, rv_policy, cleanup_list*) {
    return tree.object().release();
  }
};
