// expect: this callable cannot migrate: it captures something by value that is not plain bytes
// A shared_ptr counts its owners in one worker only.
#include <godwit/godwit.hpp>

#include <memory>

int use() {
  auto p = std::make_shared<int>(1);
  return godwit::spawn([p] { return *p; }).join();
}
