// Tested in meshard/partitioned/collective_call_test.cc.
// Makes a collective call: what the members exchange is in the order of the members, while a
// dimension that is gathered or scattered may be an inner one.
#include <algorithm>
#include <cstring>

#include "meshard/hlo/shape.h"
#include "meshard/partitioned/collective_call.h"

namespace meshard {
namespace {

using pjrt::HostCallArray;

using Memory = MessageMemory;

std::size_t count_of(std::span<const std::int64_t> dimensions) {
  std::size_t count = 1;
  for (std::int64_t size : dimensions) count *= static_cast<std::size_t>(size);
  return count;
}

// Copies `outer` rows of `pieces` pieces of `bytes` each: piece p of row r of `rows`, which is
// row-major, is piece r of block p of `blocks`.
void rows_to_blocks(const std::byte* rows, std::byte* blocks, std::size_t outer, std::size_t pieces,
                    std::size_t bytes) {
  for (std::size_t p = 0; p < pieces; ++p)
    for (std::size_t r = 0; r < outer; ++r, blocks += bytes)
      std::memcpy(blocks, rows + (r * pieces + p) * bytes, bytes);
}
void blocks_to_rows(const std::byte* blocks, std::byte* rows, std::size_t outer, std::size_t pieces,
                    std::size_t bytes) {
  for (std::size_t p = 0; p < pieces; ++p)
    for (std::size_t r = 0; r < outer; ++r, blocks += bytes)
      std::memcpy(rows + (r * pieces + p) * bytes, blocks, bytes);
}

class Performance {
 public:
  Performance(const CollectiveCall& collective, const pjrt::HostCall& call,
              Communicator& communicator)
      : collective_(collective),
        arguments_(call.arguments),
        results_(call.results),
        communicator_(communicator) {
    if (collective.chained && !arguments_.empty() && !results_.empty()) {
      arguments_ = arguments_.first(arguments_.size() - 1);
      results_ = results_.first(results_.size() - 1);
    }
  }

  Result<void> run() {
    using Kind = CollectiveCallKind;
    if (collective_.kind == Kind::kPosition) return position();
    if (arguments_.size() != results_.size()) return misfit();
    if (collective_.kind == Kind::kPermute) return each(&Performance::permute);
    group_ = collective_.group_of(communicator_.rank());
    if (group_.empty() && collective_.kind != Kind::kBroadcast) return misfit();
    switch (collective_.kind) {
      case Kind::kAllReduce: return all_reduce();
      case Kind::kAllGather: return each(&Performance::all_gather);
      case Kind::kReduceScatter: return each(&Performance::reduce_scatter);
      case Kind::kAllToAll: return each(&Performance::all_to_all);
      case Kind::kAllToAllOfTuple: return all_to_all_of_tuple();
      default: return each(&Performance::broadcast);
    }
  }

 private:
  struct Array {
    const std::byte* in;
    std::byte* out;
    std::span<const std::int64_t> in_dimensions, out_dimensions;
    DType type;
    std::size_t in_bytes, out_bytes;
    std::size_t in_count() const { return in_bytes / size_in_bytes(type); }
  };

  Error misfit() const {
    return Error(ErrorCode::kInternal, "its arrays do not fit the collective");
  }

  Result<Array> array(std::size_t index) const {
    const HostCallArray &in = arguments_[index], &out = results_[index];
    Result<DType> type = dtype_of_element(in.element);
    if (!type.ok())
      return Error(ErrorCode::kUnimplemented, cat("elements of type ", pjrt::to_string(in.element),
                                                  " are not sent between processes"));
    if (in.element != out.element) return misfit();
    std::size_t width = size_in_bytes(*type);
    return Array{static_cast<const std::byte*>(in.data),
                 static_cast<std::byte*>(out.data),
                 in.dimensions,
                 out.dimensions,
                 *type,
                 count_of(in.dimensions) * width,
                 count_of(out.dimensions) * width};
  }

  Result<void> each(Result<void> (Performance::*one)(const Array&)) {
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      MESHARD_ASSIGN_OR_RETURN(Array array, this->array(i));
      MESHARD_RETURN_IF_ERROR((this->*one)(array));
    }
    return {};
  }

  Result<void> position() const {
    if (results_.size() != 1 || count_of(results_[0].dimensions) != 1) return misfit();
    int rank = communicator_.rank();
    auto at = std::ranges::find(collective_.ranks, rank);
    if (!collective_.ranks.empty()) {
      if (at == collective_.ranks.end()) return misfit();
      rank = static_cast<int>(at - collective_.ranks.begin());
    }
    auto value = static_cast<std::uint32_t>(rank);
    std::memcpy(results_[0].data, &value, sizeof value);
    return {};
  }

  // Several arrays of one type are sent as one.
  Result<void> all_reduce() {
    std::size_t total = 0;
    std::vector<Array> arrays;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      MESHARD_ASSIGN_OR_RETURN(Array one, array(i));
      if (one.in_bytes != one.out_bytes) return misfit();
      total += one.in_bytes;
      arrays.push_back(one);
    }
    bool one_type = std::ranges::all_of(
        arrays, [&](const Array& one) { return one.type == arrays.front().type; });
    if (arrays.size() == 1 || !one_type || group_.size() == 1) {
      for (const Array& one : arrays) MESHARD_RETURN_IF_ERROR(all_reduce_array(one));
      return {};
    }
    Memory packed(total);
    std::byte* at = packed.data();
    for (const Array& one : arrays) at = put(one.in, at, one.in_bytes);
    DType type = arrays.front().type;
    MESHARD_RETURN_IF_ERROR(communicator_.all_reduce(group_, collective_.reduction, type,
                                                     packed.data(), packed.data(),
                                                     total / size_in_bytes(type)));
    at = packed.data();
    for (const Array& one : arrays) {
      put(at, one.out, one.out_bytes);
      at += one.out_bytes;
    }
    return {};
  }

  static std::byte* put(const std::byte* from, std::byte* to, std::size_t bytes) {
    if (bytes > 0 && from != to) std::memcpy(to, from, bytes);
    return to + bytes;
  }

  // Without another member or without elements, nothing is sent.
  bool is_local(const Array& one) const {
    return group_.size() <= 1 || one.in_bytes == 0 || one.out_bytes == 0;
  }
  Result<void> copy(const Array& one) const {
    if (group_.size() <= 1 && one.in_bytes != one.out_bytes) return misfit();
    if (one.in_bytes == one.out_bytes) put(one.in, one.out, one.in_bytes);
    return {};
  }

  Result<void> all_reduce_array(const Array& one) {
    if (is_local(one)) return copy(one);
    return communicator_.all_reduce(group_, collective_.reduction, one.type, one.in, one.out,
                                    one.in_count());
  }

  // Splits `dimensions` at the dimension of the collective: the number of rows before it, and the
  // bytes of one row.
  struct Split {
    std::size_t outer = 1;
    std::size_t row_bytes = 0;
  };
  Result<Split> split(std::span<const std::int64_t> dimensions, std::size_t bytes) const {
    auto dimension = static_cast<std::size_t>(collective_.dimension);
    if (dimension >= dimensions.size()) return misfit();
    std::size_t outer = count_of(dimensions.first(dimension));
    return Split{outer, outer == 0 ? 0 : bytes / outer};
  }

  Result<void> all_gather(const Array& one) {
    if (one.in_bytes * group_.size() != one.out_bytes) return misfit();
    if (is_local(one)) return copy(one);
    MESHARD_ASSIGN_OR_RETURN(Split rows, split(one.in_dimensions, one.in_bytes));
    if (rows.outer == 1) return communicator_.all_gather(group_, one.in, one.out, one.in_bytes);
    Memory blocks(one.out_bytes);
    MESHARD_RETURN_IF_ERROR(communicator_.all_gather(group_, one.in, blocks.data(), one.in_bytes));
    blocks_to_rows(blocks.data(), one.out, rows.outer, group_.size(), rows.row_bytes);
    return {};
  }

  Result<void> reduce_scatter(const Array& one) {
    if (one.out_bytes * group_.size() != one.in_bytes) return misfit();
    if (is_local(one)) return copy(one);
    MESHARD_ASSIGN_OR_RETURN(Split rows, split(one.out_dimensions, one.out_bytes));
    std::size_t count = one.out_bytes / size_in_bytes(one.type);
    if (rows.outer == 1)
      return communicator_.reduce_scatter(group_, collective_.reduction, one.type, one.in, one.out,
                                          count);
    Memory blocks(one.in_bytes);
    rows_to_blocks(one.in, blocks.data(), rows.outer, group_.size(), rows.row_bytes);
    return communicator_.reduce_scatter(group_, collective_.reduction, one.type, blocks.data(),
                                        one.out, count);
  }

  Result<void> all_to_all(const Array& one) {
    if (one.in_bytes != one.out_bytes || one.in_bytes % group_.size() != 0) return misfit();
    if (is_local(one)) return copy(one);
    MESHARD_ASSIGN_OR_RETURN(Split rows, split(one.in_dimensions, one.in_bytes));
    std::size_t block = one.in_bytes / group_.size();
    if (rows.outer == 1) return communicator_.all_to_all(group_, one.in, one.out, block);
    if (rows.row_bytes % group_.size() != 0) return misfit();
    std::size_t piece = rows.row_bytes / group_.size();
    Memory sent(one.in_bytes), received(one.in_bytes);
    rows_to_blocks(one.in, sent.data(), rows.outer, group_.size(), piece);
    MESHARD_RETURN_IF_ERROR(communicator_.all_to_all(group_, sent.data(), received.data(), block));
    blocks_to_rows(received.data(), one.out, rows.outer, group_.size(), piece);
    return {};
  }

  Result<void> all_to_all_of_tuple() {
    if (arguments_.size() != group_.size()) return misfit();
    std::vector<Array> arrays;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      MESHARD_ASSIGN_OR_RETURN(Array one, array(i));
      arrays.push_back(one);
      if (one.in_bytes != arrays[0].in_bytes || one.out_bytes != one.in_bytes) return misfit();
    }
    std::size_t bytes = arrays[0].in_bytes;
    if (is_local(arrays[0])) return copy(arrays[0]);
    Memory sent(bytes * group_.size()), received(bytes * group_.size());
    for (std::size_t i = 0; i < arrays.size(); ++i)
      put(arrays[i].in, sent.data() + i * bytes, bytes);
    MESHARD_RETURN_IF_ERROR(communicator_.all_to_all(group_, sent.data(), received.data(), bytes));
    for (std::size_t i = 0; i < arrays.size(); ++i)
      put(received.data() + i * bytes, arrays[i].out, bytes);
    return {};
  }

  Result<void> broadcast(const Array& one) {
    if (one.in_bytes != one.out_bytes) return misfit();
    if (group_.empty()) {
      if (one.out_bytes > 0) std::memset(one.out, 0, one.out_bytes);
      return {};
    }
    bool is_root = group_[0] == communicator_.rank();
    if (is_root || is_local(one)) put(one.in, one.out, one.in_bytes);
    if (is_local(one)) return {};
    return communicator_.broadcast(group_, group_[0], one.out, one.out_bytes);
  }

  // A process may have several targets, each in another round.
  Result<void> permute(const Array& one) {
    if (one.in_bytes != one.out_bytes) return misfit();
    if (one.in_bytes == 0) return {};
    std::span<const std::int32_t> pairs = collective_.ranks;
    bool receives = false;
    for (std::size_t i = 1; i < pairs.size(); i += 2) receives |= pairs[i] == communicator_.rank();
    if (!receives) std::memset(one.out, 0, one.out_bytes);
    for (std::int32_t size : collective_.sizes) {
      auto length = 2 * static_cast<std::size_t>(size);
      MESHARD_RETURN_IF_ERROR(permute_round(one, pairs.first(length)));
      pairs = pairs.subspan(length);
    }
    return {};
  }

  Result<void> permute_round(const Array& one, std::span<const std::int32_t> pairs) {
    int rank = communicator_.rank(), to = -1, from = -1;
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
      if (pairs[i] == rank) to = pairs[i + 1];
      if (pairs[i + 1] == rank) from = pairs[i];
    }
    if (to == rank && from == rank) {
      put(one.in, one.out, one.in_bytes);
      return {};
    }
    if (to < 0 && from < 0) return {};
    if (from >= 0) return communicator_.permute(to, from, one.in, one.out, one.in_bytes);
    // What another round received must stay.
    Memory nothing(one.out_bytes);
    return communicator_.permute(to, from, one.in, nothing.data(), one.in_bytes);
  }

  const CollectiveCall& collective_;
  std::span<const HostCallArray> arguments_, results_;
  Communicator& communicator_;
  std::span<const std::int32_t> group_;
};

}  // namespace

Result<void> perform(const CollectiveCall& collective, const pjrt::HostCall& call,
                     Communicator& communicator) {
  if (collective.chained && !call.results.empty())
    std::memset(call.results.back().data, 0, sizeof(std::int32_t));
  Result<void> done = Performance(collective, call, communicator).run();
  if (done.ok()) return done;
  return Error(done.error().code(),
               cat("[", to_string(collective.kind), "] ", done.error().message()))
      .with_note(cat("in ", collective.where));
}

}  // namespace meshard
