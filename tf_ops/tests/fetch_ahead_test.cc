// Blocks that know what comes behind them.

#include "tf_ops/cpu/fetch_ahead.h"

#include <cstdint>
#include <cstdio>
#include <string>

#include "tf_ops/tests/check.h"

namespace tf_stitch_gather::testing {
namespace {

// Whether each of [begin, end) is found once, and used once with its place, up
// to the block with tuple `stop` in it, which is not found.
void TestBlocks(int64_t begin, int64_t end, int64_t ahead, int64_t stop) {
  const std::string name = std::to_string(begin) + " to " +
                           std::to_string(end) + ", " + std::to_string(ahead) +
                           " ahead, stop " + std::to_string(stop);
  int64_t found = begin;
  int64_t used = begin;
  const int64_t reached = ForEachBlockAhead<int64_t>(
      begin, end, ahead,
      [&](int64_t at, int64_t count, int64_t* places) {
        CHECK_CASE(at == found && count > 0 && count <= kBlock, name);
        found += count;
        for (int64_t i = 0; i < count; ++i) places[i] = 3 * (at + i);
        return stop < at || stop >= found;
      },
      [&](int64_t at, int64_t count, int64_t known, const int64_t* places) {
        CHECK_CASE(at == used && count > 0 && count <= kBlock, name);
        used += count;
        CHECK_CASE(at + known == found, name);
        CHECK_CASE(known - count >= ahead || found == end, name);
        for (int64_t i = 0; i < known; ++i) {
          CHECK_CASE(places[i] == 3 * (at + i), name);
        }
      });
  CHECK_CASE(reached == used, name);
  CHECK_CASE(stop < end ? used <= stop : used == end, name);
}

}  // namespace
}  // namespace tf_stitch_gather::testing

int main() {
  using namespace tf_stitch_gather;           // NOLINT: a test's main
  using namespace tf_stitch_gather::testing;  // NOLINT
  for (const int64_t ahead :
       {int64_t{0}, kMinFetchAhead, int64_t{17}, kMaxFetchAhead}) {
    for (int64_t count = 0; count < 4 * kBlock; ++count) {
      TestBlocks(7, 7 + count, ahead, INT64_MAX);
      if (count % 50 == 1) TestBlocks(0, count, ahead, count / 2);
    }
  }
  std::puts("fetch ahead: passed");
}
