// expect: deleted|no matching
// A future has one consumer.
#include <godwit/godwit.hpp>

int use() {
  auto f = godwit::spawn([] { return 1; });
  auto g = f;
  return f.join() + g.join();
}
