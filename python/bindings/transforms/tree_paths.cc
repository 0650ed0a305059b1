// The places of the leaves in forms.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "meshard/base/cat.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/transforms/pytree.h"
#include "python/bindings/transforms/tree_nodes.h"

namespace nb = nanobind;

namespace meshard::python {

std::string key_step(nb::handle key) {
  return PyUnicode_Check(key.ptr()) ? cat("[\"", nb::cast<std::string>(key), "\"]")
                                    : cat("[", nb::cast<std::string>(nb::str(key)), "]");
}

namespace {

class PathLister {
 public:
  // `for_match`: the paths also show the data beside the children of registered classes.
  PathLister(std::span<const std::uint64_t> form, LeafPaths& paths, bool for_match = false)
      : form_(form), paths_(paths), for_match_(for_match) {}

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
    for (nb::handle key : nb::handle(numbered_object(form_[next_++])))
      argument(nb::cast<std::string>(key));
  }

  void visit(const std::string& path) {
    const std::uint64_t node = form_[next_++];
    const std::size_t children = children_of(node);
    switch (kind_of(node)) {
      case Node::kTensor: paths_.tensors.push_back(path); return;
      case Node::kConstant: paths_.constants.push_back(paths_.others.size()); [[fallthrough]];
      case Node::kStatic: paths_.others.push_back(path); return;
      case Node::kNone: return;
      case Node::kTuple:
      case Node::kList:
        for (std::size_t i = 0; i < children; ++i) visit(cat(path, "[", i, "]"));
        return;
      case Node::kDict: {
        nb::handle keys(numbered_object(form_[next_++]));
        for (std::size_t i = 0; i < children; ++i) visit(cat(path, key_step(nb::object(keys[i]))));
        return;
      }
      case Node::kNamedTuple: {
        nb::object names = nb::handle(numbered_object(form_[next_++])).attr("_fields");
        for (std::size_t i = 0; i < children; ++i)
          visit(cat(path, ".", nb::cast<std::string>(nb::object(names[i]))));
        return;
      }
      case Node::kDataclass: {
        const ClassInfo& info =
            info_of(reinterpret_cast<PyTypeObject*>(numbered_object(form_[next_++])));
        for (PyObject* names : {info.fields, info.statics})
          for (nb::handle name : nb::handle(names))
            visit(info.is_stacked ? cat(path, "[:]") : cat(path, ".", nb::cast<std::string>(name)));
        return;
      }
      case Node::kRegistered: visit_registered(path, children); return;
    }
  }

 private:
  void visit_registered(const std::string& path, std::size_t children) {
    nb::handle key(numbered_object(form_[next_++]));
    nb::object type = key[0], data = key[1];
    const ClassInfo& info = info_of(reinterpret_cast<PyTypeObject*>(type.ptr()));
    nb::object names = info.keys ? nb::handle(info.keys)(data) : nb::object();
    const std::string shown = for_match_ && !info.keys
                                  ? cat("<", nb::cast<std::string>(type.attr("__name__")), " ",
                                        nb::cast<std::string>(nb::repr(data)), ">")
                                  : "";
    for (std::size_t i = 0; i < children; ++i)
      visit(cat(path, shown, info.keys ? key_step(nb::object(names[i])) : cat("[", i, "]")));
  }

  std::span<const std::uint64_t> form_;
  std::size_t next_ = 0;
  LeafPaths& paths_;
  bool for_match_;
};

}  // namespace

CallPaths call_paths(std::span<const std::uint64_t> form, const std::vector<std::string>& names) {
  Locked locked;
  CallPaths paths;
  PathLister(form, paths).visit_call(names, paths.leaves);
  return paths;
}

LeafPaths leaf_paths(std::span<const std::uint64_t> form) {
  Locked locked;
  LeafPaths paths;
  PathLister(form, paths).visit("");
  return paths;
}

std::vector<std::string> match_paths(std::span<const std::uint64_t> form) {
  Locked locked;
  LeafPaths paths;
  PathLister(form, paths, true).visit("");
  return paths.tensors;
}

}  // namespace meshard::python
