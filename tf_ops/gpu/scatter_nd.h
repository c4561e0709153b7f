// scatter_nd on the device, and the merged sparse gradient of gather_nd.
//
// There are two ways to sum. Atomic adds take the updates as they come; for
// floats the order, and so the last bits, differ from run to run. Or the tuples
// are sorted by the row that they name, and the updates of each row are added
// in order: the same bits on every run. A long row is summed in pieces whose
// length depends on nothing but the number of tuples.

#ifndef TF_OPS_GPU_SCATTER_ND_H_
#define TF_OPS_GPU_SCATTER_ND_H_

#include <cstdint>

#include "tf_ops/core/index_space.h"
#include "tf_ops/core/indices.h"
#include "tf_ops/core/status.h"
#include "tf_ops/gpu/sort.h"
#include "tf_ops/gpu/stream.h"

namespace tf_stitch_gather {

// How elements are added. Complex numbers are two floats or doubles.
enum class SumKind {
  kFloat,
  kDouble,
  kInteger8,
  kInteger16,
  kInteger32,
  kInteger64,
  kNibble,  // 4 bits in a byte
  kCrumb,   // 2 bits in a byte
  kOr,      // truth values
  // Summed in float32, rounded once.
  kHalf,
  kBfloat16,
  kFloat8E5M2,
  kFloat8E4M3Fn,
  kFloat8E4M3Fnuz,
  kFloat8E4M3B11Fnuz,
  kFloat8E5M2Fnuz,
  kFloat4E2M1Fn,  // 4 bits in a byte
};

// Bytes of an element.
int64_t ElementBytes(SumKind kind);

// Whether atomic adds serve: there are some for the type, and the result is
// the same in any order unless `deterministic` is false.
bool AddsAtomically(SumKind kind, bool deterministic);

// The scatter by atomic adds: clears `output`, and adds to its rows of `width`
// elements the updates of the tuples that name them. Tuples out of range are
// left out. `report` may be null; else it receives a BadTupleReport.
Status GpuScatterNdAtomic(const GpuStream& stream, const IndexSpace& space,
                          const Indices& indices, SumKind kind, int64_t width,
                          const void* updates, uint64_t* report, void* output);

// The scatter by sorting, in steps. All memory is the caller's.
class GpuRowSums {
 public:
  // Lays out the scratch memory. `merges` says whether the rows that are named
  // are counted and written one behind the other.
  Status Plan(const IndexSpace& space, SumKind kind, int64_t width,
              bool merges);
  int64_t scratch_bytes() const { return scratch_bytes_; }

  // Sorts the tuples. Afterwards `report`, which may be null, holds a
  // BadTupleReport. The scratch memory belongs to this object from here on.
  Status Sort(const GpuStream& stream, const Indices& indices, uint64_t* report,
              void* scratch);

  // Counts the rows that tuples name, into `count` in device memory.
  Status CountRows(const GpuStream& stream, uint64_t* count);

  // Sums updates into a dense `output`, zeros where no tuple names a row.
  Status Scatter(const GpuStream& stream, const void* updates, void* output);

  // Writes the rows that CountRows has counted, ascending, and their sums.
  Status Merge(const GpuStream& stream, const void* updates, int64_t* rows,
               void* values);

 private:
  template <typename Sum>
  Status WriteSums(const GpuStream& stream, const void* updates,
                   const int64_t* firsts, void* to);
  struct Sorted SortedTuplesOnDevice() const;

  IndexSpace space_;
  SumKind kind_;
  int64_t width_;
  bool narrow_key_;
  int tuple_bits_;
  int64_t chunk_;  // tuples of a piece
  int64_t chunks_;
  int64_t temp_bytes_;

  // Offsets into the scratch memory.
  int64_t keys_[2];
  int64_t tuples_[2];
  int64_t temp_;
  int64_t firsts_;
  int64_t leads_;
  int64_t tails_;
  int64_t scratch_bytes_ = 0;

  char* scratch_ = nullptr;
  SortBuffers buffers_;
};

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GPU_SCATTER_ND_H_
