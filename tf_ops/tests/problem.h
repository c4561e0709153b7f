// Random gathers and scatters for the tests of every device.

#ifndef TF_OPS_TESTS_PROBLEM_H_
#define TF_OPS_TESTS_PROBLEM_H_

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "tf_ops/core/index_space.h"
#include "tf_ops/core/shape.h"
#include "tf_ops/tests/check.h"

namespace tf_stitch_gather::testing {

// A random problem: index tuples of which some may be out of range.
struct Problem {
  Shape indices_shape;
  Shape target_shape;
  IndexSpace space;
  std::vector<int64_t> values;    // the indices
  std::vector<int64_t> rows;      // the row of each tuple, -1 out of range
  int64_t first_bad = INT64_MAX;  // or the number of a tuple
  std::string name;
};

inline Problem MakeProblem(uint64_t seed, bool with_bad) {
  Random random(seed);
  const int batch = static_cast<int>(random.Below(3));
  const int depth = static_cast<int>(random.Below(7));
  Problem p;
  for (int i = 0; i < batch; ++i) {
    const int64_t dim = 1 + random.Below(3);
    p.indices_shape.Append(dim);
    p.target_shape.Append(dim);
  }
  p.indices_shape.Append(random.Below(2) ? random.Below(40)
                                         : random.Below(3000));
  p.indices_shape.Append(depth);
  for (int i = 0; i < depth; ++i) p.target_shape.Append(1 + random.Below(4));
  constexpr int64_t kUsualWidths[] = {0, 1, 2, 3, 4, 8, 16, 32, 64};
  p.target_shape.Append(
      random.Below(2) ? kUsualWidths[random.Below(std::size(kUsualWidths))]
                      : random.Below(90));
  CHECK_CASE(
      MakeIndexSpace(p.indices_shape, p.target_shape, batch, &p.space).ok(),
      "space");
  for (int64_t t = 0; t < p.space.tuples(); ++t) {
    int64_t row = t / p.space.tuples_per_batch * p.space.rows_per_batch;
    bool fits = true;
    for (int k = 0; k < depth; ++k) {
      int64_t index = random.Below(p.space.dims[k]);
      if (with_bad && random.Below(50) == 0) {
        index = random.Below(2) ? -1 - random.Below(9) : p.space.dims[k];
        fits = false;
      }
      p.values.push_back(index);
      row += index * p.space.strides[k];
    }
    p.rows.push_back(fits ? row : -1);
    if (!fits && p.first_bad == INT64_MAX) p.first_bad = t;
  }
  p.name = "seed " + std::to_string(seed) + ", indices " +
           p.indices_shape.ToString() + ", target " + p.target_shape.ToString();
  return p;
}

}  // namespace tf_stitch_gather::testing

#endif  // TF_OPS_TESTS_PROBLEM_H_
