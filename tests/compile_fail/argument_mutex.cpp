// expect: the type of an argument of this thread cannot migrate
// A mutex can be neither copied nor sent.
#include <godwit/godwit.hpp>

#include <mutex>

void use() {
  godwit::spawn([](std::mutex&&) {}, std::mutex{}).join();
}
