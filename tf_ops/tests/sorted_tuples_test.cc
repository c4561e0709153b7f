// The sort of row keys against std::sort: both key types, few and many rows,
// few and many keys.

#include "tf_ops/cpu/sorted_tuples.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tf_ops/tests/check.h"

namespace tf_stitch_gather::testing {
namespace {

// Keys of `count` tuples that name one of `rows` rows, at the end of the
// `table_rows` rows of a table.
template <typename Key>
void TestSort(int64_t count, int64_t rows, int64_t table_rows,
              Workers& workers) {
  const std::string name = std::to_string(sizeof(Key)) + "-byte keys, " +
                           std::to_string(count) + " tuples, " +
                           std::to_string(rows) + " rows of " +
                           std::to_string(table_rows);
  const int tuple_bits = BitsFor(static_cast<uint64_t>(count));
  Random random(static_cast<uint64_t>(count + rows));
  std::vector<Key> keys;
  for (int64_t tuple = 0; tuple < count; ++tuple) {
    const int64_t row = table_rows - random.Below(rows);
    keys.push_back(MakeRowKey<Key>(row, tuple, tuple_bits));
  }
  std::vector<Key> expected = keys;
  std::sort(expected.begin(), expected.end());
  ParallelSort(keys.data(), count, workers);
  CHECK_CASE(keys == expected, name);
}

}  // namespace
}  // namespace tf_stitch_gather::testing

int main() {
  using namespace tf_stitch_gather;           // NOLINT: a test's main
  using namespace tf_stitch_gather::testing;  // NOLINT
  for (const int threads : {1, 3}) {
    ThreadWorkers workers(threads);
    for (const int64_t count : {0, 1, 255, 257, 5000, 60000}) {
      for (const int64_t rows : {1, 10, 50000}) {
        TestSort<NarrowKey>(count, rows, rows, workers);
        TestSort<NarrowKey>(count, rows, int64_t{1} << 40, workers);
        TestSort<WideKey>(count, rows, int64_t{1} << 62, workers);
      }
    }
  }
  std::puts("sorted tuples: passed");
}
