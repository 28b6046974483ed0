// expect: on_each_worker: the callable must be plain bytes
// The callable is copied to every worker byte by byte.
#include <godwit/godwit.hpp>

void use() {
  std::string s = "hello";
  godwit::on_each_worker([s] { static_cast<void>(s.size()); });
}
