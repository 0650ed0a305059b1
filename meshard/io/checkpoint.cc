#include "meshard/io/checkpoint.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/composite/mark_sharding.h"

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

namespace internal {

void CheckpointWriter::add(const Tensor& tensor, const std::string& path) {
  std::string name = checkpoint_name(path);
  if (!tensors_.emplace(name, tensor).second && twice_.empty()) twice_ = std::move(name);
}

void CheckpointWriter::add_array(HostArray array, const std::string& path) {
  add(from_host(std::move(array)), path);
}

Result<void> CheckpointWriter::save(const std::string& path, SourceLocation where) {
  if (!twice_.empty())
    return Error(ErrorCode::kInvalidArgument,
                 cat("[io] two members would both have the name \"", twice_, "\" in ", path),
                 where);
  return io::save(path, tensors_, {{"format", "meshard"}}, where);
}

CheckpointReader::CheckpointReader(const std::string& path, SourceLocation where) : where_(where) {
  Result<Weights> weights = Weights::open(path);
  if (weights)
    weights_ = *std::move(weights);
  else
    error_ = weights.error().at(where);
}

void CheckpointReader::restore(Tensor& like, const std::string& path) {
  std::string name = checkpoint_name(path);
  Result<Tensor> found = weights_->tensor(name, where_);
  if (!found) {
    error_ = found.error();
    return;
  }
  if (!like.defined()) {
    like = *std::move(found);
    return;
  }
  if (like.type() != found->type()) {
    error_ = Error(ErrorCode::kInvalidArgument,
                   cat("[io] \"", name, "\" is ", found->type(),
                       " in the checkpoint, but the destination is ", like.type()),
                   where_);
    return;
  }
  std::optional<Sharding> sharding = like.sharding();
  try {
    like = sharding ? mark_sharding(In(*found, where_), *sharding) : *std::move(found);
  } catch (const Error& error) {
    error_ = error.with_note(cat("while placing \"", name, "\""));
  }
}

void CheckpointReader::restore_array(HostArray& like, const std::string& path) {
  Tensor tensor = from_host(like);
  restore(tensor, path);
  if (!error_) like = tensor.to_host();
}

}  // namespace internal
}  // namespace meshard::io
