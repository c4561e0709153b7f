#include "tf_ops/cpu/gather_nd.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tf_ops/cpu/cost_model.h"
#include "tf_ops/cpu/find_rows.h"
#include "tf_ops/cpu/huge_pages.h"

namespace tf_stitch_gather {
namespace {

// The number of the first bad place of a block that has one.
int64_t FirstNull(const int64_t* places) {
  int64_t i = 0;
  while (places[i] != 0) ++i;
  return i;
}

}  // namespace

int64_t GatherNd(const IndexSpace& space, const Indices& indices,
                 const char* params, const RowMover& mover, bool ignore_bad,
                 Workers& workers, char* output) {
  // Addresses are the places, so 0 marks a bad one. Empty rows have no
  // address: any number but 0 serves them.
  const int64_t base =
      mover.row_bytes > 0 ? reinterpret_cast<int64_t>(params) : 1;
  static_assert(sizeof(const char*) == sizeof(int64_t));
  const RowFinder finder(indices, space, base, mover.row_bytes, 0);
  if (mover.plain_bytes) {
    AdviseHugePages(output, space.tuples() * mover.row_bytes);
  }
  FirstBad first_bad;
  ParallelFor(workers, space.tuples(), cost::Tuple(space.depth) + mover.row_ns,
              [&](int64_t begin, int64_t end) {
                int64_t places[kBlock];
                const char* sources[kBlock];
                for (int64_t at = begin; at < end; at += kBlock) {
                  if (first_bad.Before(at)) return;
                  const int64_t count = std::min<int64_t>(kBlock, end - at);
                  const int64_t bad = finder.Find(at, count, places);
                  if (bad > 0 && !ignore_bad) {
                    first_bad.Report(at + FirstNull(places));
                    return;
                  }
                  if (mover.row_bytes == 0) continue;
                  std::memcpy(sources, places, count * sizeof(*sources));
                  mover.move(sources, count, mover.row_bytes,
                             output + at * mover.row_bytes);
                }
              });
  return first_bad.tuple();
}

}  // namespace tf_stitch_gather
