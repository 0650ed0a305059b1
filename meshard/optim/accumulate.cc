#include "meshard/optim/accumulate.h"

#include "meshard/base/error.h"
#include "meshard/ops/all.h"
#include "meshard/ops/bodies.h"
#include "meshard/ops/scan.h"

namespace meshard::optim::internal {

std::vector<Tensor> parts_of(std::span<const Tensor> batch, std::int64_t parts) {
  std::vector<Tensor> out;
  for (const Tensor& tensor : batch) {
    if (tensor.rank() == 0 || parts < 1 || tensor.dim(0) % parts != 0)
      throw_invalid(tensor.where(), "[optim.accumulated] a tensor of the batch is ", tensor.type(),
                    ": dimension 0 cannot be cut into ", parts, " parts");
    Dimensions split{tensor.dim(0) / parts, parts}, order{1, 0};
    for (std::int64_t d = 1; d < tensor.rank(); ++d) {
      split.push_back(tensor.dim(d));
      order.push_back(d + 1);
    }
    out.push_back(permute_dims(reshape(tensor, split), order));
  }
  return out;
}

std::vector<Tensor> sums_over(const std::vector<Tensor>& parts, std::int64_t count,
                              const BodyFunction& f) {
  SourceLocation where = parts.empty() ? SourceLocation{} : parts[0].where();
  ScanCall call{.carries = {}, .sliced = parts, .length = count};
  // What f gives, to begin with zeros like it.
  std::vector<Tensor> zero;
  scan_tensors(
      call,
      [&](std::span<const Tensor> part) {
        std::vector<Tensor> results = f(part);
        zero = results;
        return results;
      },
      where);
  for (Tensor& each : zero) each = zero_cotangent(each);
  call.carries = zero;
  return scan_tensors(
      call,
      [&](std::span<const Tensor> given) {
        std::vector<Tensor> results = f(given.subspan(zero.size()));
        for (std::size_t i = 0; i < results.size(); ++i) results[i] = given[i] + results[i];
        return results;
      },
      where);
}

std::vector<Tensor> mean_of(std::span<const Tensor> sums, std::int64_t parts) {
  std::vector<Tensor> out;
  for (const Tensor& total : sums) out.push_back(total / parts);
  return out;
}

}  // namespace meshard::optim::internal
