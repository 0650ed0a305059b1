#include "meshard/io/checkpoint.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/base/near_names.h"
#include "meshard/graph/leaf.h"

namespace meshard::io {

std::string checkpoint_name(std::string_view path) {
  std::string name;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '.') {
      name += '.';
    } else if (path[i] == '[') {
      // An index up to the bracket, or a key in quotes.
      bool quoted = path.substr(i + 1).starts_with('"');
      std::size_t begin = i + (quoted ? 2 : 1);
      std::size_t end = std::min(path.find(quoted ? "\"]" : "]", begin), path.size());
      name += cat(".", path.substr(begin, end - begin));
      i = end + (quoted ? 1 : 0);
    } else {
      name += path[i];
    }
  }
  if (name.starts_with('.')) name.erase(0, 1);
  return name.empty() ? "value" : name;
}

std::vector<std::string> checkpoint_names(std::string_view path,
                                          std::span<const std::int64_t> sizes) {
  std::vector<std::string> paths{""};
  auto append = [&](std::string_view text) {
    for (std::string& each : paths) each += text;
  };
  std::size_t from = 0;
  for (std::int64_t size : sizes) {
    std::size_t at = structure::find_stacked(path, from);
    append(path.substr(from, at - from));
    std::vector<std::string> all;
    for (const std::string& each : paths)
      for (std::int64_t i = 0; i < size; ++i) all.push_back(cat(each, "[", i, "]"));
    paths = std::move(all);
    from = at + 3;
  }
  append(path.substr(from));
  for (std::string& each : paths) each = checkpoint_name(each);
  return paths;
}

namespace internal {
namespace {

const std::map<std::string, std::string> kMetadata = {{"format", "meshard"}};

// The sizes of the first dimensions of a tensor, along which it stacks the layers.
std::span<const std::int64_t> stacked_sizes(const Tensor& tensor, std::string_view path) {
  if (!tensor.defined()) return {};
  return std::span(tensor.shape().sizes()).first(structure::stacked_dimensions(path));
}

// Shorter texts for messages: `blocks.0.w` to `blocks.11.w`.
std::string text_of(std::span<const std::string> names) {
  if (names.size() == 1) return cat("\"", names[0], "\"");
  return cat("\"", names.front(), "\" to \"", names.back(), "\"");
}

// Names, each with those nearest to it if there are any to choose from.
std::string listed(std::span<const std::string> names, std::span<const std::string> stored) {
  constexpr std::size_t kMost = 100;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMost; ++i)
    text += cat(i ? ", \"" : "\"", names[i], "\"",
                stored.empty() ? "" : cat(" (", nearest_text(names[i], stored), ")"));
  return names.size() > kMost ? cat(text, " and ", names.size() - kMost, " more") : text;
}

}  // namespace

void CheckpointWriter::add(const Tensor& tensor, const std::string& path) {
  std::span<const std::int64_t> sizes = stacked_sizes(tensor, path);
  tensors_[path] = {checkpoint_names(path, sizes), tensor, sizes.size()};
}

void CheckpointWriter::add_array(HostArray array, const std::string& path) {
  add(from_host(std::move(array)), path);
}

Result<std::vector<NamedTensors>> CheckpointWriter::in_order(const std::string& path) const {
  std::vector<NamedTensors> tensors;
  std::set<std::string_view> names;
  for (const auto& [member, each] : tensors_) {
    for (const std::string& name : each.names)
      if (!names.insert(name).second)
        return Error(ErrorCode::kInvalidArgument,
                     cat("[io] two members would both have the name \"", name, "\" in ", path));
    tensors.push_back(each);
  }
  return tensors;
}

Result<void> CheckpointWriter::save(const std::string& path, const SaveOptions& options,
                                    SourceLocation where) {
  Result<std::vector<NamedTensors>> tensors = in_order(path);
  if (!tensors) return save_failed(path, tensors.error(), options, where).wait();
  return save_in_order(path, *tensors, kMetadata, options, where);
}

Saving CheckpointWriter::save_async(const std::string& path, const SaveOptions& options,
                                    SourceLocation where) {
  Result<std::vector<NamedTensors>> tensors = in_order(path);
  if (!tensors) return save_failed(path, tensors.error(), options, where);
  return save_in_order_async(path, *tensors, kMetadata, options, where);
}

void CheckpointReader::expect(const Tensor& like, const std::string& path) {
  if (!like.defined()) {
    if (structure::stacked_dimensions(path) == 0)
      wanted_.insert(checkpoint_name(path));
    else
      unlike_ += cat(unlike_.empty() ? "" : "; ", "the tensor at ", path,
                     " has no type, so the number of layers to restore is unknown: pass an "
                     "abstract_tensor()");
    return;
  }
  std::span<const std::int64_t> sizes = stacked_sizes(like, path);
  std::vector<std::string> names = checkpoint_names(path, sizes);
  const TensorType one{like.dtype(), Shape(std::span(like.shape().sizes()).subspan(sizes.size()))};
  std::vector<std::string> unlike;
  for (const std::string& name : names) {
    wanted_.insert(name);
    Result<TensorType> stored = weights_.type(name);
    if (stored && *stored != one) unlike.push_back(name);
  }
  if (!unlike.empty())
    unlike_ +=
        cat(unlike_.empty() ? "" : "; ", text_of(unlike), " is ", weights_.type(unlike[0]).value(),
            " in ", weights_.what(), ", but the destination is ", one);
}

void CheckpointReader::check(const LoadOptions& options) {
  std::vector<std::string> missing, extra;
  const std::vector<std::string> stored = weights_.names();
  for (const std::string& name : wanted_)
    if (!weights_.contains(name)) missing.push_back(name);
  for (const std::string& name : stored)
    if (options.strict && !wanted_.contains(name)) extra.push_back(name);
  if (error_ || (missing.empty() && extra.empty() && unlike_.empty())) return;
  std::string text = cat("[io] ", weights_.path(), ": ");
  if (!missing.empty())
    text += cat(weights_.what(), " lacks ", listed(missing, stored),
                extra.empty() && unlike_.empty() ? "" : ". Also, ");
  if (!extra.empty())
    text += cat(weights_.what(), " has ", listed(extra, {}),
                ", for which the structure to restore has no member; pass strict = false to ignore "
                "such tensors",
                unlike_.empty() ? "" : ". Also, ");
  bool only_types = missing.empty() && extra.empty();
  error_ = Error(only_types ? ErrorCode::kInvalidArgument : ErrorCode::kNotFound, text + unlike_,
                 where_);
}

Result<Tensor> CheckpointReader::find(const Tensor& like, const std::string& path) {
  if (!like.defined()) return weights_.tensor(checkpoint_name(path), where_);
  std::span<const std::int64_t> sizes = stacked_sizes(like, path);
  std::vector<std::string> names = checkpoint_names(path, sizes);
  if (names.empty()) return like;  // no layers
  Shape stack(Dimensions(sizes.begin(), sizes.end()));
  std::optional<Sharding> sharding = like.sharding();
  if (!sharding) return weights_.stacked(names, stack, where_);
  Result<Tensor> placed = weights_.placed_stacked(names, stack, *sharding, where_);
  if (!placed) return placed.error().with_note(cat("while placing ", text_of(names)));
  return placed;
}

void CheckpointReader::restore(Tensor& like, const std::string& path) {
  Result<Tensor> found = find(like, path);
  if (found)
    like = *std::move(found);
  else
    error_ = found.error();
}

void CheckpointReader::expect_array(HostArray like, const std::string& path) {
  expect(from_host(std::move(like)), path);
}

void CheckpointReader::restore_array(HostArray& like, const std::string& path) {
  Tensor tensor = from_host(like);
  restore(tensor, path);
  if (!error_) like = tensor.to_host();
}

}  // namespace internal
}  // namespace meshard::io
