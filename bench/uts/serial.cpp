// The references, instantiated. See serial.hpp.

#include "serial.hpp"

namespace uts {

namespace {
template <class Sha>
totals search(threads which) {
  const node root = the_tree.root();
  return which == threads::every ? serial_every<Sha>(root) : serial_inner<Sha>(root, the_tree.children(root));
}
}  // namespace

totals search_plain(threads which, bool ni) {
#if BENCH_HAS_SHA_NI
  if (ni) return search<sha1_ni>(which);
#endif
  static_cast<void>(ni);
  return search<sha1_portable>(which);
}

}  // namespace uts
