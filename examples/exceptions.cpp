// Exceptions: what a thread throws comes out of join, at whichever worker that is by then.
//
//   example_exceptions --godwit-workers=4
//
// On one host it is the object that was thrown. Between hosts a type of your own keeps its type if it was
// made known before run, and has a codec. docs/writing-programs.md#exceptions
#include <godwit/godwit.hpp>

#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>

namespace gw = godwit;

struct bad_cell : std::runtime_error {
  explicit bad_cell(int where) : std::runtime_error("cell " + std::to_string(where)), cell(where) {}
  int cell;
};

template <>
struct godwit::codec<bad_cell> {
  static void write(godwit::writer& w, const bad_cell& e) { w.put(e.cell); }
  static bad_cell read(godwit::reader& r) { return bad_cell(r.get<int>()); }
};

/// The sum of the cells from low up to high. Cell 700 is broken, and so is cell 900.
long sum(int low, int high) {
  if (high - low > 1) {
    const int middle = (low + high) / 2;
    auto [a, b] = gw::invoke([=] { return sum(low, middle); }, [=] { return sum(middle, high); });
    return a + b;
  }
  if (low == 700 || low == 900) throw bad_cell(low);
  return low;
}

int main(int argc, char** argv) {
  gw::register_exception<bad_cell>();
  return gw::run(argc, argv, [] {
    std::string said;
    auto half = gw::spawn(sum, 0, 500);
    auto all = gw::spawn(sum, 0, 1000);
    try {
      all.join();
    } catch (const bad_cell& e) {  // invoke throws what its leftmost callable threw
      said = "stopped by " + std::string(e.what());
    }
    const long good = half.join();  // other threads are not affected
    std::cout << said << ", the first half is " << good << '\n';
  });
}
