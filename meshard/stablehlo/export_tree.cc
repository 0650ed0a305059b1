#include "meshard/stablehlo/export_tree.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "meshard/base/cat.h"

namespace meshard::stablehlo {
namespace {

constexpr std::size_t kMostListed = 8;

void append_paths(const ExportTree& tree, const std::string& path,
                  std::vector<std::string>& paths) {
  if (tree.kind == ExportTree::Kind::kLeaf) paths.push_back(path);
  for (std::size_t i = 0; i < tree.children.size(); ++i)
    append_paths(tree.children[i],
                 tree.kind == ExportTree::Kind::kDict ? cat(path, "['", tree.keys[i], "']")
                                                      : cat(path, "[", i, "]"),
                 paths);
}

// A node of a structure that is known by the paths of its values.
struct PathNode {
  std::string key;
  std::optional<std::size_t> value;
  std::vector<PathNode> children;  // in the order of the paths

  PathNode& child(std::string_view name) {
    // Values come in order, so it is usually the last.
    for (auto each = children.rbegin(); each != children.rend(); ++each)
      if (each->key == name) return *each;
    return children.emplace_back(PathNode{std::string(name), {}, {}});
  }
  const PathNode* find(std::string_view name) const {
    auto found = std::ranges::find(children, name, &PathNode::key);
    return found == children.end() ? nullptr : &*found;
  }
};

// The first key of a path (`0` of `[0].w`, `w` of `["w"]`), which is taken off.
std::string_view take_key(std::string_view& path) {
  if (path[0] == '[') {
    bool quoted = path.size() > 1 && (path[1] == '"' || path[1] == '\'');
    std::size_t begin = quoted ? 2 : 1;
    std::size_t end = quoted ? path.find(cat(path[1], "]"), begin) : path.find(']', begin);
    std::string_view key = path.substr(begin, end - begin);
    path.remove_prefix(std::min(path.size(), end + (quoted ? 2 : 1)));
    return key;
  }
  if (path[0] == '.') path.remove_prefix(1);
  std::size_t end = std::min(path.find_first_of(".["), path.size());
  std::string_view key = path.substr(0, end);
  path.remove_prefix(std::max<std::size_t>(end, 1));
  return key;
}

class TreeMatch {
 public:
  explicit TreeMatch(std::span<const std::string> paths) : paths_(paths), used_(paths.size()) {
    for (std::size_t i = 0; i < paths.size(); ++i) {
      std::string_view rest = paths[i];
      PathNode* node = &root_;
      while (!rest.empty()) node = &node->child(take_key(rest));
      node->value = i;
    }
  }

  Result<std::vector<std::size_t>> run(const ExportTree& tree) {
    match(tree, &root_, "");
    std::vector<std::string> extra;
    for (std::size_t i = 0; i < paths_.size(); ++i)
      if (!used_[i]) extra.push_back(paths_[i]);
    if (missing_.empty() && extra.empty()) return std::move(order_);
    std::string message;
    if (!missing_.empty()) append(message, cat("missing: ", listed(missing_)));
    if (!extra.empty())
      append(message, cat(message.empty() ? "" : "; ", "not in the program: ", listed(extra)));
    return Error(ErrorCode::kInvalidArgument, std::move(message));
  }

 private:
  void match(const ExportTree& tree, const PathNode* node, const std::string& path) {
    if (tree.kind == ExportTree::Kind::kLeaf) {
      if (!node || !node->value) {
        missing_.push_back(path);
        return;
      }
      used_[*node->value] = true;
      order_.push_back(*node->value);
      return;
    }
    for (std::size_t i = 0; i < tree.children.size(); ++i) {
      const bool is_dict = tree.kind == ExportTree::Kind::kDict;
      const PathNode* child = nullptr;
      if (node && tree.kind == ExportTree::Kind::kCustom)
        child = i < node->children.size() ? &node->children[i] : nullptr;
      else if (node)
        child = node->find(is_dict ? tree.keys[i] : cat(i));
      match(tree.children[i], child,
            is_dict ? cat(path, "['", tree.keys[i], "']") : cat(path, "[", i, "]"));
    }
  }

  static std::string listed(std::vector<std::string> paths) {
    std::size_t more = paths.size() - std::min(paths.size(), kMostListed);
    paths.resize(paths.size() - more);
    return cat(join(paths, ", "), more == 0 ? "" : cat(" and ", more, " more"));
  }

  std::span<const std::string> paths_;
  PathNode root_ = {};
  std::vector<bool> used_;
  std::vector<std::string> missing_;
  std::vector<std::size_t> order_;
};

}  // namespace

ExportTree ExportTree::leaves(std::size_t count) {
  return {.kind = Kind::kTuple, .children = std::vector<ExportTree>(count)};
}

std::vector<std::string> ExportTree::leaf_paths() const {
  std::vector<std::string> paths;
  append_paths(*this, "", paths);
  return paths;
}

Result<std::vector<std::size_t>> ExportTree::order_of(std::span<const std::string> paths) const {
  return TreeMatch(paths).run(*this);
}

}  // namespace meshard::stablehlo
