// The codec of one-dimensional arrays. Other dimensions and lower bounds have no Arrow value.
#pragma once

#include <memory>

#include "columnar/value_codec.h"

namespace tidemark::columnar {

/// The codec between arrays of `element_type`, whose values `element` turns, and list. The bit in
/// an array that announces NULLs is written only where there is one, as PostgreSQL itself reads it.
/// Arrays of several dimensions or with a lower bound other than 1: 0A000; elements of another
/// type: 42804.
std::unique_ptr<ValueCodec> MakeListCodec(uint32_t element_type,
                                          std::unique_ptr<ValueCodec> element);

/// Appends the elements [begin, end) of `elements` as an array value.
void WriteArray(const arrow::Array& elements, int64_t begin, int64_t end, uint32_t element_type,
                const ValueEncoder& element, std::string& out);

}  // namespace tidemark::columnar
