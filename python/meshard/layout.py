"""The algebra of layouts: functions of `Layout` and of nested tuples of integers, in row-major order.

    from meshard import Layout, layout
    layout.composition(Layout("(2,4):(4,1)"), Layout("4:2"))
"""

from ._meshard.layout import (are_disjoint, coalesce, compact_stride, complement, composition, concatenate,
                              convert_coordinate, coordinate_of, elementwise_product, filter, flatten, from_values,
                              index_of, inner_product, is_injective, is_orthogonal, largest, left_inverse,
                              logical_divide, logical_product, permute, product, right_inverse, same_function,
                              shape_divide, signs, slice, slice_and_offset, split, tiled_divide, tiled_product,
                              value_of, zipped_divide, zipped_product)

__all__ = ["are_disjoint", "coalesce", "compact_stride", "complement", "composition", "concatenate",
           "convert_coordinate", "coordinate_of", "elementwise_product", "filter", "flatten", "from_values", "index_of",
           "inner_product", "is_injective", "is_orthogonal", "largest", "left_inverse", "logical_divide",
           "logical_product", "permute", "product", "right_inverse", "same_function", "shape_divide", "signs", "slice",
           "slice_and_offset", "split", "tiled_divide", "tiled_product", "value_of", "zipped_divide", "zipped_product"]
