// Started by mpirun: checks the collectives of libmeshard_mpi.so, with whole messages and in
// pieces, and those of several devices in each process.
// usage: mpi_program [run | serialized] [BYTES]
//   run          joins the run by initialize_processes() and checks its communicator: by any
//                launcher, with MPI or Gloo
//   serialized   the program starts MPI, and allows one thread at a time
//   BYTES        also reduces and gathers arrays of BYTES bytes
#ifdef MESHARD_TEST_MPI
#include <mpi.h>
#endif

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

#include "meshard/processes/device_communicator.h"
#include "meshard/processes/mpi_communicator.h"
#include "meshard/processes/processes.h"
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

/// With a thread for each device.
CommunicatorChecks check_devices(ProcessCommunicator& processes, const std::vector<int>& counts) {
  std::atomic<int> passed = 0, failed = 0;
  auto devices = make_device_communicators(processes, counts);
  std::vector<std::jthread> threads;
  for (auto& device : devices)
    threads.emplace_back([&] {
      CommunicatorChecks checks = check_communicator(*device);
      passed += checks.passed;
      failed += checks.failed;
    });
  threads.clear();
  return {passed, failed};
}

}  // namespace

int main(int argc, char** argv) {
  bool serialized = argc > 1 && std::string_view(argv[1]) == "serialized";
#ifdef MESHARD_TEST_MPI
  int level = 0;
  if (serialized) MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
#endif
  const bool joins = argc > 1 && std::string_view(argv[1]) == "run";
  if (serialized || joins) --argc, ++argv;
  std::unique_ptr<MpiCommunicator> mpi;
  if (joins)
    initialize_processes().value();
  else
    mpi = MpiCommunicator::open().value();
  ProcessCommunicator* communicator = joins ? processes().communicator() : mpi.get();
  std::vector<int> all(static_cast<std::size_t>(communicator->size()));
  std::iota(all.begin(), all.end(), 0);
  CommunicatorChecks total;
  for (std::size_t largest : {std::size_t{0}, std::size_t{1000}}) {
    if (joins && largest != 0) break;
    if (mpi) mpi->set_largest_message(largest);
    CommunicatorChecks checks = check_communicator(*communicator);
    CommunicatorChecks started = check_started_messages(*communicator);
    total.passed += checks.passed + started.passed;
    total.failed += checks.failed + started.failed;
  }
  if (mpi) mpi->set_largest_message(0);
  // Each sum of check_communicator() is exact for at most five members.
  const std::vector<std::vector<int>> devices = {{2, 2}, {2, 1, 2}, {1, 2, 1, 1}};
  if (communicator->size() >= 2 && communicator->size() <= 4) {
    CommunicatorChecks checks =
        check_devices(*communicator, devices[static_cast<std::size_t>(communicator->size()) - 2]);
    total.passed += checks.passed;
    total.failed += checks.failed;
  }
  if (argc > 1) {
    bool right = check_large(*communicator, static_cast<std::size_t>(std::atoll(argv[1])));
    ++(right ? total.passed : total.failed);
  }
  std::int32_t counts[3] = {total.passed, total.failed, communicator->rank()};
  communicator->all_reduce(all, Reduction::kSum, DType::i32, counts, counts, 3).value();
  int expected_ranks = communicator->size() * (communicator->size() - 1) / 2;
  if (counts[2] != expected_ranks) ++counts[1];
  if (communicator->rank() == 0)
    std::printf("%s: %d processes\n%d passed, %d failed\n",
                mpi ? mpi->library_name()->c_str() : "a run", communicator->size(), counts[0],
                counts[1]);
  if (mpi)
    mpi->finalize().value();
  else
    processes().finalize().value();
#ifdef MESHARD_TEST_MPI
  if (serialized) MPI_Finalize();
#endif
  return counts[1] == 0 ? 0 : 1;
}
