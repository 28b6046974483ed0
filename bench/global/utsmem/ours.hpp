// The tree in global memory. To be called inside a run.
#pragma once

#include "../loops.hpp"
#include "utsmem.hpp"

namespace utsmem {

namespace gw = godwit;
template <class T>
using global_link = gw::global_ptr<T>;
using global_node = stored<global_link>;

/// Build uts::the_tree: every node at the worker that came to it.
gw::global_ptr<global_node> build();
found traverse(gw::global_ptr<global_node> root);
void destroy(gw::global_ptr<global_node> root);

}  // namespace utsmem
