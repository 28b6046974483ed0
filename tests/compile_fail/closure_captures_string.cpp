// expect: this callable cannot migrate: it captures something by value that is not plain bytes
// A string by value in a closure; invoke says it as spawn does.
#include <godwit/godwit.hpp>

auto use() {
  std::string s = "hello";
  return godwit::invoke([s] { return s.size(); }, [] { return 1; });
}
