// Started by mpirun: checks the collectives of libmeshard_mpi.so, with whole messages and in
// pieces. usage: mpi_program [BYTES]   also reduces and gathers arrays of BYTES bytes
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "meshard/processes/mpi_communicator.h"
#include "tests/processes/check_communicator.h"

namespace {

using namespace meshard;

/// One element is different in each process, at the end; the others are equal.
bool check_large(Communicator& c, std::size_t bytes) {
  std::vector<int> all(static_cast<std::size_t>(c.size()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::uint8_t> data(bytes, 1);
  data.back() = static_cast<std::uint8_t>(c.rank() + 1);
  c.all_reduce(all, Reduction::kSum, DType::u8, data.data(), data.data(), bytes).value();
  bool right = data.back() == c.size() * (c.size() + 1) / 2;
  for (std::size_t i = 0; i + 1 < bytes; i += 4099) right &= data[i] == c.size();
  data.assign(bytes, static_cast<std::uint8_t>(c.rank()));
  std::vector<std::uint8_t> out(bytes * all.size());
  c.all_gather(all, data.data(), out.data(), bytes).value();
  for (std::size_t i = 0; i < out.size(); i += 4099) right &= out[i] == i / bytes;
  return right && out.back() == all.size() - 1;
}

}  // namespace

int main(int argc, char** argv) {
  auto communicator = MpiCommunicator::open().value();
  std::vector<int> all(static_cast<std::size_t>(communicator->size()));
  std::iota(all.begin(), all.end(), 0);
  CommunicatorChecks total;
  for (std::size_t largest : {std::size_t{0}, std::size_t{1000}}) {
    communicator->set_largest_message(largest);
    CommunicatorChecks checks = check_communicator(*communicator);
    total.passed += checks.passed;
    total.failed += checks.failed;
  }
  communicator->set_largest_message(0);
  if (argc > 1) {
    bool right = check_large(*communicator, static_cast<std::size_t>(std::atoll(argv[1])));
    ++(right ? total.passed : total.failed);
  }
  std::int32_t counts[3] = {total.passed, total.failed, communicator->rank()};
  communicator->all_reduce(all, Reduction::kSum, DType::i32, counts, counts, 3).value();
  int expected_ranks = communicator->size() * (communicator->size() - 1) / 2;
  if (counts[2] != expected_ranks) ++counts[1];
  if (communicator->rank() == 0)
    std::printf("%s: %d processes\n%d passed, %d failed\n", communicator->library_name()->c_str(),
                communicator->size(), counts[0], counts[1]);
  communicator->finalize().value();
  return counts[1] == 0 ? 0 : 1;
}
