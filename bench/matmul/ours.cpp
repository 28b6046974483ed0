// In godwit, on ordinary memory: substrate threads.
#include <godwit/godwit.hpp>

#include "matmul.hpp"

namespace matmul {

void godwit(const part& p) {
  if (p.is_leaf()) return block(p);
  if (!p.halves_m() && !p.halves_n()) {
    godwit(p.low());
    return godwit(p.high());
  }
  auto low = ::godwit::spawn([q = p.low()] { godwit(q); });
  godwit(p.high());
  low.join();
}

}  // namespace matmul
