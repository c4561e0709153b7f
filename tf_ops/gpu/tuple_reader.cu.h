// From index tuples in device memory to the rows they name.

#ifndef TF_OPS_GPU_TUPLE_READER_CU_H_
#define TF_OPS_GPU_TUPLE_READER_CU_H_

#include <algorithm>
#include <cstdint>

#include "tf_ops/core/index_space.h"
#include "tf_ops/core/indices.h"
#include "tf_ops/core/tuple_row.h"
#include "tf_ops/gpu/memory.cu.h"

namespace tf_stitch_gather {

// Tuples of up to so many indices travel with a kernel in few bytes. A kernel
// for deeper ones takes 4 KB of parameters.
inline constexpr int kShallow = 8;

// Reads tuples of at most kDims indices.
template <typename IndexT, int kDims>
class TupleReader {
 public:
  using Index = IndexT;
  static constexpr int kMaxDepth = kDims;

  TupleReader(const IndexSpace& space, const Indices& indices)
      : indices_(indices.data),
        batched_(space.batches != 1),
        depth_(space.depth),
        tuples_per_batch_(space.tuples_per_batch),
        rows_per_batch_(space.rows_per_batch) {
    std::copy_n(space.dims, depth_, dims_);
    std::copy_n(space.strides, depth_, strides_);
  }

  // The row that tuple `tuple` names, -1 if it is out of range.
  TSG_DEVICE int64_t Row(int64_t tuple) const {
    uint64_t row = 0;
    if (batched_) {
      row = static_cast<uint64_t>(tuple / tuples_per_batch_ * rows_per_batch_);
    }
    bool fits = true;
    for (int k = 0; k < depth_; ++k) {
      const Index index = ReadIndex<Index>(indices_, tuple * depth_ + k);
      fits &= IndexFits(index, IndexBound<Index>(dims_[k]));
      row += IndexStep(index, static_cast<uint64_t>(strides_[k]));
    }
    return fits ? static_cast<int64_t>(row) : -1;
  }

 private:
  const void* indices_;
  bool batched_;
  int depth_;
  int64_t tuples_per_batch_;
  int64_t rows_per_batch_;
  int64_t dims_[kDims];
  int64_t strides_[kDims];
};

// Calls `visit` with the reader for `indices`.
template <typename Visitor>
Status VisitReader(const IndexSpace& space, const Indices& indices,
                   const Visitor& visit) {
  return VisitIndexType(indices.type, [&](auto zero) -> Status {
    using Index = decltype(zero);
    if (space.depth <= kShallow) {
      return visit(TupleReader<Index, kShallow>(space, indices));
    }
    return visit(TupleReader<Index, kMaxRank>(space, indices));
  });
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GPU_TUPLE_READER_CU_H_
