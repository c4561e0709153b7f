// Helpers that begin at once, late or never.

#include "tf_ops/cpu/block_queue.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tf_ops/tests/check.h"

namespace tf_stitch_gather::testing {
namespace {

constexpr int kNone = -1;

// Runs loops of which only the helper called as number `starts` begins, and
// checks that so many are called, that each block is done once, and that the
// helper takes part.
void TestHelpers(const std::string& name, int helpers, int starts,
                 std::chrono::nanoseconds late, int expected) {
  constexpr int64_t kBlocks = 20;
  const std::thread::id caller = std::this_thread::get_id();
  int called = 0;
  std::atomic<bool> helped{false};
  std::vector<std::atomic<int>> times(kBlocks);
  std::thread helper;
  RunBlocks(
      kBlocks, 1, helpers,
      [&](int64_t begin, int64_t end) {
        CHECK_CASE(end == begin + 1, name + ", a block of one");
        ++times[begin];
        if (std::this_thread::get_id() != caller) {
          helped = true;
        } else if (helper.joinable()) {
          while (!helped) std::this_thread::yield();
        }
      },
      [&](std::function<void()> help) {
        if (called++ == starts) helper = std::thread(std::move(help));
      },
      late);
  if (helper.joinable()) helper.join();
  CHECK_CASE(called == expected, name + ", called " + std::to_string(called));
  CHECK_CASE(helped == (starts != kNone), name + ", helped");
  for (const std::atomic<int>& count : times) {
    CHECK_CASE(count == 1, name + ", each block once");
  }
}

}  // namespace
}  // namespace tf_stitch_gather::testing

int main() {
  using namespace tf_stitch_gather::testing;  // NOLINT: a test's main
  constexpr std::chrono::hours kPatient(1);
  constexpr std::chrono::nanoseconds kHasty(0);
  for (const int helpers : {1, 3}) {
    const std::string name = std::to_string(helpers) + " helpers";
    TestHelpers(name + " at once", helpers, 0, kPatient, helpers);
    TestHelpers(name + " never, not awaited", helpers, kNone, kPatient,
                helpers);
    TestHelpers(name + " never", helpers, kNone, kHasty, helpers + 1);
    TestHelpers(name + " late", helpers, helpers, kHasty, helpers + 1);
  }
  TestHelpers("alone", 0, kNone, kHasty, 0);
  std::printf("block queue: passed\n");
}
