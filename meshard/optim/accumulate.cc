#include "meshard/optim/accumulate.h"

#include "meshard/base/error.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/bodies.h"
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

std::vector<Tensor> mean_over(const std::vector<Tensor>& parts, std::int64_t count,
                              const BodyFunction& f) {
  SourceLocation where = parts.empty() ? SourceLocation{} : parts[0].where();
  ScanCall call{.carries = {}, .sliced = parts, .length = count};
  // f's results, and their types in the sums. The sums are f32 for narrow floats, which stop
  // growing when a summand is less than the sum's last digit.
  std::vector<Tensor> like, sums;
  auto wide = [](const Tensor& x) {
    bool is_narrow = is_floating(x.dtype()) && size_in_bytes(x.dtype()) < 4;
    return is_narrow ? astype(x, DType::f32) : x;
  };
  scan_tensors(
      call,
      [&](std::span<const Tensor> part) {
        like = f(part);
        sums.clear();
        for (const Tensor& each : like) sums.push_back(wide(each));
        return sums;
      },
      where);
  for (const Tensor& each : sums) call.carries.push_back(zero_cotangent(each));
  std::vector<Tensor> means = scan_tensors(
      call,
      [&](std::span<const Tensor> given) {
        std::vector<Tensor> results = f(given.subspan(like.size()));
        for (std::size_t i = 0; i < results.size(); ++i) results[i] = given[i] + wide(results[i]);
        return results;
      },
      where);
  for (std::size_t i = 0; i < means.size(); ++i)
    means[i] =
        is_inexact(like[i].dtype()) ? astype(means[i] / count, like[i].dtype()) : means[i] / count;
  return means;
}

}  // namespace meshard::optim::internal
