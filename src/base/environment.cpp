// See environment.hpp.
#include "base/environment.hpp"

#include <cstddef>
#include <unistd.h>

namespace godwit::base {

void move_environment_to_heap() {
  std::size_t n = 0;
  while (environ != nullptr && environ[n] != nullptr) ++n;
  auto** copy = new char*[n + 1];
  for (std::size_t i = 0; i < n; ++i) copy[i] = environ[i];
  copy[n] = nullptr;
  environ = copy;
}

}  // namespace godwit::base
