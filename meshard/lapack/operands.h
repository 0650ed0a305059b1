// The arguments, results and attributes of a call of LAPACK, checked before the routine runs.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/result.h"
#include "meshard/pjrt/host_call.h"

namespace meshard::lapack {

/// True if the elements are complex numbers.
template <class T>
inline constexpr bool is_complex = !std::is_floating_point_v<T>;
/// The real type of an element type.
template <class T>
using Real = decltype(std::real(T()));

/// PJRT's element type of a C++ type.
template <class T>
constexpr pjrt::ElementType element_of() {
  using pjrt::ElementType;
  if constexpr (std::is_same_v<T, float>) return ElementType::kF32;
  if constexpr (std::is_same_v<T, double>) return ElementType::kF64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return ElementType::kC64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return ElementType::kC128;
  if constexpr (std::is_same_v<T, int>) return ElementType::kS32;
}

/// As Fortran's integer. @error invalid argument, thrown, if it does not fit
inline int integer(std::int64_t value) {
  if (value > std::numeric_limits<int>::max())
    throw Error(ErrorCode::kInvalidArgument,
                cat("[lapack] ", value, " is more than LAPACK's integers of 32 bits hold"));
  return static_cast<int>(value);
}

/// A batch of matrices, each in column-major order.
struct Matrices {
  std::int64_t batch = 1;
  int rows = 0, columns = 0;
  /// The distance of two columns, as LAPACK wants it.
  int leading = 1;
  /// The elements of one.
  std::int64_t step() const { return std::int64_t{rows} * columns; }
  int least() const { return std::min(rows, columns); }
};

/// One call of a routine with elements T. What does not fit is an exception: the call's error.
template <class T>
class Operands {
 public:
  Operands(const pjrt::HostCall& call, std::string routine, void* address)
      : call_(call), routine_(std::move(routine)), address_(address) {}

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorCode::kInvalidArgument, cat("[lapack] ", routine_, ": ", why));
  }

  void expect(std::size_t arguments, std::size_t results) const {
    if (call_.arguments.size() != arguments || call_.results.size() != results)
      fail(cat(call_.arguments.size(), " arguments and ", call_.results.size(),
               " results, instead of ", arguments, " and ", results));
  }

  Matrices matrices(std::size_t argument) const {
    std::span<const std::int64_t> sizes = call_.arguments.at(argument).dimensions;
    if (sizes.size() < 2) fail(cat("argument ", argument, " is not a matrix"));
    Matrices found;
    for (std::int64_t size : sizes.first(sizes.size() - 2)) found.batch *= size;
    found.rows = integer(sizes[sizes.size() - 2]);
    found.columns = integer(sizes.back());
    found.leading = std::max(1, found.rows);
    return found;
  }

  Matrices square(std::size_t argument) const {
    Matrices found = matrices(argument);
    if (found.rows != found.columns)
      fail(cat("a matrix of ", found.rows, " x ", found.columns, " is not square"));
    return found;
  }

  int last_dimension(std::size_t argument) const {
    std::span<const std::int64_t> sizes = call_.arguments.at(argument).dimensions;
    if (sizes.empty()) fail(cat("argument ", argument, " is a scalar"));
    return integer(sizes.back());
  }

  /// @param each elements for each matrix of the batch
  template <class E>
  E* argument(std::size_t i, std::int64_t batch, std::int64_t each) const {
    return values<E>(call_.arguments.at(i), "argument", i, batch * each);
  }
  template <class E>
  E* result(std::size_t i, std::int64_t batch, std::int64_t each) const {
    return values<E>(call_.results.at(i), "result", i, batch * each);
  }

  /// The values of an argument, in the memory of a result, which may be the same.
  template <class E>
  E* copy(std::size_t argument, std::size_t result) const {
    const std::int64_t count = count_of(call_.arguments.at(argument));
    const E* from = values<E>(call_.arguments.at(argument), "argument", argument, count);
    E* to = values<E>(call_.results.at(result), "result", result, count);
    if (from != to) std::copy_n(from, count, to);
    return to;
  }

  /// An attribute that is a letter. @param allowed the valid letters
  char letter(std::string_view name, std::string_view allowed) const {
    auto found = std::ranges::find(call_.letters, name, &std::pair<std::string_view, char>::first);
    if (found == call_.letters.end()) fail(cat("there is no attribute ", name));
    if (allowed.find(found->second) == allowed.npos)
      fail(cat(name, " is ", std::string_view(&found->second, 1), ", which is none of ", allowed));
    return found->second;
  }
  bool flag(std::string_view name) const {
    constexpr char kBoth[] = {0, 1};
    return letter(name, std::string_view(kBoth, 2)) != 0;
  }
  int number(std::string_view name) const {
    std::span<const std::int32_t> found = call_.number_list(name);
    if (found.size() != 1) fail(cat("there is no attribute ", name));
    return found[0];
  }

  /// Calls the routine. Behind the addresses, Fortran takes the length of each character.
  template <class... Address>
  void operator()(Address... addresses) const {
    using Routine = void (*)(Address..., std::size_t, std::size_t, std::size_t, std::size_t);
    reinterpret_cast<Routine>(address_)(addresses..., 1, 1, 1, 1);
  }

 private:
  static std::int64_t count_of(const pjrt::HostCallArray& array) {
    std::int64_t count = 1;
    for (std::int64_t size : array.dimensions) count *= size;
    return count;
  }

  template <class E>
  E* values(const pjrt::HostCallArray& array, std::string_view what, std::size_t i,
            std::int64_t count) const {
    if (array.element != element_of<E>())
      fail(cat(what, " ", i, " is ", to_string(array.element), ", not ",
               to_string(element_of<E>())));
    if (count_of(array) != count)
      fail(cat(what, " ", i, " has ", count_of(array), " elements, not ", count));
    return static_cast<E*>(array.data);
  }

  const pjrt::HostCall& call_;
  std::string routine_;
  void* address_;
};

/// Calls run(b, work, size) for each matrix of a batch. `size` is first -1, which asks the routine
/// for the best size of its workspace.
template <class T, class Run>
void workspace(std::int64_t batch, const Run& run) {
  if (batch == 0) return;
  T best{};
  int size = -1;
  run(0, &best, &size);
  // The size is a number of the elements' precision, which may have been rounded down.
  const double enough =
      std::ceil(std::real(best) * (1.0 + std::numeric_limits<Real<T>>::epsilon()));
  size = std::max(1, integer(static_cast<std::int64_t>(enough)));
  std::vector<T> work(static_cast<std::size_t>(size));
  for (std::int64_t b = 0; b < batch; ++b) run(b, work.data(), &size);
}

}  // namespace meshard::lapack
