// From index tuples to the numbers of the rows they name, all at once.

#ifndef TF_OPS_CPU_ROW_NUMBERS_H_
#define TF_OPS_CPU_ROW_NUMBERS_H_

#include <cstdint>

#include "tf_ops/core/index_space.h"

namespace tf_stitch_gather {

// Writes the number, within its batch, of the row that each of `count` tuples
// names. False if a tuple is out of range: then the numbers are of no use.
// `space` has at least one row, and fewer than 2^32.
bool RowNumbers(const int16_t* tuples, int64_t count, const IndexSpace& space,
                uint32_t* numbers);
bool RowNumbers(const int32_t* tuples, int64_t count, const IndexSpace& space,
                uint32_t* numbers);
bool RowNumbers(const int64_t* tuples, int64_t count, const IndexSpace& space,
                uint32_t* numbers);

// Turns numbers of rows into their places: base + number * scale.
void RowPlaces(const uint32_t* numbers, int64_t count, int64_t base,
               uint32_t scale, int64_t* places);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_ROW_NUMBERS_H_
