// Bodies and tree in global memory. To be called inside a run.
#pragma once

#include "../loops.hpp"
#include "nbody.hpp"

namespace nbody {

namespace gw = godwit;
template <class T>
using global_link = gw::global_ptr<T>;
using global_cell = cell_of<global_link>;
using body_ptr = gw::global_ptr<body>;

/// Sorts the bodies. Give the cell to destroy.
global_cell build(body_ptr bodies, std::uint64_t n);
void destroy(const global_cell& root);
/// In a leaf: holds checkouts, does not spawn.
vec acceleration(const global_cell& root, body_ptr bodies, const vec& at, double theta);
void step(const global_cell& root, body_ptr bodies, body_ptr to, const problem& p);

}  // namespace nbody
