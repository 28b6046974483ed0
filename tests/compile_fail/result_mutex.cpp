// expect: the result type of this thread cannot migrate
// A mutex as a result.
#include <godwit/godwit.hpp>

#include <mutex>

void use() {
  auto f = godwit::spawn([] { return std::mutex{}; });
}
