// In godwit, on ordinary memory: substrate threads.
#include <godwit/godwit.hpp>

#include "quicksort.hpp"

namespace quicksort {

void godwit(std::uint32_t* first, std::uint32_t* last) {
  if (last - first <= leaf) {
    std::sort(first, last);
    return;
  }
  std::uint32_t* middle = partition(first, last);
  auto lower = ::godwit::spawn([=] { godwit(first, middle); });
  godwit(middle, last);
  lower.join();
}

}  // namespace quicksort
