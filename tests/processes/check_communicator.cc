#include "tests/processes/check_communicator.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

using Group = std::vector<int>;

template <class T>
constexpr bool kIsComplex = std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>;

/// Element `i` of process `rank`. All sums and products of up to five of them are exact in f32.
template <class T>
T operand(int rank, std::size_t i) {
  int number = static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 5 + i / 13) % 13) - 6;
  if constexpr (std::is_same_v<T, bool>) return number > 1;
  if constexpr (std::is_same_v<T, Float8E8M0FNU>) return T(std::ldexp(1.0, number));
  if constexpr (std::is_integral_v<T>)  // large ones as well, whose sums wrap around
    return static_cast<T>(static_cast<std::uint64_t>(number) *
                          (i % 3 == 0 ? 0x1234567890abcdefu : 1u));
  if constexpr (kIsComplex<T>) {
    using Part = decltype(T().real);
    return T(static_cast<Part>(number), static_cast<Part>((number * 5 + rank) % 7));
  } else {
    return static_cast<T>(number * 0.25);
  }
}

template <class T>
T combined(Reduction op, T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    bool wants_both = op == Reduction::kProduct || op == Reduction::kMin || op == Reduction::kAnd;
    return op == Reduction::kXor ? a != b : wants_both ? a && b : a || b;
  } else if constexpr (std::is_integral_v<T>) {
    auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    switch (op) {
      case Reduction::kSum: return static_cast<T>(x + y);
      case Reduction::kProduct: return static_cast<T>(x * y);
      case Reduction::kMin: return std::min(a, b);
      case Reduction::kMax: return std::max(a, b);
      case Reduction::kAnd: return static_cast<T>(x & y);
      case Reduction::kOr: return static_cast<T>(x | y);
      case Reduction::kXor: break;
    }
    return static_cast<T>(x ^ y);
  } else if constexpr (kIsComplex<T>) {
    if (op == Reduction::kSum) return T(a.real + b.real, a.imag + b.imag);
    return T(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real);
  } else {
    if (op == Reduction::kSum) return a + b;
    if (op == Reduction::kProduct) return a * b;
    return op == Reduction::kMin ? std::min(a, b) : std::max(a, b);
  }
}

/// The elements of a group combined: floats as doubles, and rounded once.
template <class T>
T expected(Reduction op, const Group& group, std::size_t i) {
  using Wide = std::conditional_t<std::is_integral_v<T> || kIsComplex<T>, T, double>;
  Wide result = static_cast<Wide>(operand<T>(group[0], i));
  for (std::size_t k = 1; k < group.size(); ++k)
    result = combined<Wide>(op, result, static_cast<Wide>(operand<T>(group[k], i)));
  return static_cast<T>(result);
}

template <class T>
bool is_equal(const T& a, const T& b) {
  return a == b || (a != a && b != b);
}

/// std::vector<bool> has no data().
template <class T>
struct Array {
  explicit Array(std::size_t count) : values(std::make_unique<T[]>(count)), size(count) {}
  std::unique_ptr<T[]> values;
  std::size_t size;
  T* data() { return values.get(); }
};

class Checker {
 public:
  explicit Checker(Communicator& communicator) : c_(communicator) {}
  CommunicatorChecks result;

  void run() {
    for (int d = 0; d < kDTypeCount; ++d)
      visit_dtype(static_cast<DType>(d), [&]<class T>() {
        for (int op = 0; op < kReductionCount; ++op)
          for (const Group& group : groups()) reductions<T>(static_cast<Reduction>(op), group);
      });
    for (const Group& group : groups())
      for (std::size_t count : {0, 1, 5, 4000}) moves(group, count);
    for (std::size_t count : {0, 1, 3000}) permutes(count);
    not_a_number();
    invalid_calls();
  }

 private:
  /// All; all in another order; every second; all but the first; this process alone.
  std::vector<Group> groups() const {
    Group all(static_cast<std::size_t>(c_.size()));
    std::iota(all.begin(), all.end(), 0);
    Group turned(all.rbegin(), all.rend());
    std::rotate(turned.begin(), turned.begin() + 1, turned.end());
    Group second, rest(all.begin() + 1, all.end());
    for (int rank = c_.rank() % 2; rank < c_.size(); rank += 2) second.push_back(rank);
    std::vector<Group> list = {all, turned, second, {c_.rank()}};
    if (c_.rank() != 0) list.push_back(rest);
    return list;
  }
  std::size_t position(const Group& group) const {
    return static_cast<std::size_t>(std::find(group.begin(), group.end(), c_.rank()) -
                                    group.begin());
  }

  void expect(bool holds, const std::string& what) {
    ++(holds ? result.passed : result.failed);
    if (!holds && result.failed < 10)
      std::fprintf(stderr, "process %d of %d: %s\n", c_.rank(), c_.size(), what.c_str());
  }
  bool succeeded(const Result<void>& call, const std::string& what) {
    if (!call.ok()) expect(false, cat(what, ": ", call.error().to_string()));
    return call.ok();
  }

  template <class T>
  void reductions(Reduction op, const Group& group) {
    constexpr DType kType = dtype_of<T>();
    if (!check_reduction(op, kType).ok()) return;
    for (std::size_t count : {0, 1, 6, 2500}) {
      std::string what = cat(to_string(op), " of ", count, ' ', kType, " over ", group.size());
      std::size_t parts = group.size(), own = position(group);
      Array<T> in(count * parts), out(count);
      for (std::size_t i = 0; i < in.size; ++i) in.data()[i] = operand<T>(c_.rank(), i);
      if (succeeded(c_.reduce_scatter(group, op, kType, in.data(), out.data(), count), what))
        expect(equal<T>(op, group, out.data(), count, own * count), "reduce-scatter " + what);
      if (succeeded(c_.all_reduce(group, op, kType, in.data(), out.data(), count), what))
        expect(equal<T>(op, group, out.data(), count, 0), "all-reduce " + what);
      if (succeeded(c_.all_reduce(group, op, kType, in.data(), in.data(), count), what))
        expect(equal<T>(op, group, in.data(), count, 0), "all-reduce in place " + what);
    }
  }
  template <class T>
  bool equal(Reduction op, const Group& group, const T* values, std::size_t count,
             std::size_t offset) {
    if constexpr (kIsComplex<T>) {
      if (op != Reduction::kSum && op != Reduction::kProduct) return false;
      for (std::size_t i = 0; i < count; ++i)
        if (!(values[i] == expected<T>(op, group, offset + i))) return false;
    } else {
      for (std::size_t i = 0; i < count; ++i)
        if (!is_equal(values[i], expected<T>(op, group, offset + i))) return false;
    }
    return true;
  }

  /// Byte `i` of what process `from` has for position `to`.
  static unsigned char byte(int from, std::size_t to, std::size_t i) {
    return static_cast<unsigned char>(static_cast<std::size_t>(from) * 31 + to * 17 + i * 7 +
                                      i / 256);
  }
  static std::vector<unsigned char> bytes_of(int from, std::size_t blocks, std::size_t count) {
    std::vector<unsigned char> bytes;
    for (std::size_t to = 0; to < blocks; ++to)
      for (std::size_t i = 0; i < count; ++i) bytes.push_back(byte(from, to, i));
    return bytes;
  }

  void moves(const Group& group, std::size_t count) {
    std::string what = cat(" of ", count, " bytes over ", group.size());
    std::size_t own = position(group);
    std::vector<unsigned char> in = bytes_of(c_.rank(), group.size(), count), out(in.size()),
                               gathered, exchanged;
    for (int from : group)
      for (std::size_t i = 0; i < count; ++i) {
        gathered.push_back(byte(from, 0, i));
        exchanged.push_back(byte(from, own, i));
      }
    if (succeeded(c_.all_gather(group, in.data(), out.data(), count), "all-gather" + what))
      expect(out == gathered, "all-gather" + what);
    if (succeeded(c_.all_to_all(group, in.data(), out.data(), count), "all-to-all" + what))
      expect(out == exchanged, "all-to-all" + what);
    for (int root : group) {
      std::vector<unsigned char> data = bytes_of(c_.rank(), 1, count);
      if (succeeded(c_.broadcast(group, root, data.data(), count), "broadcast" + what))
        expect(data == bytes_of(root, 1, count), "broadcast" + what);
    }
  }

  void permutes(std::size_t count) {
    int size = c_.size(), rank = c_.rank();
    for (int shift = 0; shift < size; ++shift) {  // in a ring
      std::vector<unsigned char> in = bytes_of(rank, 1, count), out(count, 99);
      int to = (rank + shift) % size, from = (rank + size - shift) % size;
      if (succeeded(c_.permute(to, from, in.data(), out.data(), count), "permute"))
        expect(out == bytes_of(from, 1, count), cat("permute by ", shift, " of ", count, " bytes"));
    }
    // Only 0 sends, to 1; the others receive zeros.
    std::vector<unsigned char> in = bytes_of(rank, 1, count), out(count, 99);
    int to = rank == 0 ? 1 : -1, from = rank == 1 ? 0 : -1;
    if (succeeded(c_.permute(to, from, in.data(), out.data(), count), "permute"))
      expect(out == (rank == 1 ? bytes_of(0, 1, count) : std::vector<unsigned char>(count)),
             "permute with zeros");
  }

  void not_a_number() {
    Group all = groups()[0];
    for (Reduction op : {Reduction::kMin, Reduction::kMax}) {
      float in[3] = {c_.rank() == 1 ? std::numeric_limits<float>::quiet_NaN() : 1.0f,
                     c_.rank() == 0 ? -0.0f : 0.0f, c_.rank() == 0 ? 0.0f : -0.0f};
      if (!succeeded(c_.all_reduce(all, op, DType::f32, in, in, 3), "NaN")) continue;
      expect(std::isnan(in[0]), "NaN is kept by " + std::string(to_string(op)));
      expect(std::signbit(in[1]) == (op == Reduction::kMin) &&
                 std::signbit(in[2]) == (op == Reduction::kMin),
             "zeros are ordered by " + std::string(to_string(op)));
    }
  }

  /// Fail in every process, and nothing is sent.
  void invalid_calls() {
    float data[8] = {};
    Group all = groups()[0], twice = {c_.rank(), c_.rank()}, others = all;
    std::erase(others, c_.rank());
    expect(!c_.all_reduce(all, Reduction::kXor, DType::f32, data, data, 1).ok(), "xor of floats");
    expect(!c_.reduce_scatter(all, Reduction::kMax, DType::c64, data, data, 1).ok(),
           "max of complex");
    expect(!c_.all_gather(twice, data, data, 1).ok(), "a rank twice");
    expect(!c_.all_gather(others, data, data, 1).ok(), "a group without the caller");
    expect(!c_.broadcast(all, c_.size(), data, 1).ok(), "an unknown root");
    expect(!c_.permute(c_.size(), -1, data, data, 1).ok(), "an unknown receiver");
  }

  Communicator& c_;
};

}  // namespace

CommunicatorChecks check_communicator(Communicator& communicator) {
  Checker checker(communicator);
  checker.run();
  return checker.result;
}

namespace {

// Checks that a condition holds, and counts.
void check(CommunicatorChecks& checks, const ProcessCommunicator& c, bool holds,
           const std::string& what) {
  ++(holds ? checks.passed : checks.failed);
  if (!holds) std::fprintf(stderr, "process %d: %s\n", c.rank(), what.c_str());
}

// Whether all have ended with success.
bool all_end(std::vector<std::unique_ptr<StartedMessage>>& messages) {
  bool right = true;
  while (!messages.empty())
    std::erase_if(messages, [&](const auto& each) {
      Result<bool> ended = each->has_ended();
      right = right && ended.ok();
      return !ended.ok() || *ended;
    });
  return right;
}

}  // namespace

CommunicatorChecks check_started_messages(ProcessCommunicator& c) {
  CommunicatorChecks checks;
  const int size = c.size(), rank = c.rank();
  const auto count = static_cast<std::size_t>(size);
  const auto content = [&](int from, int to, std::size_t bytes, int tag) {
    std::vector<unsigned char> data(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      data[i] =
          static_cast<unsigned char>(i * 7 + static_cast<std::size_t>(from * 50 + to * 9 + tag));
    return data;
  };
  for (std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{70001}}) {
    // Two with each process, which are sent in the other order than they are received in.
    std::vector<std::unique_ptr<StartedMessage>> messages;
    std::vector<std::vector<unsigned char>> sent(2 * count), got(2 * count);
    for (int tag : {0, 1})
      for (int other = 0; other < size; ++other) {
        if (other == rank) continue;
        auto& memory = got[2 * static_cast<std::size_t>(other) + static_cast<std::size_t>(tag)];
        memory.resize(bytes);
        messages.push_back(c.start_receive({other, tag, memory.data(), bytes}).value());
      }
    for (int tag : {1, 0})
      for (int other = 0; other < size; ++other) {
        if (other == rank) continue;
        auto& memory = sent[2 * static_cast<std::size_t>(other) + static_cast<std::size_t>(tag)];
        memory = content(rank, other, bytes, tag);
        messages.push_back(c.start_send({other, tag, memory.data(), bytes}).value());
      }
    // Those of exchange() have tags of their own.
    std::vector<OutgoingMessage> out;
    std::vector<IncomingMessage> in;
    std::vector<int> numbers(count, -1);
    for (int other = 0; other < size; ++other) {
      if (other == rank) continue;
      out.push_back({other, 0, &rank, sizeof rank});
      in.push_back({other, 0, &numbers[static_cast<std::size_t>(other)], sizeof rank});
    }
    c.exchange(out, in).value();
    check(checks, c, all_end(messages), cat("messages of ", bytes, " bytes have ended"));
    for (int other = 0; other < size; ++other) {
      if (other == rank) continue;
      const auto place = static_cast<std::size_t>(other);
      check(checks, c, numbers[place] == other, "exchange() beside started messages");
      for (int tag : {0, 1})
        check(checks, c,
              got[2 * place + static_cast<std::size_t>(tag)] == content(other, rank, bytes, tag),
              cat("a message of ", bytes, " bytes from ", other, " with tag ", tag));
    }
  }
  // A receive that is given up leaves its memory alone, and takes no message.
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  int given_up = -1, received = -1;
  auto receive = c.start_receive({before, 5, &given_up, sizeof given_up}).value();
  check(checks, c, !*receive->has_ended(), "nothing was sent");
  receive->cancel();
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  char byte = 0;
  std::vector<char> bytes(count);
  c.all_gather(all, &byte, bytes.data(), 1).value();  // all have given up
  std::vector<std::unique_ptr<StartedMessage>> messages;
  messages.push_back(c.start_send({next, 5, &rank, sizeof rank}).value());
  messages.push_back(c.start_receive({before, 5, &received, sizeof received}).value());
  check(checks, c, all_end(messages) && received == before && given_up == -1,
        "a message after a receive that was given up");
  check(checks, c, !c.start_send({rank, 0, &rank, 1}).ok(), "a message to itself");
  check(checks, c, !c.start_receive({size, 0, &received, 1}).ok(), "a message from nobody");
  check(checks, c, !c.start_send({next, -1, &rank, 1}).ok(), "a tag below 0");
  check(checks, c, c.largest_tag() >= 32767, "tags are too small");
  return checks;
}

}  // namespace meshard
