// The sources of a stitch, and the rule that says which of them wins a row.

#ifndef TF_OPS_CORE_STITCH_PARTS_H_
#define TF_OPS_CORE_STITCH_PARTS_H_

#include <cstdint>
#include <vector>

#include "tf_ops/core/host_device.h"
#include "tf_ops/core/indices.h"

namespace tf_stitch_gather {

// The parts of a stitch, in the order in which they write.
class StitchParts {
 public:
  struct Part {
    const void* indices;
    char* rows;     // data of the stitch, or data gradients to write
    int64_t first;  // the number of sources in the parts before
    int64_t count;
  };

  StitchParts() = default;
  StitchParts(IndexType type, int expected_parts) : type_(type) {
    parts_.reserve(expected_parts);
  }

  void Add(const void* indices, const void* rows, int64_t count) {
    parts_.push_back({indices, static_cast<char*>(const_cast<void*>(rows)),
                      sources_, count});
    sources_ += count;
  }

  IndexType type() const { return type_; }
  const std::vector<Part>& parts() const { return parts_; }

  // A source is one index with its row of data; they are numbered in the
  // order in which they write, so that the greatest number wins.
  int64_t sources() const { return sources_; }

 private:
  IndexType type_ = IndexType::kInt64;
  std::vector<Part> parts_;
  int64_t sources_ = 0;
};

// An index of the parts that is out of range.
struct BadSource {
  int part = -1;  // -1: there is none
  int64_t position = 0;
  int64_t value = 0;

  bool found() const { return part >= 0; }
};

// The number of the part that holds source `source`: the last one that begins
// at or before it, so that empty parts are passed over.
TSG_HOST_DEVICE inline int PartOfSource(const StitchParts::Part* parts,
                                        int count, int64_t source) {
  int low = 0;
  int high = count;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (parts[middle].first <= source) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CORE_STITCH_PARTS_H_
