// Loading models of other libraries: tensors are renamed, transposed, converted, joined and split.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "meshard/io/checkpoint.h"
#include "meshard/io/weights.h"

namespace meshard::io {

/// How tensors of a file become tensors of a model.
///
/// In a pattern `*` matches any text, as short as possible, and no other character is special. In
/// all other names of the rule, each `*` is the text that the `*` at the same position of the first
/// pattern matched, and `{2}` the one of the second `*`.
///
/// @code
/// #include "meshard/io/load_rule.h"
/// std::string path = std::filesystem::temp_directory_path() / "foreign.safetensors";
/// io::save(path, {{"h.0.q.weight", ones({4, 6})}, {"h.0.k.weight", zeros({2, 6})}}).value();
/// auto weights = io::load(path, std::vector<io::LoadRule>{
///     {.from = {"h.*.q.weight", "h.*.k.weight"}, .to = {"blocks.*.wqk"}, .transpose = {1, 0},
///      .dimension = 1, .dtype = DType::bf16}}).value();
/// weights.at("blocks.0.wqk").type().to_string();  // bf16[6,6]
/// @endcode
struct LoadRule {
  /// The tensors of the file: a pattern, and if they are joined the names of the others.
  std::vector<std::string> from;
  /// The tensors made of them: one, or several into which the (joined) tensor is split. Without
  /// any, the tensors of the file are left out.
  std::vector<std::string> to;
  /// Dimension d of a new tensor is dimension transpose[d] of the file's. Default: the same.
  Dimensions transpose = {};
  /// The dimension of the new tensors along which tensors are joined and split; a negative one
  /// counts from the end.
  std::int64_t dimension = 0;
  /// The sizes of the parts into which it is split; with `groups`, in each group. Default: equal.
  Dimensions sizes = {};
  /// The number of groups that the dimension consists of, each with all parts. Use it for the heads
  /// of a fused projection in which query, key and value of a head are adjacent. Default: 1.
  std::int64_t groups = 1;
  /// The elements are converted. Default: the file's dtype.
  std::optional<DType> dtype = std::nullopt;
};

/// The weights that rules make of others; nothing is read yet. The first rule with a pattern that
/// matches a tensor applies; a rule applies once for each match of its first pattern. Names that
/// stay the same are written as `{{"*"}, {"*"}}`.
/// @error invalid argument, with the file's path, all at once: a pattern that matches nothing, with
/// the nearest names; a tensor to join that is missing; tensors that no rule takes; shapes that
/// cannot be joined, split or transposed; two new tensors of one name; a conversion of a dtype that
/// meshard lacks, or of complex numbers to real ones. With `strict = false`, patterns that match
/// nothing and tensors that no rule takes are ignored.
Result<Weights> mapped(const Weights& weights, const std::vector<LoadRule>& rules,
                       LoadOptions options = {}, SourceLocation where = SourceLocation::current());

/// Opens the weights at `path` and loads what rules make of them. The patterns of `shardings` match
/// the new names. Each device's bytes are read once, and only these.
/// @error as Weights::open, mapped() and Weights::load
Result<std::map<std::string, Tensor>> load(const std::string& path,
                                           const std::vector<LoadRule>& rules,
                                           const std::vector<NamedSharding>& shardings = {},
                                           LoadOptions options = {},
                                           SourceLocation where = SourceLocation::current());

/// Like restore(), from tensors that rules make of the tensors at `path`.
/// @error as Weights::open, mapped() and restore()
template <class T>
Result<T> restore(const std::string& path, const std::vector<LoadRule>& rules, T like,
                  LoadOptions options = {}, SourceLocation where = SourceLocation::current()) {
  Result<Weights> weights = Weights::open(path);
  if (weights) weights = mapped(*weights, rules, options, where);
  if (!weights) return weights.error().at(where);
  return internal::restored(*std::move(weights), std::move(like), options, where);
}

}  // namespace meshard::io
