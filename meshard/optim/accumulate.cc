#include "meshard/optim/accumulate.h"

#include "meshard/base/error.h"
#include "meshard/ops/all.h"

namespace meshard::optim::internal {

std::vector<Tensor> part_of(std::span<const Tensor> batch, std::int64_t part, std::int64_t parts) {
  std::vector<Tensor> out;
  for (const Tensor& tensor : batch) {
    if (tensor.rank() == 0 || parts < 1 || tensor.dim(0) % parts != 0)
      throw_invalid(tensor.where(), "[optim.accumulated] a tensor of the batch is ", tensor.type(),
                    ": dimension 0 cannot be cut into ", parts, " parts");
    Dimensions split{tensor.dim(0) / parts, parts}, rest{tensor.dim(0) / parts};
    for (std::int64_t d = 1; d < tensor.rank(); ++d) {
      split.push_back(tensor.dim(d));
      rest.push_back(tensor.dim(d));
    }
    out.push_back(index(reshape(tensor, split), {whole, part}));
  }
  return out;
}

std::vector<Tensor> added(std::span<const Tensor> sums, std::span<const Tensor> next) {
  std::vector<Tensor> out(next.begin(), next.end());
  for (std::size_t i = 0; i < sums.size(); ++i) out[i] = sums[i] + next[i];
  return out;
}

std::vector<Tensor> after(std::span<const Tensor> batch, std::span<const Tensor> sums) {
  std::vector<Tensor> tied(batch.begin(), batch.end());
  if (sums.empty()) return tied;
  tied.insert(tied.end(), sums.begin(), sums.end());
  tied = optimization_barrier(tied);
  tied.resize(batch.size());
  return tied;
}

std::vector<Tensor> mean_of(std::span<const Tensor> sums, std::int64_t parts) {
  std::vector<Tensor> out;
  for (const Tensor& total : sums) out.push_back(total / parts);
  return out;
}

}  // namespace meshard::optim::internal
